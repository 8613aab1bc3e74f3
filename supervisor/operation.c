// SPDX-License-Identifier: GPL-2.0-or-later
/* What is under way for whom (struct session_operation): its answer, and its end. */
#include "supervisor/operation.h"

#include <event2/event.h>
#include <sys/mman.h>

#include "proto/control.pb-c.h"
#include "supervisor/control.h"
#include "supervisor/session.h"

void session_end_operation(struct session *s)
{
	struct session_operation *op = &s->op;

	if (op->tmp)
		unlink(op->tmp);
	free(op->tmp);
	free(op->path);
	free(op->was);
	close_fd(op->image);
	close_fd(op->line);
	if (op->report)
		pb__report__free_unpacked(op->report, NULL);
	if (op->run)
		pb__run_request__free_unpacked(op->run, NULL);
	if (op->resume)
		pb__resume_request__free_unpacked(op->resume, NULL);
	if (op->world)
		pb__world__free_unpacked(op->world, NULL);
	if (op->live)
		pb__live__free_unpacked(op->live, NULL);
	if (op->handover)
		event_free(op->handover);
	if (op->going)
		munmap((void *)op->going, sizeof(*op->going));
	*op = (struct session_operation){.image = -1, .line = -1};
}

void session_answer(struct session *s, const struct err *failure)
{
	struct session_operation *op = &s->op;
	Pb__Control m = PB__CONTROL__INIT;
	struct client *c = op->client;

	/*
	 * Whoever hears of the image may lease it, which goes only when nobody has it open for
	 * writing.
	 */
	op->image = close_fd(op->image);
	if (!c)
		return;
	if (failure) {
		control_send_failure(c, failure, 0);
	} else if (op->report) {
		m.body_case = PB__CONTROL__BODY_REPORT;
		m.report = op->report;
		control_send(c, &m);
	} else {
		control_send_done(c);
	}
}
