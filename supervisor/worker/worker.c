// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * This file is the supervisor's half: forking, messages, the end of the process.  What runs in
 * the worker is in worker/main.c.
 */
#include "supervisor/worker/worker.h"

#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/message.h"
#include "supervisor/rewrite/orders.h"
#include "supervisor/rewrite/rewriter.h"

#define PF_EXITING 4 /* linux/sched.h of the kernel; proc(5), flags */

struct worker {
	pid_t pid;
	pid_t rewriter; /* the process, where somebody else kills and awaits it; else 0 */
	int pidfd;
	struct proto_conn *conn;
	struct event *readable, *writable, *ended;
	const struct worker_ops *ops;
	void *ctx;
	bool freed, busy; /* freed from within its own callback */
	struct worker **left; /* where it is kept until it has ended, heard by nobody; or NULL */
	bool over;	  /* nothing more will come */
	bool elsewhere;	  /* in a process that has more to do: its end is the conversation's */
};

static void destroy(struct worker *w)
{
	if (w->readable)
		event_free(w->readable);
	if (w->writable)
		event_free(w->writable);
	if (w->ended)
		event_free(w->ended);
	proto_conn_free(w->conn);
	close_fd(w->pidfd);
	free(w);
}

pid_t worker_pid(const struct worker *w)
{
	return w->pid;
}

void worker_become_rewriter(struct worker *w)
{
	w->elsewhere = true;
	w->rewriter = w->pid;
	w->pid = 0;
}

void worker_kill(struct worker *w)
{
	if (w->pid > 0)
		sys_pidfd_send_signal(w->pidfd, SIGKILL);
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	if (w->pid > 0) {
		worker_kill(w);
		waitpid(w->pid, NULL, __WALL);
		w->pid = 0;
	}
	if (w->busy)
		w->freed = true;
	else
		destroy(w);
}

void worker_leave(struct worker **slot, struct worker *w)
{
	if (w->pid <= 0) {
		worker_free(w);
		return;
	}
	worker_kill(w);
	event_del(w->readable);
	event_del(w->writable);
	w->left = slot;
	*slot = w;
}

/* Hands over every message that is there.  False once @w is freed. */
static bool take_messages(struct worker *w)
{
	struct err e = {0};
	Pb__Worker *m;
	int fds[MESSAGE_MAX_FDS];
	size_t n_fds;
	int r;

	for (;;) {
		r = message_recv_worker(w->conn, &m, fds, MESSAGE_MAX_FDS, &n_fds, &e);
		if (r <= 0)
			break;
		w->busy = true;
		w->ops->message(w->ctx, m, fds, n_fds);
		w->busy = false;
		message_free_worker(m);
		while (n_fds)
			close_fd(fds[--n_fds]);
		if (w->freed) {
			destroy(w);
			return false;
		}
		if (w->left)
			return false;
	}
	if (r < 0)
		event_del(w->readable); /* its end is told by the pidfd */
	w->over = r < 0;
	return true;
}

static void tell_gone(struct worker *w, int status)
{
	w->busy = true;
	w->ops->gone(w->ctx, status);
	w->busy = false;
	if (w->freed)
		destroy(w);
}

/* Its descriptors are closed before it can be waited for.  As far as /proc tells. */
static bool is_ending(pid_t pid)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[32], state;
	const char *rest;
	unsigned long flags;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	r = io_read_file(AT_FDCWD, path, 4096, &text);
	/* Whoever can't be looked at is taken for alive: nobody is to wait for what may not come. */
	if (r < 0 || !buf_cstr(&text))
		return r == -ENOENT || r == -ESRCH;
	rest = strrchr(buf_cstr(&text), ')');
	return rest && sscanf(rest, ") %c %*d %*d %*d %*d %*d %lu", &state, &flags) == 2 &&
	       (state == 'Z' || state == 'X' || flags & PF_EXITING);
}

static void on_readable(evutil_socket_t fd, short what, void *ctx)
{
	struct worker *w = ctx;

	if (take_messages(w) && w->over && w->elsewhere && !is_ending(w->rewriter))
		tell_gone(w, 0);
}

static void on_writable(evutil_socket_t fd, short what, void *ctx)
{
	struct worker *w = ctx;
	struct err e = {0};

	if (proto_conn_flush(w->conn, &e) == 0)
		event_del(w->writable);
}

/* How another's child has ended, who awaits it himself. */
static int peek_status(pid_t pid)
{
	siginfo_t info = {0};

	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 || !info.si_pid)
		return W_EXITCODE(0, SIGKILL);
	return info.si_code == CLD_EXITED ? W_EXITCODE(info.si_status, 0) : info.si_status;
}

static void on_ended(evutil_socket_t fd, short what, void *ctx)
{
	struct worker *w = ctx;
	int status = 0;

	if (w->left) {
		*w->left = NULL;
		worker_free(w);
		return;
	}
	if (!take_messages(w))
		return;
	if (w->elsewhere) {
		event_del(w->ended);
		tell_gone(w, peek_status(w->rewriter));
		return;
	}
	if (waitpid(w->pid, &status, WNOHANG | __WALL) != w->pid)
		return;
	w->pid = 0;
	event_del(w->ended);
	tell_gone(w, status);
}

