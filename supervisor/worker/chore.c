// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The child writes its struct err into a pipe, which is whole or not at all: it is smaller than
 * PIPE_BUF.  The end of the pipe without one is the end of the child.  It dies with the supervisor,
 * and may leave half-done work behind; who starts the same chore later must be able to tell.
 */
#include "supervisor/worker/chore.h"

#include <assert.h>
#include <event2/event.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static_assert(sizeof(struct err) <= PIPE_BUF, "an error is written at once");

struct chore {
	pid_t pid;
	int fd; /* the pipe */
	struct event *readable;
	void (*done)(void *ctx, struct err *e);
	void *ctx;
};

static void reap(struct chore *c)
{
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	c->pid = 0;
}

void chore_free(struct chore *c)
{
	if (!c)
		return;
	if (c->readable)
		event_free(c->readable);
	reap(c);
	close_fd(c->fd);
	free(c);
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct chore *c = ctx;
	struct err e = {0};

	if (io_read_full(fd, &e, sizeof(e)) != sizeof(e))
		err_set(&e, ERR_FAILED, -ECHILD, "the process that was to do it was killed");
	event_del(c->readable);
	reap(c);
	c->done(c->ctx, &e);
}

static _Noreturn void child(int fd, pid_t parent, int (*run)(struct err *e))
{
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	struct err e = {0};
	sigset_t none;

	prctl(PR_SET_NAME, "podrun-chore");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent || dup2(fd, 3) < 0)
		_exit(1);
	close_range(4, ~0u, 0);
	for (int sig = 1; sig < _NSIG; sig++)
		sigaction(sig, &dfl, NULL);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	run(&e);
	_exit(io_write_full(3, &e, sizeof(e)) < 0);
}

int chore_start(struct chore **ret, struct event_base *loop, int (*run)(struct err *e),
	void (*done)(void *ctx, struct err *e), void *ctx, struct err *e)
{
	struct chore *c = calloc(1, sizeof(*c));
	pid_t self = getpid();
	int ends[2];

	if (!c || pipe2(ends, O_CLOEXEC) < 0) {
		free(c);
		return err_errno(e, -EMFILE, "pipe");
	}
	*c = (struct chore){.fd = ends[0], .done = done, .ctx = ctx};
	c->readable = event_new(loop, c->fd, EV_READ | EV_PERSIST, on_readable, c);
	c->pid = c->readable ? fork() : -1;
	if (c->pid == 0)
		child(ends[1], self, run);
	close(ends[1]);
	if (c->pid < 0) {
		chore_free(c);
		return err_errno(e, -EAGAIN, "cannot fork");
	}
	event_add(c->readable, NULL);
	*ret = c;
	return 0;
}
