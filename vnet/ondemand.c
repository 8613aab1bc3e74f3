// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      RUNTIME/.gateway/socket         where the gateway listens
 *      RUNTIME/.gateway/lock           held while the socket is made or removed, never for long
 *      RUNTIME/.gateway/log            the gateway's stderr
 *      RUNTIME/.gateway/lent-ID        where a session that arrives finds its gateway (away.h)
 *
 * Whoever finds nobody listening makes the listening socket itself, and hands it to the gateway it
 * starts: from that moment on connecting succeeds, and nobody waits for a process to come up.
 * Under the lock only one of many first clients does so.
 *
 * A gateway that wants to end takes the name away, under the lock, looks whether somebody has
 * connected meanwhile, and if so puts it back.  So a connection either meets a gateway that serves
 * it, or the next one.
 */
#include "vnet/ondemand.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "base/base.h"

#define BACKLOG 64

static struct sockaddr_un address(int dir)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	/* Through /proc, since the directory's own path may be longer than an address. */
	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d/socket", dir);
	return a;
}

static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* A connected socket or a negative errno. */
static int try_connect(int dir)
{
	struct sockaddr_un a = address(dir);
	_cleanup_close_ int sock = new_socket();

	if (sock < 0 || connect(sock, (struct sockaddr *)&a, sizeof(a)) < 0)
		return -errno;
	return take_fd(&sock);
}

static int open_directory(const char *runtime, bool make, struct err *e)
{
	_cleanup_free_ char *path = NULL;
	int dir;

	if (asprintf(&path, "%s/.gateway", runtime) < 0)
		return err_errno(e, -ENOMEM, "gateway");
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_errno(e, -errno, "cannot make %s", path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (dir < 0)
		return errno == ENOENT ? -ENOENT : err_errno(e, -errno, "%s", path);
	return dir;
}

int vnet_ondemand_directory(const char *runtime, struct err *e)
{
	return open_directory(runtime, true, e);
}

/* In the grandchild: becomes the gateway. */
static void become_gateway(int listener, int dir, int log)
{
	static char name[] = "podrun", command[] = "gateway", serve[] = "--serve";
	char *const argv[] = {name, command, serve, NULL};
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	int null = open("/dev/null", O_RDWR);
	sigset_t none;

	setsid();
	umask(077);
	/* Out of the way of the low numbers first. */
	listener = fcntl(listener, F_DUPFD, 10);
	dir = fcntl(dir, F_DUPFD, 10);
	log = fcntl(log, F_DUPFD, 10);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(log, 2) < 0 ||
		dup2(listener, VNET_ONDEMAND_LISTENER) < 0 ||
		dup2(dir, VNET_ONDEMAND_DIRECTORY) < 0 || chdir("/") < 0)
		_exit(125);
	close_range(VNET_ONDEMAND_DIRECTORY + 1, ~0u, 0);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv("/proc/self/exe", argv);
	_exit(125);
}

/* A grandchild, so that nobody has to wait for it. */
static int spawn(int listener, int dir, int log)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		pid_t grandchild = fork();

		if (grandchild == 0)
			become_gateway(listener, dir, log);
		_exit(grandchild < 0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0 || status)
		return -EAGAIN;
	return 0;
}

/* The lock is held. */
static int start_gateway(int dir, struct err *e)
{
	struct sockaddr_un a = address(dir);
	_cleanup_close_ int listener = new_socket(), log = -1;
	int r;

	if (unlinkat(dir, "socket", 0) < 0 && errno != ENOENT)
		return err_errno(e, -errno, "cannot start a gateway");
	log = openat(
		dir, "log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (log < 0 || listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 ||
		listen(listener, BACKLOG) < 0)
		return err_errno(e, -errno, "cannot start a gateway");
	r = spawn(listener, dir, log);
	if (r < 0) {
		unlinkat(dir, "socket", 0);
		return err_errno(e, r, "cannot start a gateway");
	}
	return 0;
}

static int take_lock(int dir, int how)
{
	_cleanup_close_ int lock =
		openat(dir, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (lock < 0 || flock(lock, how) < 0)
		return -errno;
	return take_fd(&lock);
}

int vnet_ondemand_connect(const char *runtime, bool start, struct err *e)
{
	_cleanup_close_ int dir = open_directory(runtime, start, e), lock = -1;
	int sock = dir < 0 ? dir : try_connect(dir);

	if (sock >= 0)
		return sock;
	/* It is there, but does not take clients as fast as they come. */
	if (!start && sock == -EAGAIN)
		return err_errno(e, sock, "cannot reach the gateway");
	if (!start) {
		err_set(e, ERR_NOT_FOUND, -ENOENT, "no gateway is running");
		return err_hint(e, "one is started by the first session with --net vnat");
	}
	if (dir < 0)
		return dir;
	lock = take_lock(dir, LOCK_EX);
	if (lock < 0)
		return err_errno(e, lock, "cannot start a gateway");
	sock = try_connect(dir);
	if (sock >= 0)
		return sock;
	if (sock != -ENOENT && sock != -ECONNREFUSED)
		return err_errno(e, sock, "cannot reach the gateway");
	if (start_gateway(dir, e) < 0)
		return e->error;
	sock = try_connect(dir);
	return sock < 0 ? err_errno(e, sock, "cannot reach the gateway") : sock;
}

bool vnet_ondemand_retire(int directory, int listener)
{
	_cleanup_close_ int lock = take_lock(directory, LOCK_EX);
	struct pollfd p = {.fd = listener, .events = POLLIN};

	if (lock < 0 || renameat(directory, "socket", directory, "socket.old") < 0)
		return errno == ENOENT;
	if (poll(&p, 1, 0) == 1) {
		renameat(directory, "socket.old", directory, "socket");
		return false;
	}
	unlinkat(directory, "socket.old", 0);
	return true;
}
