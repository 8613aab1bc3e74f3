/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answers - the calls that the rewriter answers in the task's place.  Private to rewrite/.
 *
 * The filter hands them over by user notification, half as dear as a stop: who am I, who is that, and
 * signals.  What a handler decides depends on the call's registers alone.
 */
#ifndef SUPERVISOR_REWRITE_ANSWERS_H
#define SUPERVISOR_REWRITE_ANSWERS_H

#include <pthread.h>
#include <stdbool.h>

struct tasks;

/* Is @nr one of them? */
bool answers_has(int nr);
/* Waits for a call at @listener and answers it, with @lock held while it looks at @t.  0 or a negative errno. */
int answers_one(const struct tasks *t, int listener, pthread_mutex_t *lock);

#endif
