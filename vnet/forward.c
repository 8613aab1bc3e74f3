// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      client -- old host: forwarder = ssh == new host: sshd = podrun gateway --reach -- published port
 *
 * A session that was moved without connections leaves its gateway behind, and its name in DNS is
 * changed (gateway/dynamic.c).  Whoever has looked the name up before goes to the old host for
 * another VNET_NSUPDATE_TTL.  So `migrate` leaves this process there: it has the session's TCP
 * ports, and runs one ssh for each connection, whose stdin and stdout the connection itself is.
 * That goes through whatever ssh goes through, and needs to know no address of the new host.
 *
 * The ports are free as soon as the old gateway has let them go, and are to be free again when a
 * session of this user's wants one, perhaps the same one, which comes back.  Such a one connects to
 * the forwarder's socket in the gateway's directory, and reads: at the end of that the ports are
 * free.
 */
#include "vnet/forward.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/base.h"
#include "vnet/client.h"
#include "vnet/endpoint.h"
#include "vnet/nsupdate.h"
#include "vnet/ondemand.h"

#define SECOND_NS    1000000000ull
#define TIME_NS	     ((VNET_NSUPDATE_TTL + 10) * SECOND_NS) /* the server may be told a little late */
#define BINDING_NS   (10 * SECOND_NS)			    /* the old gateway is on its way out */
#define LOOK_MS	     50
#define MAX_CHILDREN 32
#define MAX_STOPPED  16 /* forwarders at a time */
#define PREFIX	     "forward-"

struct place {
	char text[64]; /* as it was given */
	struct vnet_endpoint at;
	bool any; /* no address was given */
	int fd;	  /* that listens, or -1 */
};

struct forward {
	const char *host, *podrun;
	struct place places[VNET_MAX_PORTS];
	size_t n;
	unsigned children;
};

/* ---- ports ----------------------------------------------------------------------------------- */

static int parse_place(const char *text, size_t len, struct place *ret, struct err *e)
{
	char *colon, *address = NULL, *digits;
	char copy[sizeof(ret->text)];
	unsigned long port;

	*ret = (struct place){.fd = -1};
	if (len == 0 || len >= sizeof(copy))
		return err_set(e, ERR_USAGE, -EINVAL, "'%.64s' is no port", text);
	memcpy(copy, text, len);
	copy[len] = '\0';
	memcpy(ret->text, copy, len + 1);
	colon = strrchr(copy, ':');
	if (colon) {
		*colon = '\0';
		address = copy;
		if (address[0] == '[' && colon > copy + 1 && colon[-1] == ']') {
			colon[-1] = '\0';
			address++;
		}
	}
	digits = colon ? colon + 1 : copy;
	port = strtoul(digits, NULL, 10);
	/* It becomes a word of a shell's. */
	if (strspn(digits, "0123456789") != strlen(digits) || port == 0 || port > UINT16_MAX)
		return err_set(e, ERR_USAGE, -EINVAL, "'%s' is no port", ret->text);
	ret->any = !address;
	ret->at.family = address && strchr(address, ':') ? AF_INET6 : AF_INET;
	ret->at.port = (uint16_t)port;
	if (address &&
		inet_pton(ret->at.family, address,
			ret->at.family == AF_INET ? (void *)&ret->at.v4 : (void *)&ret->at.v6) != 1)
		return err_set(e, ERR_USAGE, -EINVAL, "'%s' is no port", ret->text);
	return 0;
}

static int parse_places(struct forward *f, const char *ports, struct err *e)
{
	for (const char *p = ports; *p;) {
		size_t len = strcspn(p, ",");

		if (f->n == VNET_MAX_PORTS)
			return err_set(e, ERR_USAGE, -E2BIG, "too many ports");
		if (parse_place(p, len, &f->places[f->n], e) < 0)
			return e->error;
		f->n++;
		p += len + (p[len] == ',');
	}
	return f->n ? 0 : err_set(e, ERR_USAGE, -EINVAL, "no ports");
}

/* Where no address was said it is all of both families. */
static void try_bind(struct place *p)
{
	struct vnet_endpoint at = p->at;
	struct sockaddr_storage sa;
	_cleanup_close_ int fd = -1;
	socklen_t len;
	int on = 1, off = 0;

	if (p->any)
		at = vnet_endpoint_v6(&in6addr_any, p->at.port);
	fd = socket(at.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (p->any)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	len = vnet_endpoint_to_sockaddr(&at, &sa);
	if (fd >= 0 && bind(fd, (struct sockaddr *)&sa, len) == 0 && listen(fd, MAX_CHILDREN) == 0)
		p->fd = take_fd(&fd);
}

/* ---- connections ----------------------------------------------------------------------------- */

static _Noreturn void become_ssh(const struct forward *f, const struct place *p, int fd)
{
	const char *command = getenv("PODRUN_SSH");
	char script[4096], there[4096];

	snprintf(script, sizeof(script), "exec %s \"$@\"", command ? command : "ssh");
	snprintf(there, sizeof(there), "%s gateway --reach %s", f->podrun, p->text);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(fd, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0)
		_exit(127);
	execl("/bin/sh", "sh", "-c", script, "sh", f->host, there, (char *)NULL);
	_exit(127);
}

static void lead_on(struct forward *f, const struct place *p)
{
	_cleanup_close_ int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);
	pid_t pid;

	if (fd < 0)
		return;
	pid = fork();
	if (pid == 0)
		become_ssh(f, p, fd);
	f->children += pid > 0;
}

