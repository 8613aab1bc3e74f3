// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      supervisor == socket == carry ===== ssh ===== join == socket == gateway
 *      session's TUN ============'                     '== socket, in place of a TUN
 *
 * Supervisor and gateway speak with each other as if they were on one host (client.h).  What lies
 * between them is a line (away_line.h).
 *
 *      supervisor == socket == borrow ===== ssh ===== lend == socket == gateway
 *      where the session goes                         where it comes from
 *
 * A session that is moved away from its gateway goes on with it by the same means, but the line is
 * made from the gateway's side, for that is who has a way to the other.  Borrow listens at
 * RUNTIME/.gateway/lent-ID, and says so with an empty frame; the first who connects has it.  Until
 * the session is given away the line exists as long as the process that moves it, so that whatever
 * goes wrong leaves the connections here.
 */
#include "vnet/away.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/away_lent.h"
#include "vnet/away_line.h"
#include "vnet/nsupdate.h"
#include "vnet/nsupdate_send.h"
#include "vnet/ondemand.h"

#define ANSWER_MS 30000
#define DONE	  "done"

/* ---- the two ends ------------------------------------------------------------------------ */

/* It may come with an image: what looks like an option would be one of ssh's. */
static bool is_host(const char *host)
{
	return host[0] && host[0] != '-';
}

/*
 * As migrate's: words of the command are for the shell; the host and what runs there are arguments.
 */