int worker_send(struct worker *w, const Pb__Worker *m, const int *fds, size_t n_fds, struct err *e)
{
	int r = message_send_worker(w->conn, m, fds, n_fds, e);

	if (r == 1)
		event_add(w->writable, NULL);
	return r < 0 ? err_wrap(e, "worker") : 0;
}

int worker_send_all(
	struct worker *w, const Pb__Worker *m, const int *fds, size_t n_fds, struct err *e)
{
	struct pollfd p = {.fd = proto_conn_fd(w->conn), .events = POLLOUT};
	int r = message_send_worker(w->conn, m, fds, n_fds, e);

	while (r == 1)
		if (poll(&p, 1, -1) == 1)
			r = proto_conn_flush(w->conn, e);
	return r < 0 ? err_wrap(e, "worker") : 0;
}

int worker_say_end(struct err *e, int status, bool rewriter)
{
	const char *who = rewriter ? "the process that rewrites the session's names" : "the worker";

	if (WIFSIGNALED(status))
		return err_set(e, ERR_FAILED, -ECHILD, "%s was killed by signal %d (%s)", who,
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (rewriter && WEXITSTATUS(status) == REWRITER_INIT_ENDED)
		return err_set(e, ERR_FAILED, -ECHILD, "the session's pid 1 has ended");
	return err_set(e, ERR_FAILED, -ECHILD, "%s ended without a result (exit code %d)", who,
		WEXITSTATUS(status));
}

static int make_worker(
	struct worker **ret, const struct worker_ops *ops, void *ctx, int pair[2], struct err *e)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return err_errno(e, -ENOMEM, "worker");
	w->pidfd = -1;
	w->ops = ops;
	w->ctx = ctx;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		free(w);
		return err_errno(e, -errno, "worker");
	}
	*ret = w;
	return 0;
}

/* Takes @sock.  On failure @w is freed. */
static int listen_to(struct worker *w, struct event_base *loop, int sock, struct err *e)
{
	io_set_nonblock(sock, true);
	if (proto_conn_new(&w->conn, sock, e) < 0) {
		close(sock);
		worker_free(w);
		return e->error;
	}
	w->readable = event_new(loop, sock, EV_READ | EV_PERSIST, on_readable, w);
	w->writable = event_new(loop, sock, EV_WRITE | EV_PERSIST, on_writable, w);
	if (w->pidfd >= 0)
		w->ended = event_new(loop, w->pidfd, EV_READ | EV_PERSIST, on_ended, w);
	if (!w->readable || !w->writable || !w->ended) {
		worker_free(w);
		return err_errno(e, -ENOMEM, "worker");
	}
	event_add(w->readable, NULL);
	event_add(w->ended, NULL);
	return 0;
}

/* Forks; in the child runs @child(socket, @arg), which does not return. */
static int start(struct worker **ret, struct event_base *loop, void (*child)(int, const void *),
	const void *arg, const struct worker_ops *ops, void *ctx, struct err *e)
{
	struct worker *w;
	int pair[2], r = make_worker(&w, ops, ctx, pair, e);

	if (r < 0)
		return r;
	w->pid = fork();
	if (w->pid == 0) {
		close(pair[0]);
		child(pair[1], arg);
		_exit(125);
	}
	r = w->pid < 0 ? -errno : 0;
	close(pair[1]);
	if (r < 0) {
		close(pair[0]);
		free(w);
		return err_errno(e, r, "cannot fork a worker");
	}
	w->pidfd = sys_pidfd_open(w->pid, 0);
	r = listen_to(w, loop, pair[0], e);
	if (r == 0)
		*ret = w;
	return r;
}

int worker_start_order(struct worker **ret, struct event_base *loop, pid_t rewriter, int orders,
	const struct worker_dump *what, const struct worker_ops *ops, void *ctx, struct err *e)
{
	struct worker *w;
	int pair[2], r = make_worker(&w, ops, ctx, pair, e);

	if (r < 0)
		return r;
	w->elsewhere = true;
	w->rewriter = rewriter;
	w->pidfd = sys_pidfd_open(rewriter, 0);
	r = listen_to(w, loop, pair[0], e);
	if (r == 0) {
		r = orders_send_dump(orders, what, pair[1], e);
		if (r < 0)
			worker_free(w);
		else
			*ret = w;
	}
	close(pair[1]);
	return r;
}

int worker_start_dump(struct worker **ret, struct event_base *loop, const struct worker_dump *what,
	const struct worker_ops *ops, void *ctx, struct err *e)
{
	return start(ret, loop, worker_main_dump, what, ops, ctx, e);
}

int worker_start_mend(struct worker **ret, struct event_base *loop, const struct worker_dump *what,
	const struct worker_ops *ops, void *ctx, struct err *e)
{
	return start(ret, loop, worker_main_mend, what, ops, ctx, e);
}

int worker_start_convert(struct worker **ret, struct event_base *loop,
	const struct worker_convert *what, const struct worker_ops *ops, void *ctx, struct err *e)
{
	return start(ret, loop, worker_main_convert, what, ops, ctx, e);
}

int worker_start_restore(struct worker **ret, struct event_base *loop,
	const struct worker_restore *what, const struct worker_ops *ops, void *ctx, struct err *e)
{
	return start(ret, loop, worker_main_restore, what, ops, ctx, e);
}