static void reap(struct forward *f)
{
	while (f->children && waitpid(-1, NULL, WNOHANG) > 0)
		f->children--;
}

/* One look at everything; true when somebody needs the ports. */
static bool turn(struct forward *f, int yield, bool binding)
{
	struct pollfd fds[VNET_MAX_PORTS + 1];
	bool full = f->children >= MAX_CHILDREN, missing = false;

	for (size_t i = 0; i < f->n; i++) {
		if (f->places[i].fd < 0 && binding)
			try_bind(&f->places[i]);
		missing |= f->places[i].fd < 0;
		fds[i] = (struct pollfd){full ? -1 : f->places[i].fd, POLLIN, 0};
	}
	fds[f->n] = (struct pollfd){yield, POLLIN, 0};
	if (poll(fds, f->n + 1, (missing && binding) || full ? LOOK_MS : 1000) <= 0)
		return false;
	for (size_t i = 0; i < f->n; i++)
		if (fds[i].revents)
			lead_on(f, &f->places[i]);
	return fds[f->n].revents;
}

static void yield_address(struct sockaddr_un *ret, int dir, const char *name)
{
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	snprintf(ret->sun_path, sizeof(ret->sun_path), "/proc/self/fd/%d/%.48s", dir, name);
}

int vnet_forward_serve(
	const char *runtime, const char *host, const char *podrun, const char *ports, struct err *e)
{
	_cleanup_close_ int dir = vnet_ondemand_directory(runtime, e), yield = -1;
	struct forward f = {.host = host, .podrun = podrun};
	uint64_t begun = io_now_ns();
	struct sockaddr_un a;
	char name[32];

	if (dir < 0 || parse_places(&f, ports, e) < 0)
		return e->error;
	snprintf(name, sizeof(name), PREFIX "%d", (int)getpid());
	yield_address(&a, dir, name);
	yield = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	unlinkat(dir, name, 0);
	if (yield < 0 || bind(yield, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(yield, 8) < 0)
		return err_errno(e, -errno, "cannot listen for sessions");
	while (io_now_ns() - begun < TIME_NS && !turn(&f, yield, io_now_ns() - begun < BINDING_NS))
		reap(&f);
	for (size_t i = 0; i < f.n; i++)
		close_fd(f.places[i].fd);
	/* Who asks waits for the end of what he reads here, or for that of the listener. */
	unlinkat(dir, name, 0);
	return 0;
}

void vnet_forward_stop(const char *runtime)
{
	struct err ignored = {0};
	int dir = vnet_ondemand_directory(runtime, &ignored), stopped = 0;
	DIR *d = dir < 0 ? NULL : fdopendir(dir);

	for (struct dirent *x; d && stopped < MAX_STOPPED && (x = readdir(d));) {
		_cleanup_close_ int sock = -1;
		struct sockaddr_un a;
		struct pollfd p;

		if (strncmp(x->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		yield_address(&a, dir, x->d_name);
		sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (sock < 0 || connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0) {
			unlinkat(dir, x->d_name, 0); /* it was killed */
			continue;
		}
		p = (struct pollfd){sock, POLLIN, 0};
		poll(&p, 1, 1000);
		stopped++;
	}
	if (d)
		closedir(d);
}

/* ---- there ----------------------------------------------------------------------------------- */

static void copy(int from, int to)
{
	static char room[1 << 16];

	for (;;) {
		ssize_t n = read(from, room, sizeof(room));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 || io_write_full(to, room, (size_t)n) < 0)
			return;
	}
}

int vnet_forward_reach(const char *port, struct err *e)
{
	struct sockaddr_storage sa;
	_cleanup_close_ int fd = -1;
	struct place p;
	socklen_t len;
	pid_t child;

	if (parse_place(port, strlen(port), &p, e) < 0)
		return e->error;
	if (p.any)
		p.at = vnet_endpoint_v4((struct in_addr){htonl(INADDR_LOOPBACK)}, p.at.port);
	len = vnet_endpoint_to_sockaddr(&p.at, &sa);
	fd = socket(p.at.family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&sa, len) < 0)
		return err_errno(e, -errno, "port %s", p.text);
	signal(SIGPIPE, SIG_IGN);
	child = fork();
	if (child == 0) {
		copy(STDIN_FILENO, fd);
		shutdown(fd, SHUT_WR);
		_exit(0);
	}
	copy(fd, STDOUT_FILENO);
	if (child > 0) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return 0;
}
