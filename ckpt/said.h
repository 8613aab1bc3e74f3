/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * said - numbers of tasks as the kernel has to be told them.  Private to ckpt.
 *
 * A call that is made inside a task takes the numbers of its pid namespace, which are the
 * session's.  Where no namespace holds them they are the host's, and so are those that it returns.
 */
#ifndef CKPT_SAID_H
#define CKPT_SAID_H

#include "ckpt/ckpt.h"

/* The session's @number in a call made inside one of its tasks. */
static inline pid_t ckpt_said(const struct ckpt_world *w, pid_t number)
{
	return w->names && number > 0 ? w->names->host(w->names->ctx, number) : number;
}

/* What such a call returned, as the session has it; 0: none of its tasks. */
static inline pid_t ckpt_heard(const struct ckpt_world *w, pid_t number)
{
	return w->names && number > 0 ? w->names->number(w->names->ctx, number) : number;
}

#endif
