// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What runs in a converter: ckpt_convert_step until nothing is left, with a pause after each stop
 * as long as the stop was, and in between whatever a task of the session waits for.
 *
 * A task whose call is being held does not stop.  While its process is being stopped it is told to
 * do the call again: the answer -ERESTARTNOINTR does that, for a task that has a stop before it;
 * then its call comes once more.
 */
#include "supervisor/worker/begin.h"
#include "supervisor/worker/main.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "proto/control.pb-c.h"
#include "proto/proto.h"
#include "supervisor/message.h"
#include "supervisor/worker/worker.h"

#define ERESTARTNOINTR 513
#define PATIENCE_NS    (5 * 1000000000ULL) /* of who waits for a process that can't be stopped */
#define FIRST_NAP_NS   (2 * 1000000ULL)
#define LAST_NAP_NS    (250 * 1000000ULL)

struct held {
	Pb__Held m;
	uint64_t since;
};

struct convert {
	const struct worker_convert *what;
	struct proto_conn *conn;
	struct ckpt_convert *work;
	struct buf held;     /* struct held */
	bool hurry, hurried; /* told to, and has begun to */
};

static void send(struct convert *c, Pb__Worker__BodyCase what, ProtobufCMessage *body)
{
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Empty empty = PB__EMPTY__INIT;
	struct err e = {0};

	m.body_case = what;
	m.cleared = body ? (Pb__Held *)body : (Pb__Held *)&empty;
	if (message_send_worker(c->conn, &m, NULL, 0, &e) < 0)
		_exit(1);
}

static size_t n_held(const struct convert *c)
{
	return c->held.len / sizeof(struct held);
}

static struct held *held_at(const struct convert *c, size_t i)
{
	return (struct held *)c->held.data + i;
}

static void drop(struct convert *c, size_t i)
{
	struct held *h = held_at(c, i);

	memmove(h, h + 1, (n_held(c) - i - 1) * sizeof(*h));
	c->held.len -= sizeof(*h);
}

/* Takes what the supervisor has to say, waiting for it up to @ms. */
static void listen(struct convert *c, int ms)
{
	struct pollfd p = {proto_conn_fd(c->conn), POLLIN, 0};
	int fds[MESSAGE_MAX_FDS], r = 0;
	struct err e = {0};
	Pb__Worker *m;
	size_t n;

	poll(&p, 1, ms);
	while ((r = message_recv_worker(c->conn, &m, fds, MESSAGE_MAX_FDS, &n, &e)) == 1) {
		if (m->body_case == PB__WORKER__BODY_HELD) {
			struct held h = {.m = *m->held, .since = io_now_ns()};

			h.m.base.n_unknown_fields = 0;
			buf_put(&c->held, &h, sizeof(h));
		}
		c->hurry |= m->body_case == PB__WORKER__BODY_HURRY;
		message_free_worker(m);
	}
	if (r < 0 || c->held.failed)
		_exit(1); /* what is stopped goes on by itself */
}

/* While tasks are being stopped: those that can't be because they wait for us do it again later. */
static void on_waiting(void *ctx, const struct ckpt_frozen *f)
{
	struct convert *c = ctx;

	listen(c, 0);
	for (size_t i = n_held(c); i-- > 0;) {
		struct held *h = held_at(c, i);
		struct seccomp_notif_resp again = {.id = h->m.id, .error = -ERESTARTNOINTR};

		if (!ckpt_frozen_expects(f, h->m.tid))
			continue;
		ioctl(c->what->listener, SECCOMP_IOCTL_NOTIF_SEND, &again);
		send(c, PB__WORKER__BODY_REPEATED, &h->m.base);
		drop(c, i);
	}
}

static int find(const struct convert *c, uint64_t id)
{
	for (size_t i = 0; i < n_held(c); i++)
		if (held_at(c, i)->m.id == id)
			return (int)i;
	return -1;
}

/* What a task waits for.  False if it must wait on. */
static bool serve(struct convert *c, struct held h)
{
	struct err e = {0};
	int r, at;

	if (h.m.everything)
		r = ckpt_convert_step(c->work, &e);
	else
		r = ckpt_convert_range(
			c->work, h.m.tid, h.m.start, h.m.end ? h.m.end : UINT64_MAX, &e);
	at = find(c, h.m.id);
	if (at < 0)
		return true; /* it comes again */
	if (r < 0 && io_now_ns() - h.since > PATIENCE_NS)
		h.m.error = -EAGAIN;
	else if (r != 0)
		return r > 0;
	drop(c, (size_t)at);
	send(c, PB__WORKER__BODY_CLEARED, &h.m.base);
	return true;
}

static bool serve_all(struct convert *c)
{
	bool progress = true;

	for (size_t i = n_held(c); i-- > 0;)
		if (i < n_held(c))
			progress &= serve(c, *held_at(c, i));
	return progress;
}

/* Tests of what happens meanwhile make it last. */
static uint64_t test_nap_ns(void)
{
	const char *ms = getenv("PODRUN_TEST_MAP_NAP");

	return ms ? strtoul(ms, NULL, 10) * 1000000 : 0;
}

static int ms_until(uint64_t then)
{
	uint64_t now = io_now_ns();

	return then > now ? (int)((then - now + 999999) / 1000000) : 0;
}

/* @next, or now: one may be told to hurry at any time, also while tasks are being stopped. */
static uint64_t hurried_time(struct convert *c, uint64_t next)
{
	if (!c->hurry || c->hurried)
		return next;
	c->hurried = true;
	return 0;
}

static void work(struct convert *c)
{
	uint64_t next = 0, then, pause, idle = FIRST_NAP_NS, least = test_nap_ns();
	struct err e = {0};

	for (;;) {
		bool stuck = !serve_all(c);
		int r;

		next = hurried_time(c, next);
		listen(c, stuck ? FIRST_NAP_NS / 1000000 : ms_until(next));
		next = hurried_time(c, next);
		if (n_held(c) || ms_until(next))
			continue;
		then = io_now_ns();
		r = ckpt_convert_step(c->work, &e);
		if (r == 0)
			return;
		/*
		 * as long as it has been stopped it may run; nobody who can't be stopped is asked
		 * too often
		 */
		pause = c->hurry ? 0 : MAX(io_now_ns() - then, least);
		if (r < 0) {
			pause = idle;
			idle = MIN(2 * idle, c->hurry ? FIRST_NAP_NS : LAST_NAP_NS);
		} else {
			idle = FIRST_NAP_NS;
		}
		next = io_now_ns() + pause;
	}
}

void worker_main_convert(int sock, const void *arg)
{
	const struct worker_convert *what = arg;
	const int fds[] = {what->image, what->listener};
	struct convert c = {.what = what};
	struct ckpt_convert_options o = {.world = &what->world,
		.image = what->image,
		.cookie = what->cookie,
		.pieces = what->pieces,
		.n_pieces = what->n_pieces,
		.notified = what->notified,
		.n_notified = what->n_notified,
		.waiting = on_waiting,
		.ctx = &c};
	struct err e = {0};

	c.conn = worker_begin(sock, &what->world, fds, ARRAY_SIZE(fds), "podrun-convert");
	if (io_set_nonblock(sock, true) < 0 || ckpt_convert_new(&c.work, &o, &e) < 0) {
		log_warn("cannot convert: %s", e.msg);
		_exit(1);
	}
	work(&c);
	io_set_nonblock(sock, false);
	send(&c, PB__WORKER__BODY_CONVERTED, NULL);
	_exit(0);
}
