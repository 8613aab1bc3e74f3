// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * There are few timers (ageing, ports, a name server's answer), so they are a list sorted by when
 * they are due.  A turn of the loop takes up to BATCH events, runs what is due, and then what was
 * put off; while something is put off epoll_wait does not wait.
 */
#include "vnet/gateway/loop.h"

#include "base/base.h"

#define BATCH	64
#define REST_NS 100000000ull

struct gateway_loop {
	int epoll;
	bool stop;
	uint64_t now;
	struct gateway_timer *timers;
	struct gateway_later *first, **last;
	unsigned n_later;
};

int gateway_loop_new(struct gateway_loop **ret, struct err *e)
{
	struct gateway_loop *l = calloc(1, sizeof(*l));

	if (!l)
		return err_errno(e, -ENOMEM, "event loop");
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll < 0) {
		free(l);
		return err_errno(e, -errno, "event loop");
	}
	l->last = &l->first;
	l->now = io_now_ns();
	*ret = l;
	return 0;
}

static int control(struct gateway_loop *l, int op, int fd, uint32_t events, struct gateway_watch *w)
{
	struct epoll_event ev = {.events = events, .data.ptr = w};

	return epoll_ctl(l->epoll, op, fd, &ev) < 0 ? -errno : 0;
}

int gateway_loop_add(struct gateway_loop *l, int fd, uint32_t events, struct gateway_watch *w)
{
	return control(l, EPOLL_CTL_ADD, fd, events, w);
}

int gateway_loop_change(struct gateway_loop *l, int fd, uint32_t events, struct gateway_watch *w)
{
	return control(l, EPOLL_CTL_MOD, fd, events, w);
}

void gateway_loop_remove(struct gateway_loop *l, int fd)
{
	control(l, EPOLL_CTL_DEL, fd, 0, NULL);
}

void gateway_loop_timer_clear(struct gateway_loop *l, struct gateway_timer *t)
{
	struct gateway_timer **at = &l->timers;

	while (*at && *at != t)
		at = &(*at)->next;
	if (*at)
		*at = t->next;
	t->due = 0;
}

void gateway_loop_timer(struct gateway_loop *l, struct gateway_timer *t, uint64_t ns_from_now)
{
	struct gateway_timer **at = &l->timers;

	gateway_loop_timer_clear(l, t);
	t->due = io_now_ns() + ns_from_now;
	while (*at && (*at)->due <= t->due)
		at = &(*at)->next;
	t->next = *at;
	*at = t;
}

void gateway_loop_later(struct gateway_loop *l, struct gateway_later *later)
{
	if (later->queued)
		return;
	later->queued = true;
	l->n_later++;
	later->next = NULL;
	*l->last = later;
	l->last = &later->next;
}

void gateway_loop_forget(struct gateway_loop *l, struct gateway_later *later)
{
	struct gateway_later **at = &l->first;

	if (!later->queued)
		return;
	while (*at != later)
		at = &(*at)->next;
	*at = later->next;
	if (!later->next)
		l->last = at;
	later->queued = false;
	l->n_later--;
}

static void on_rested(struct gateway_timer *t)
{
	struct gateway_rest *r = gateway_container(t, struct gateway_rest, timer);

	gateway_loop_change(r->loop, r->fd, EPOLLIN, r->watch);
}

void gateway_loop_rest(
	struct gateway_loop *l, struct gateway_rest *r, int fd, struct gateway_watch *w, int error)
{
	if (error != EMFILE && error != ENFILE && error != ENOBUFS && error != ENOMEM)
		return;
	r->timer.fire = on_rested;
	r->loop = l;
	r->watch = w;
	r->fd = fd;
	gateway_loop_change(l, fd, 0, w);
	gateway_loop_timer(l, &r->timer, REST_NS);
}

void gateway_loop_rest_clear(struct gateway_loop *l, struct gateway_rest *r)
{
	gateway_loop_timer_clear(l, &r->timer);
}

uint64_t gateway_loop_now(const struct gateway_loop *l)
{
	return l->now;
}

int gateway_loop_fd(const struct gateway_loop *l)
{
	return l->epoll;
}

/* How long there is nothing to do, in milliseconds; -1: nothing is due ever. */
static int patience(const struct gateway_loop *l)
{
	uint64_t now;

	if (l->first)
		return 0;
	if (!l->timers)
		return -1;
	now = io_now_ns();
	if (l->timers->due <= now)
		return 0;
	return (int)MIN((l->timers->due - now + 999999) / 1000000, (uint64_t)3600000);
}

static void run_timers(struct gateway_loop *l)
{
	while (l->timers && l->timers->due <= l->now && !l->stop) {
		struct gateway_timer *t = l->timers;

		l->timers = t->next;
		t->due = 0;
		t->fire(t);
	}
}

/* What is put off meanwhile waits for the next turn. */
static void run_later(struct gateway_loop *l)
{
	unsigned n = l->n_later;

	while (n-- && l->first && !l->stop) {
		struct gateway_later *one = l->first;

		gateway_loop_forget(l, one);
		one->run(one);
	}
}

void gateway_loop_run(struct gateway_loop *l)
{
	struct epoll_event events[BATCH];

	while (!l->stop) {
		int n = epoll_wait(l->epoll, events, BATCH, patience(l));

		l->now = io_now_ns();
		for (int i = 0; i < n && !l->stop; i++) {
			struct gateway_watch *w = events[i].data.ptr;

			w->ready(w, events[i].events);
		}
		run_timers(l);
		if (l->first)
			run_later(l);
	}
}

void gateway_loop_stop(struct gateway_loop *l)
{
	l->stop = true;
}