static pid_t start_ssh(const char *host, const char *there, int *ret_in, int *ret_out)
{
	const char *command = getenv("PODRUN_SSH");
	char script[4096];
	int in[2], out[2];
	pid_t pid;

	snprintf(script, sizeof(script), "exec %s \"$@\"", command ? command : "ssh");
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		if (dup2(in[0], STDIN_FILENO) < 0 || dup2(out[1], STDOUT_FILENO) < 0)
			_exit(127);
		execl("/bin/sh", "sh", "-c", script, "sh", host, there, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	*ret_in = out[0];
	*ret_out = in[1];
	return pid < 0 ? -errno : pid;
}

int vnet_away_carry(const char *host)
{
	struct vnet_away_line a = {.control = VNET_AWAY_SOCKET, .packets = -1, .theirs = -1, .carries = true};
	struct err e = {0};
	pid_t ssh;

	if (!is_host(host)) {
		log_error("'%s' is no host", host);
		return 1;
	}
	signal(SIGPIPE, SIG_IGN);
	io_set_cloexec(a.control, true);
	ssh = start_ssh(host, "podrun gateway --join", &a.in, &a.out);
	if (ssh < 0 || vnet_away_line(&a, &e) < 0) {
		log_error("the gateway at %s can't be reached", host);
		return 1;
	}
	close(a.out); /* the other end ends, and ssh does */
	while (waitpid(ssh, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* Whoever is at the other end of the stream is attached to the gateway of this user. */
static int join(struct vnet_away_line *a, const char *runtime, struct err *e)
{
	int pair[2], r;

	a->control = vnet_ondemand_connect(runtime, true, e);
	if (a->control < 0)
		return a->control;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_errno(e, -errno, "socket");
	for (int i = 0; i < 2; i++)
		setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &(int){4 << 20}, sizeof(int));
	a->packets = pair[0];
	a->theirs = pair[1];
	r = vnet_away_line(a, e);
	close_fd(a->control);
	return r;
}

int vnet_away_join(const char *runtime, struct err *e)
{
	struct vnet_away_line a = {.in = STDIN_FILENO, .out = STDOUT_FILENO, .called = true};

	signal(SIGPIPE, SIG_IGN);
	return join(&a, runtime, e);
}

int vnet_away_connect(const char *host, struct err *e)
{
	char *argv[] = {(char *)"podrun", (char *)"gateway", (char *)"--carry", (char *)host, NULL};
	int pair[2], status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "socket");
	child = fork();
	if (child == 0) {
		/* Nobody's child, so that nobody has to wait for it. */
		if (fork() != 0)
			_exit(0);
		setsid();
		if (dup2(pair[1], VNET_AWAY_SOCKET) < 0)
			_exit(127);
		syscall(SYS_close_range, VNET_AWAY_SOCKET + 1, ~0u, 0);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	close(pair[1]);
	if (child < 0) {
		close(pair[0]);
		return err_errno(e, -errno, "fork");
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return pair[0];
}

/* ---- lent --------------------------------------------------------------------------------- */

int vnet_away_borrow(const char *runtime, const char *id, struct err *e)
{
	struct vnet_away_line a = {.in = STDIN_FILENO,
		.out = STDOUT_FILENO,
		.packets = -1,
		.theirs = -1,
		.carries = true,
		.called = true};
	_cleanup_close_ int dir = vnet_ondemand_directory(runtime, e), listener = -1;
	struct sockaddr_un at;

	signal(SIGPIPE, SIG_IGN);
	if (dir < 0 || vnet_away_lent_address(dir, id, &at, e) < 0)
		return e->error;
	listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	unlink(at.sun_path);
	if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
		listen(listener, 1) < 0)
		return err_errno(e, -errno, "cannot listen for the session");
	a.control = vnet_away_say_listens(a.out);
	if (a.control == 0)
		a.control = vnet_away_accept_one(listener, a.in);
	unlink(at.sun_path);
	listener = close_fd(listener);
	if (a.control < 0)
		return 0; /* the move has come to nothing */
	return vnet_away_line(&a, e);
}

int vnet_away_lend(
	const char *runtime, const char *host, const char *podrun, const char *id, struct err *e)
{
	struct vnet_away_line a = {.packets = -1, .theirs = -1};
	char there[4096];
	pthread_t t;
	pid_t ssh;
	int r;

	signal(SIGPIPE, SIG_IGN);
	snprintf(there, sizeof(there), "%s gateway --borrow %s", podrun, id);
	ssh = start_ssh(host, there, &a.in, &a.out);
	if (ssh < 0 || !vnet_away_hear_listens(a.in))
		return err_set(
			e, ERR_PEER, -ECONNRESET, "%s does not take the session's line", host);
	if (io_write_full(STDOUT_FILENO, "\n", 1) < 0 || !vnet_away_await_session(a.in))
		return 0;
	if (pthread_create(&t, NULL, vnet_away_await_word, NULL) != 0)
		return err_errno(e, -EAGAIN, "thread");
	pthread_detach(t);
	r = join(&a, runtime, e);
	close(a.out);
	while (waitpid(ssh, NULL, 0) < 0 && errno == EINTR)
		continue;
	return r;
}

/* ---- a name in DNS ------------------------------------------------------------------------- */

/* A line, or what there is of it at the end of the stream or at @until: then false. */
static bool read_line(int in, uint64_t until, char *ret, size_t room)
{
	uint64_t now = io_now_ns() / 1000000;
	struct pollfd p = {.fd = in, .events = POLLIN};
	bool whole = false;
	size_t n = 0;

	for (; now < until && n + 1 < room; now = io_now_ns() / 1000000) {
		ssize_t got = 0;

		if (poll(&p, 1, (int)(until - now)) > 0)
			got = read(in, ret + n, 1);
		else if (errno == EINTR)
			continue;
		whole = got == 1 && ret[n] == '\n';
		if (got != 1 || whole)
			break;
		n++;
	}
	ret[n] = '\0';
	return whole || n + 1 == room;
}

/* The last one that says anything: before it there may be what the shell there says to whoever comes. */
static void read_answer(int in, char *ret, size_t room)
{
	uint64_t until = io_now_ns() / 1000000 + ANSWER_MS;
	char line[sizeof(((struct err *)NULL)->msg)];
	bool more;

	do {
		more = read_line(in, until, line, sizeof(line));
		if (line[strspn(line, " \r")])
			snprintf(ret, room, "%s", line);
	} while (more && strcmp(ret, DONE) != 0);
}

int vnet_away_withdraw(const char *host, const char *update, struct err *e)
{
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);
	char answer[sizeof(e->msg)] = "";
	int in, out;
	pid_t ssh;

	ssh = is_host(host) ? start_ssh(host, "podrun gateway --withdraw", &in, &out) : -EINVAL;
	if (ssh < 0) {
		signal(SIGPIPE, old);
		return err_errno(e, (int)ssh, "ssh to '%.64s'", host);
	}
	/* As input it needs no quotes of a shell. */
	if (io_write_full(out, update, strlen(update)) == 0 && io_write_full(out, "\n", 1) == 0)
		read_answer(in, answer, sizeof(answer));
	close(out);
	close(in);
	kill(ssh, SIGTERM);
	while (waitpid(ssh, NULL, 0) < 0 && errno == EINTR)
		continue;
	signal(SIGPIPE, old);
	if (strcmp(answer, DONE) == 0)
		return 0;
	return answer[0] ? err_set(e, ERR_FAILED, -EACCES, "%s", answer)
			 : err_set(e, ERR_PEER, -ECONNRESET, "%s has not answered", host);
}

void vnet_away_withdraw_here(void)
{
	char update[VNET_NSUPDATE_TEXT];
	struct err e = {0};

	read_line(STDIN_FILENO, io_now_ns() / 1000000 + ANSWER_MS, update, sizeof(update));
	vnet_nsupdate_withdraw(update, &e);
	printf("%s\n", err_is(&e) ? e.msg : DONE);
}
