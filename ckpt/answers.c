// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The helper sends for each kind with an ask op its number, the length of its answer and the
 * answer. It ends at the first ask that fails; the story comes with ckpt_enter_end.
 */
#include "ckpt/answers.h"

#include <errno.h>
#include <stdlib.h>

#include "ckpt/enter.h"
#include "ckpt/survey.h"

#define MAX_ANSWER (256u << 20)
#define INSIDE     (CLONE_NEWIPC | CLONE_NEWNET)

struct ckpt_answers {
	struct ckpt_enter helper;
	bool out; /* the helper is */
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

int ckpt_answers_begin(struct ckpt_dump *d, struct err *e)
{
	int r;

	d->answers = calloc(1, sizeof(*d->answers));
	if (!d->answers)
		return err_errno(e, -ENOMEM, "answers");
	if (d->world->ns_ipc < 0 && !d->world->ipc)
		return 0;
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

void ckpt_answers_free(struct ckpt_dump *d)
{
	if (!d->answers)
		return;
	if (d->answers->out)
		ckpt_enter_end(&d->answers->helper, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(d->answers->of); i++)
		buf_fini(&d->answers->of[i]);
	free(d->answers);
	d->answers = NULL;
}
