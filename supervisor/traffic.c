// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in traffic.h. */
#include "supervisor/traffic.h"

#include "proto/control.pb-c.h"
#include "supervisor/message.h"
#include "supervisor/session.h"
#include "supervisor/worker.h"

/* A worker that has ended meanwhile lets packets pass by its end. */
static void on_held(void *ctx, const struct err *failure)
{
	struct session *s = ctx;
	Pb__Worker m = PB__WORKER__INIT;
	Pb__Holding holding = PB__HOLDING__INIT;
	Pb__Failure body;
	struct err e = {0};

	if (failure && err_is(failure)) {
		s->traffic.held = false;
		message_of_err(&body, failure);
		holding.failure = &body;
	}
	m.body_case = PB__WORKER__BODY_HOLDING;
	m.holding = &holding;
	if (s->worker && worker_send(s->worker, &m, NULL, 0, &e) < 0)
		log_warn("%s", e.msg);
}

void traffic_hold(struct session *s)
{
	if (!s->traffic.ops) {
		on_held(s, NULL);
		return;
	}
	s->traffic.held = true;
	s->traffic.ops->hold(s->traffic.ctx, on_held, s);
}

void traffic_pass(struct session *s)
{
	if (!s->traffic.ops || !s->traffic.held)
		return;
	s->traffic.held = false;
	s->traffic.ops->pass(s->traffic.ctx);
}
