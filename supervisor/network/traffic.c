// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in traffic.h. */
#include "supervisor/network/traffic.h"

#include <string.h>
#include <sys/socket.h>

#include "proto/control.pb-c.h"
#include "supervisor/message.h"
#include "supervisor/session.h"
#include "supervisor/worker/worker.h"

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

static void hold(struct session *s)
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

static void redo(struct session *s, const Pb__Redo *m)
{
	struct sockaddr_storage client = {0};

	if (!s->traffic.ops || !s->traffic.ops->redo || m->client.len > sizeof(client))
		return;
	memcpy(&client, m->client.data, m->client.len);
	s->traffic.ops->redo(s->traffic.ctx, (void *)&client, (uint16_t)m->port);
}

void traffic_message(struct session *s, const Pb__Worker *m)
{
	if (m->body_case == PB__WORKER__BODY_HOLD)
		hold(s);
	else if (m->body_case == PB__WORKER__BODY_PASS)
		traffic_pass(s);
	else if (m->body_case == PB__WORKER__BODY_REDO)
		redo(s, m->redo);
}
