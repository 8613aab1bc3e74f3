// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Joining has an order: the user namespace first, for it gives the capabilities that the others
 * ask for.  The pid namespace holds for children only, so the function then runs in a grandchild.
 * The outcome travels through a pipe of its own, which a struct err always fits in one write.
 */
#include "ckpt/enter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t wait_for(pid_t pid, int *ret_status)
{
	pid_t r;

	do
		r = waitpid(pid, ret_status, __WALL);
	while (r < 0 && errno == EINTR);
	return r;
}

static int join(const struct ckpt_world *w, int namespaces, struct err *e)
{
	const struct {
		int flag, fd;
		const char *name;
	} order[] = {
		{CLONE_NEWUSER, w->ns_user, "user"},
		{CLONE_NEWPID, w->ns_pid, "pid"},
		{CLONE_NEWNS, w->ns_mnt, "mount"},
		{CLONE_NEWNET, w->ns_net, "net"},
		{CLONE_NEWIPC, w->ns_ipc, "ipc"},
		{CLONE_NEWUTS, w->ns_uts, "uts"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		if (!(namespaces & order[i].flag) || order[i].fd < 0)
			continue;
		if (setns(order[i].fd, order[i].flag) < 0)
			return err_errno(
				e, -errno, "cannot join the session's %s namespace", order[i].name);
	}
	return 0;
}

/* The grandchild that a pid namespace needs.  Returns in it; the child in between ends here. */
static int become_member(struct err *e)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return err_errno(e, -errno, "fork");
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		return 0;
	}
	if (wait_for(pid, &status) < 0 || !WIFEXITED(status))
		_exit(1);
	_exit(WEXITSTATUS(status));
}

static void __attribute__((noreturn)) inside(const struct ckpt_world *w, int namespaces,
	ckpt_enter_fn run, void *ctx, int sock, int status)
{
	struct err err = {0};
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_IGN);
	r = join(w, namespaces | CLONE_NEWUSER, &err);
	if (r >= 0 && (namespaces & CLONE_NEWPID) && w->ns_pid >= 0)
		r = become_member(&err);
	if (r >= 0)
		r = run(sock, ctx, &err);
	if (r < 0 && !err_is(&err))
		err_errno(&err, r, "inside the session");
	io_write_full(status, &err, sizeof(err));
	_exit(r < 0);
}

int ckpt_enter_begin(struct ckpt_enter *ret, const struct ckpt_world *w, int namespaces,
	ckpt_enter_fn run, void *ctx, struct err *e)
{
	int sock[2], status[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sock) < 0)
		return err_errno(e, -errno, "socketpair");
	if (pipe2(status, O_CLOEXEC) < 0) {
		int r = err_errno(e, -errno, "pipe");

		close(sock[0]);
		close(sock[1]);
		return r;
	}
	pid = fork();
	if (pid == 0) {
		close(sock[0]);
		close(status[0]);
		inside(w, namespaces, run, ctx, sock[1], status[1]);
	}
	close(sock[1]);
	close(status[1]);
	if (pid < 0) {
		int r = err_errno(e, -errno, "fork");

		close(sock[0]);
		close(status[0]);
		return r;
	}
	*ret = (struct ckpt_enter){.pid = pid, .sock = sock[0], .status = status[0]};
	return 0;
}

int ckpt_enter_end(struct ckpt_enter *en, struct err *e)
{
	struct err story = {0};
	ssize_t n;
	int status;

	en->sock = close_fd(en->sock);
	n = io_read_full(en->status, &story, sizeof(story));
	en->status = close_fd(en->status);
	wait_for(en->pid, &status);
	if (n != sizeof(story))
		return err_set(e, ERR_FAILED, -ECHILD, "a helper inside the session died");
	if (!err_is(&story))
		return 0;
	if (e)
		*e = story;
	return story.error;
}

