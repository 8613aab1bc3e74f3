// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/filter/install.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/base.h"

#define MAX_HELD	   256
#define ERESTARTNOINTR	   513 /* of the kernel's own numbers */
#define TRACER_PATIENCE_NS (30 * 1000000000ULL)
#define NAP_US		   500

/* Seen by workers, too. */
struct shared {
	_Atomic int phase; /* enum ckpt_phase, as the worker tells */
	struct {
		_Atomic pid_t tid;
		_Atomic uint64_t id; /* 0: nobody; taken by whoever answers */
	} held[MAX_HELD];
};

struct install {
	struct install *next;
	struct installs_call call;
	pid_t worker;
	int sock;      /* to the worker, -1: held */
	bool expected; /* the worker is about to make its call */
};

struct installs {
	int listener, epoll;
	pid_t init_pid;
	struct ckpt_filters *table;
	struct shared *shared;
	struct install *list;
	unsigned under_way; /* how many have a worker */
	bool holding;
	void (*idle)(void *ctx);
	void *idle_ctx;
};

int installs_create(struct installs **ret, int listener, pid_t init_pid, struct err *e)
{
	struct epoll_event event = {.events = EPOLLIN};
	struct installs *s = calloc(1, sizeof(*s));

	if (!s)
		return err_errno(e, -ENOMEM, "filters");
	s->listener = listener;
	s->init_pid = init_pid;
	s->table = ckpt_filters_new();
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->shared = mmap(NULL, sizeof(*s->shared), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!s->table || s->shared == MAP_FAILED ||
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, listener, &event) < 0) {
		installs_destroy(s);
		return err_errno(e, -ENOMEM, "filters");
	}
	*ret = s;
	return 0;
}

static void drop(struct installs *s, struct install *i)
{
	struct install **p = &s->list;

	while (*p != i)
		p = &(*p)->next;
	*p = i->next;
	if (i->worker > 0) {
		kill(i->worker, SIGKILL);
		waitpid(i->worker, NULL, __WALL);
		s->under_way--;
	}
	/* Another worker may still have a copy of it. */
	if (i->sock >= 0)
		epoll_ctl(s->epoll, EPOLL_CTL_DEL, i->sock, NULL);
	close_fd(i->sock);
	free(i->call.code);
	free(i);
}

void installs_destroy(struct installs *s)
{
	if (!s)
		return;
	while (s->list)
		drop(s, s->list);
	ckpt_filters_free(s->table);
	if (s->shared && s->shared != MAP_FAILED)
		munmap(s->shared, sizeof(*s->shared));
	close_fd(s->epoll);
	free(s);
}

struct ckpt_filters *installs_table(struct installs *s)
{
	return s->table;
}

int installs_fd(const struct installs *s)
{
	return s->epoll;
}

static bool is_waiting(const struct installs *s, uint64_t id)
{
	return ioctl(s->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id) == 0;
}

static void answer(const struct installs *s, uint64_t id, int error, uint32_t flags)
{
	struct seccomp_notif_resp a = {.id = id, .error = error, .flags = flags};

	ioctl(s->listener, SECCOMP_IOCTL_NOTIF_SEND, &a);
}

/* ---- the worker --------------------------------------------------------------------------- */

enum { WORKER_DONE, WORKER_FAILED, WORKER_TRACED };

struct work {
	const struct installs *s;
	const struct install *i;
	int sock;
};

/* Should nothing come of it, this is what the task sees. */
static void work_answer(void *ctx)
{
	const struct work *w = ctx;

	answer(w->s, w->i->call.id, -ENOMEM, 0);
}

static uint32_t work_number(void *ctx, uint32_t parent)
{
	const struct work *w = ctx;
	uint32_t number;

	if (send(w->sock, &parent, sizeof(parent), MSG_NOSIGNAL) != sizeof(parent) ||
		recv(w->sock, &number, sizeof(number), 0) != sizeof(number))
		return 0;
	return number;
}

/* Traced by somebody inside the session?  If not it is by a worker like us, and not for long. */
static bool traced_inside(pid_t tid)
{
	_cleanup_close_ int proc = proc_open(NULL);
	struct proc_status own, tracer;

	return proc < 0 || proc_read_status(proc, tid, &own, NULL) < 0 || !own.tracer ||
	       proc_read_status(proc, own.tracer, &tracer, NULL) < 0 ||
	       tracer.ns_depth >= own.ns_depth;
}

static void work(struct work *w)
{
	uint64_t deadline = io_now_ns() + TRACER_PATIENCE_NS;
	const struct installs_call *c = &w->i->call;
	struct ckpt_install what = {.tid = c->tid,
		.init_pid = w->s->init_pid,
		.flags = c->flags,
		.code = c->code,
		.n = c->n,
		.strict = c->strict,
		.answer = work_answer,
		.number = work_number,
		.ctx = w};
	struct err e = {0};
	int r;

	prctl(PR_SET_NAME, "podrun-install");
	signal(SIGTERM, SIG_DFL);
	signal(SIGRTMIN, SIG_IGN);
	while ((r = ckpt_install(&what, &e)) == -EPERM && is_waiting(w->s, c->id)) {
		if (traced_inside(c->tid) || io_now_ns() > deadline)
			_exit(WORKER_TRACED);
		usleep(NAP_US);
	}
	if (r < 0 && r != -ESRCH)
		log_warn("%s", e.msg);
	_exit(r < 0 ? WORKER_FAILED : WORKER_DONE);
}

