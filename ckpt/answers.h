/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answers - what kinds of scope SESSION ask inside the session's ipc and net namespace, once for all.
 *
 * Entering the namespace takes a forked helper (ckpt/enter.h), half a millisecond each.  One runs
 * the ask ops of all kinds (ckpt/kind.h) while the records before theirs are written.  It is made before
 * the session stops: a fork in the pause has every page that is written to from then on looked at first.
 */
#ifndef CKPT_ANSWERS_H
#define CKPT_ANSWERS_H

#include "base/base.h"
#include "ckpt/kind.h"

/*
 * Makes the helper, which waits inside until ckpt_answers_begin.  NULL: there is none, or no need of
 * one.  To be freed by ckpt_answers_drop, unless it has become d->answers.
 */
struct ckpt_answers *ckpt_answers_ahead(const struct ckpt_world *w);
void ckpt_answers_drop(struct ckpt_answers *a);
/* Sends the helper out (one that is in d->answers, or a new one) and returns at once.  Every task is stopped, and stays so until the
 * answers are freed. */
int ckpt_answers_begin(struct ckpt_dump *d, struct err *e);
/* What @k's ask has found (nothing in a session without an ipc namespace of its own), borrowed
 * until the answers are freed.  The first call waits for the helper. */
int ckpt_answer(
	struct ckpt_dump *d, const struct ckpt_kind *k, const struct buf **ret, struct err *e);
/* @k's ask once more by a helper of its own, appended to @ret: something has been changed. */
int ckpt_answer_anew(
	const struct ckpt_dump *d, const struct ckpt_kind *k, struct buf *ret, struct err *e);
/* Waits for the helper if it is still out, and forgets everything. */
void ckpt_answers_free(struct ckpt_dump *d);

#endif
