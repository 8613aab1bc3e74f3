/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rewrite - what a rewriter knows of its session, as its answers and calls see it.  Private to rewrite/.
 *
 * Each class of names (supervisor/names/names.h) that is rewritten has a room of its own here, with its
 * own state, its own table of calls that are answered (answers.h) and of calls that the task
 * makes itself (calls.h).
 */
#ifndef SUPERVISOR_REWRITE_REWRITE_H
#define SUPERVISOR_REWRITE_REWRITE_H

#include <pthread.h>

#include "supervisor/rewrite/tasks.h"

struct rewrite {
	pthread_mutex_t lock; /* of all that follows: one thread for stops, one for calls */
	struct tasks tasks;
	int listener; /* -1 until pid 1 has a filter */
};

#endif
