// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A child that executes podrun-display, with what it needs as descriptors at fixed numbers, and
 * without privilege over anything else: what viewers and the session's X server send is read
 * there, not in the supervisor.  What it may take of memory has a limit; at its end another one is
 * started.  Its end is that of the socket to it.
 */
#include "supervisor/screen/server.h"

#include <assert.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

#define PATIENCE_MS 2000 /* for the end of one that was left */
/* Bytes of its own memory: XCB takes as much for a reply as the session's X server says there is.
 */
#define MEMORY_MAX (1ull << 30)
#define N_FDS 4
#define PROGRAM (3 + N_FDS) /* behind them, until it is executed */

struct screen_server {
	pid_t pid;
	int control;
	struct event *readable;
	const struct screen_server_ops *ops;
	void *ctx;
	bool left;
};

static_assert(DISPLAY_SERVE_LISTENER == 3 && DISPLAY_SERVE_CONTROL == 4 &&
		      SCREEN_SERVER_FILES == 5 && SCREEN_SERVER_SHM == 6,
	"in the order of become()'s descriptors");

/* In the child. */
static _Noreturn void become(const struct screen_server_config *c, int control, pid_t parent)
{
	const int fds[N_FDS] = {c->listener, control, c->files, c->shm};
	char number[16], size[32];
	char *const argv[] = {(char *)"podrun", (char *)"display", (char *)"--serve",
		(char *)"--number", number, (char *)"--size", size, (char *)c->name, NULL};
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	int high[N_FDS], program = fcntl(c->program, F_DUPFD, PROGRAM + 1);
	sigset_t none;

	snprintf(number, sizeof(number), "%u", c->number);
	snprintf(size, sizeof(size), "%ux%u", c->width, c->height);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	for (int i = 0; i < N_FDS; i++)
		high[i] = fcntl(fds[i], F_DUPFD, PROGRAM + 1);
	for (int i = 0; i < N_FDS; i++)
		if (high[i] < 0 || dup2(high[i], 3 + i) < 0)
			_exit(125);
	if (program < 0 || dup3(program, PROGRAM, O_CLOEXEC) < 0)
		_exit(125);
	close_range(PROGRAM + 1, ~0u, 0);
	for (int sig = 1; sig < _NSIG; sig++)
		sigaction(sig, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	proc_limit_memory(MEMORY_MAX);
	fexecve(PROGRAM, argv, environ);
	_exit(125);
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct screen_server *d = ctx;
	char packet[1 + DISPLAY_SERVE_TEXT + 1];
	ssize_t n = recv(fd, packet, sizeof(packet) - 1, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		event_del(d->readable);
		d->ops->gone(d->ctx);
		return;
	}
	packet[n] = '\0';
	d->ops->heard(d->ctx, (enum display_serve_word)(unsigned char)packet[0], packet + 1);
}

int screen_server_start(struct screen_server **ret, struct event_base *loop,
	const struct screen_server_config *c, const struct screen_server_ops *ops, void *ctx,
	struct err *e)
{
	struct screen_server *d = calloc(1, sizeof(*d));
	pid_t self = getpid();
	int pair[2];

	if (!d || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		free(d);
		return err_errno(e, -EMFILE, "display server");
	}
	*d = (struct screen_server){.control = pair[0], .ops = ops, .ctx = ctx};
	d->readable = event_new(loop, d->control, EV_READ | EV_PERSIST, on_readable, d);
	d->pid = d->readable && event_add(d->readable, NULL) == 0 ? fork() : -1;
	if (d->pid == 0)
		become(c, pair[1], self);
	close(pair[1]);
	if (d->pid < 0) {
		screen_server_free(d);
		return err_errno(e, -EAGAIN, "cannot start a display server");
	}
	*ret = d;
	return 0;
}

void screen_server_say(struct screen_server *d, enum display_serve_word word, const char *text)
{
	char packet[1 + DISPLAY_SERVE_TEXT];
	size_t n = text ? strnlen(text, DISPLAY_SERVE_TEXT) : 0;

	packet[0] = (char)word;
	if (n)
		memcpy(packet + 1, text, n);
	/* One that does not listen is of no use: its end is heard of. */
	if (send(d->control, packet, 1 + n, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && d->pid > 0)
		kill(d->pid, SIGKILL);
}

void screen_server_leave(struct screen_server *d)
{
	event_free(take_ptr(d->readable));
	/* Closed with something unread in it, it would tell of that instead of the last word. */
	shutdown(d->control, SHUT_WR);
	d->left = true;
}

static void await(struct screen_server *d)
{
	_cleanup_close_ int pidfd = d->left ? sys_pidfd_open(d->pid, 0) : -1;
	struct pollfd p = {pidfd, POLLIN, 0};

	if (pidfd < 0 || poll(&p, 1, PATIENCE_MS) != 1)
		kill(d->pid, SIGKILL);
	while (waitpid(d->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

void screen_server_free(struct screen_server *d)
{
	if (!d)
		return;
	if (d->readable)
		event_free(d->readable);
	if (d->pid > 0)
		await(d);
	close_fd(d->control);
	free(d);
}
