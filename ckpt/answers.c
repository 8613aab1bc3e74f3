// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The helper sends for each kind with an ask op its number, the length of its answer and the
 * answer. It ends at the first ask that fails; the story comes with ckpt_enter_end.
 */
#include "ckpt/answers.h"

#include <errno.h>
#include <stdlib.h>

#include "ckpt/enter.h"
#include "ckpt/survey/survey.h"

#define MAX_ANSWER (256u << 20)
#define INSIDE     (CLONE_NEWIPC | CLONE_NEWNET)

struct ckpt_answers {
	struct ckpt_enter helper;
	bool waits; /* the helper is there, and has not been told to begin */
	bool out;   /* it has */
	struct buf of[PROTO_KIND_MAX];
};

struct head {
	uint32_t number, pad;
	uint64_t len;
};

static int tell(int sock, const struct ckpt_world *w, const struct ckpt_kind *k, struct err *e)
{
	_cleanup_buf_ struct buf answer = BUF_INIT;
	struct head h = {.number = (uint32_t)k->number};
	int r = k->ask(w, &answer, e);

	if (r >= 0 && buf_error(&answer) < 0)
		r = err_errno(e, -ENOMEM, "%s", k->name);
	if (r < 0)
		return r;
	h.len = answer.len;
	r = io_write_full(sock, &h, sizeof(h));
	return r < 0 ? r : io_write_full(sock, answer.data, answer.len);
}

static int tell_all(int sock, void *ctx, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < ckpt_n_kinds && r >= 0; i++)
		if (ckpt_kinds[i]->ask)
			r = tell(sock, ctx, ckpt_kinds[i], e);
	return r;
}

static int tell_when_told(int sock, void *ctx, struct err *e)
{
	char go;

	return io_read_full(sock, &go, 1) == 1 ? tell_all(sock, ctx, e) : -ECANCELED;
}

/* Where names are rewritten what it asks about is in the memory that it is a copy of. */
struct ckpt_answers *ckpt_answers_ahead(const struct ckpt_world *w)
{
	struct ckpt_answers *a = w->ns_ipc < 0 || w->ipc ? NULL : calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->waits = ckpt_enter_begin(&a->helper, w, INSIDE, tell_when_told, (void *)w, NULL) >= 0;
	if (!a->waits)
		free(take_ptr(a));
	return a;
}

int ckpt_answers_begin(struct ckpt_dump *d, struct err *e)
{
	int r;

	if (!d->answers)
		d->answers = calloc(1, sizeof(*d->answers));
	if (!d->answers)
		return err_errno(e, -ENOMEM, "answers");
	if (d->world->ns_ipc < 0 && !d->world->ipc)
		return 0;
	if (d->answers->waits) {
		d->answers->waits = false;
		d->answers->out = true;
		/* If it has died, who takes its answers is told. */
		io_send_fds(d->answers->helper.sock, "", 1, NULL, 0);
		return 0;
	}
	r = ckpt_enter_begin(
		&d->answers->helper, d->world, INSIDE, tell_all, (void *)d->world, e);
	d->answers->out = r >= 0;
	return r;
}

/* One answer: 1, or 0 when there are no more. */
static int take(struct ckpt_answers *a, struct err *e)
{
	struct head h;
	ssize_t n = io_read_full(a->helper.sock, &h, sizeof(h));
	void *room;

	if (n <= 0)
		return 0;
	if (n != sizeof(h) || h.number >= PROTO_KIND_MAX || h.len > MAX_ANSWER)
		return err_set(e, ERR_FAILED, -EPROTO, "an answer from inside the session");
	room = buf_grow(&a->of[h.number], h.len);
	if (!room)
		return err_errno(e, -ENOMEM, "an answer from inside the session");
	return io_read_full(a->helper.sock, room, h.len) == (ssize_t)h.len;
}

/* An answer that is cut short has its story in the helper's end. */
static int collect(struct ckpt_answers *a, struct err *e)
{
	struct err story = {0};
	int r, end;

	fault_worker_waits();
	do
		r = take(a, e);
	while (r > 0);
	end = ckpt_enter_end(&a->helper, &story);
	a->out = false;
	if (end < 0 && e)
		*e = story;
	return end < 0 ? end : r;
}

int ckpt_answer(
	struct ckpt_dump *d, const struct ckpt_kind *k, const struct buf **ret, struct err *e)
{
	int r = d->answers->out ? collect(d->answers, e) : 0;

	*ret = &d->answers->of[k->number];
	return r;
}

struct one {
	const struct ckpt_world *world;
	const struct ckpt_kind *kind;
};

static int tell_one(int sock, void *ctx, struct err *e)
{
	const struct one *one = ctx;
	_cleanup_buf_ struct buf answer = BUF_INIT;
	int r = one->kind->ask(one->world, &answer, e);

	if (r >= 0 && buf_error(&answer) < 0)
		r = err_errno(e, -ENOMEM, "%s", one->kind->name);
	return r < 0 ? r : io_write_full(sock, answer.data, answer.len);
}

int ckpt_answer_anew(
	const struct ckpt_dump *d, const struct ckpt_kind *k, struct buf *ret, struct err *e)
{
	struct one one = {d->world, k};

	return ckpt_enter_read(d->world, CLONE_NEWIPC, tell_one, &one, MAX_ANSWER, ret, e);
}

void ckpt_answers_drop(struct ckpt_answers *a)
{
	if (!a)
		return;
	if (a->waits || a->out)
		ckpt_enter_end(&a->helper, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(a->of); i++)
		buf_fini(&a->of[i]);
	free(a);
}

void ckpt_answers_free(struct ckpt_dump *d)
{
	ckpt_answers_drop(take_ptr(d->answers));
}