static int collect(int sock, size_t max, struct buf *ret, struct err *e)
{
	for (;;) {
		void *room = buf_reserve(ret, 65536);
		ssize_t n;

		if (!room)
			return err_errno(e, -ENOMEM, "an answer from inside the session");
		do
			n = read(sock, room, 65536);
		while (n < 0 && errno == EINTR);
		/* A helper that ended with something unread in its socket: its story tells. */
		if (n < 0 && errno != ECONNRESET)
			return err_errno(e, -errno, "an answer from inside the session");
		if (n <= 0)
			return 0;
		ret->len += (size_t)n;
		if (ret->len > max)
			return err_set(e, ERR_FAILED, -EFBIG,
				"an answer from inside the session is too long");
	}
}

int ckpt_enter_read(const struct ckpt_world *w, int namespaces, ckpt_enter_fn run, void *ctx,
	size_t max, struct buf *ret, struct err *e)
{
	struct ckpt_enter en;
	int r, end;

	r = ckpt_enter_begin(&en, w, namespaces, run, ctx, e);
	if (r < 0)
		return r;
	r = collect(en.sock, max, ret, e);
	end = ckpt_enter_end(&en, r < 0 ? NULL : e);
	return r < 0 ? r : end;
}

int ckpt_enter_fd(
	const struct ckpt_world *w, int namespaces, ckpt_enter_fn run, void *ctx, struct err *e)
{
	struct ckpt_enter en;
	int r, fd = -1;
	size_t n = 0;
	char byte;

	r = ckpt_enter_begin(&en, w, namespaces, run, ctx, e);
	if (r < 0)
		return r;
	io_recv_fds(en.sock, &byte, 1, &fd, 1, &n);
	r = ckpt_enter_end(&en, e);
	if (r < 0) {
		close_fd(n ? fd : -1);
		return r;
	}
	if (!n)
		return err_set(
			e, ERR_FAILED, -EPROTO, "no descriptor came from inside the session");
	return fd;
}

/* ---- a child that shares memory -------------------------------------------------------------- */

struct visit {
	const struct ckpt_world *w;
	int namespaces;
	int (*run)(void *ctx, struct err *e);
	void *ctx;
	struct err err;
	bool done; /* it has come to its end, well or not */
};

/* As vfork(2): this thread sleeps until the child has ended.  0 or -errno. */
static int __attribute__((noinline)) lend_thread(void (*run)(struct visit *v), struct visit *v)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		run(v);
		_exit(0);
	}
	if (pid < 0)
		return -errno;
	return wait_for(pid, &status) < 0 ? -errno : 0;
}

static void visit(struct visit *v)
{
	int r = v->run(v->ctx, &v->err);

	if (r < 0 && !err_is(&v->err))
		err_errno(&v->err, r, "inside the session");
	v->done = true;
}

static void visit_by_child(struct visit *v)
{
	int r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = join(v->w, v->namespaces | CLONE_NEWUSER, &v->err);
	if (r >= 0 && !((v->namespaces & CLONE_NEWPID) && v->w->ns_pid >= 0)) {
		visit(v);
		return;
	}
	if (r >= 0) {
		r = lend_thread(visit, v);
		if (r < 0)
			err_errno(&v->err, r, "fork");
	}
	v->done |= r < 0;
}

int ckpt_enter_call(const struct ckpt_world *w, int namespaces,
	int (*run)(void *ctx, struct err *e), void *ctx, struct err *e)
{
	struct visit v = {.w = w, .namespaces = namespaces, .run = run, .ctx = ctx};
	sigset_t all, before;
	int r;

	/* A handler would not know whose memory it works on. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = lend_thread(visit_by_child, &v);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		return err_errno(e, r, "fork");
	if (!v.done)
		return err_set(e, ERR_FAILED, -ECHILD, "a helper inside the session died");
	if (!err_is(&v.err))
		return 0;
	if (e)
		*e = v.err;
	return v.err.error;
}