/* ---- the supervisor ----------------------------------------------------------------------- */

static void fail(struct installs *s, struct install *i)
{
	answer(s, i->call.id, -ENOMEM, 0);
	drop(s, i);
}

static void hold(struct installs *s, struct install *i)
{
	for (size_t k = 0; k < MAX_HELD; k++) {
		if (s->shared->held[k].id)
			continue;
		s->shared->held[k].tid = i->call.tid;
		s->shared->held[k].id = i->call.id;
		return;
	}
	fail(s, i);
}

static void start(struct installs *s, struct install *i)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = i};
	int pair[2];

	if (s->holding) {
		hold(s, i);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		fail(s, i);
		return;
	}
	i->worker = fork();
	if (i->worker == 0) {
		close(pair[0]);
		work(&(struct work){s, i, pair[1]});
	}
	close(pair[1]);
	i->sock = pair[0];
	if (i->worker > 0)
		s->under_way++;
	if (i->worker < 0 || epoll_ctl(s->epoll, EPOLL_CTL_ADD, i->sock, &event) < 0)
		fail(s, i);
}

void installs_begin(struct installs *s, const struct installs_call *call)
{
	struct install *i = calloc(1, sizeof(*i));

	if (!i) {
		free(call->code);
		answer(s, call->id, -ENOMEM, 0);
		return;
	}
	i->call = *call;
	i->sock = -1;
	i->next = s->list;
	s->list = i;
	start(s, i);
}

bool installs_expects(struct installs *s, pid_t tid)
{
	for (struct install *i = s->list; i; i = i->next) {
		bool expected = i->expected && i->call.tid == tid;

		if (expected) {
			i->expected = false;
			return true;
		}
	}
	return false;
}

/* The worker has told what the new filter stands on. */
static void give_number(struct installs *s, struct install *i, uint32_t parent)
{
	const struct installs_call *c = &i->call;
	uint32_t number = ckpt_filters_add(s->table, parent, c->flags, c->code, c->n);

	i->expected = number != 0;
	send(i->sock, &number, sizeof(number), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void finished(struct installs *s, struct install *i)
{
	int status = 0;

	/* It closes its socket by ending. */
	if (waitpid(i->worker, &status, __WALL) == i->worker) {
		i->worker = 0;
		s->under_way--;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == WORKER_TRACED) {
		ckpt_filters_set_foreign(s->table);
		answer(s, i->call.id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
	} else if (is_waiting(s, i->call.id)) {
		answer(s, i->call.id, -ENOMEM, 0);
	}
	drop(s, i);
}

static void tell_idle(struct installs *s)
{
	void (*idle)(void *ctx) = s->idle;

	if (!idle || s->under_way)
		return;
	s->idle = NULL;
	idle(s->idle_ctx);
}

void installs_ready(struct installs *s)
{
	struct epoll_event events[16];
	int n = epoll_wait(s->epoll, events, ARRAY_SIZE(events), 0);

	for (int k = 0; k < n; k++) {
		struct install *i = events[k].data.ptr;
		uint32_t parent;
		ssize_t got;

		if (!i)
			continue; /* the listener */
		got = recv(i->sock, &parent, sizeof(parent), MSG_DONTWAIT);
		if (got == sizeof(parent))
			give_number(s, i, parent);
		else if (got >= 0 || errno != EAGAIN)
			finished(s, i);
	}
	tell_idle(s);
}

void installs_when_idle(struct installs *s, void (*idle)(void *ctx), void *ctx)
{
	s->idle = idle;
	s->idle_ctx = ctx;
}

bool installs_busy(const struct installs *s)
{
	return s->under_way;
}

/* ---- while a session is being frozen ------------------------------------------------------- */

/* Takes the held call of @tid from the others; 0: there is none. */
static uint64_t take_held(struct shared *shared, pid_t tid)
{
	for (size_t k = 0; k < MAX_HELD; k++)
		if (shared->held[k].id && shared->held[k].tid == tid)
			return atomic_exchange(&shared->held[k].id, 0);
	return 0;
}

void installs_hold(struct installs *s, bool on)
{
	s->holding = on;
	s->shared->phase = on ? CKPT_STOPPING : CKPT_RUNS;
	if (on)
		return;
	for (struct install *i = s->list, *next; i; i = next) {
		next = i->next;
		if (i->sock >= 0)
			continue;
		if (take_held(s->shared, i->call.tid) && is_waiting(s, i->call.id))
			start(s, i);
		else
			drop(s, i);
	}
}

bool installs_stands(const struct installs *s)
{
	return s->shared->phase == CKPT_STANDS;
}

void installs_phase(void *installs, enum ckpt_phase phase)
{
	struct installs *s = installs;

	s->shared->phase = (int)phase;
}

void installs_unhold(void *installs, pid_t tid)
{
	struct installs *s = installs;
	uint64_t id = take_held(s->shared, tid);

	if (id)
		answer(s, id, -ERESTARTNOINTR, 0);
}
