/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * careful - steps in which something of the session's is in our hands only: what waits in a message
 * queue or a terminal can't be looked at, only taken out and put back.
 *
 * Such a step runs in a child of its own, and the tasks stand still until it is over, whoever is
 * killed meanwhile.  If that is the child, the caller does the rest, by what it noted in memory that both
 * share.  If it is the caller, the child goes on to its end, and the caller's tasks with it would go on
 * at once: so the child traces the thread that traces them (ptrace(2), PTRACE_O_TRACEEXIT).  Killed, it
 * stops on its way out, where its tasks are still its own, until the child has ended.  Two
 * must be killed for something to be lost, or for a task to see what it should not.
 *
 * Where a child may not trace its parent (Yama's ptrace_scope 2) they run on, for the moment it takes.
 */
#ifndef CKPT_CAREFUL_H
#define CKPT_CAREFUL_H

#include <stddef.h>
#include <sys/types.h>

struct err;

/* Memory that is shared with children, zero; NULL when there is none.  Freed with careful_free. */
void *ckpt_careful_alloc(size_t len);
void ckpt_careful_free(void *shared, size_t len);

/*
 * Runs @step(@shared) in a child.  It notes in *@shared how far it is, and goes on from there when
 * it is called again because the child was killed.  Returns what it returned.
 * @tracer: the thread of the caller's that traces the session's tasks, which may be another than the
 * calling one; 0 if they end with it anyway.
 */
int ckpt_careful(pid_t tracer, int (*step)(void *shared, struct err *e), void *shared, struct err *e);

#endif
