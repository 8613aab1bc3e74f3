/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answers - the calls that the rewriter answers in the task's place.  Private to rewrite/.
 *
 * The filter hands them over by user notification, half as dear as a stop: who am I, who is that, and
 * signals.  What a handler decides depends on the call's registers alone.
 */
#ifndef SUPERVISOR_REWRITE_ANSWERS_H
#define SUPERVISOR_REWRITE_ANSWERS_H

#include <stdbool.h>

struct tasks;

/* Is @nr one of them? */
bool answers_has(int nr);
/* Answers one call that waits at @listener: 1, 0 if there is none, negative when nobody is left. */
int answers_one(const struct tasks *t, int listener);

#endif
