/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hold - all tasks of the session stand still, for a freeze.  Private to rewrite/.
 *
 * Only their tracer can stop tasks, and the rewriter traces them all their lives.  So it does not
 * look for them as ckpt/freeze/freeze.c does under kernel names: each is told to stop, and then
 * stops go on being dealt with as ever until all stand in a PTRACE_EVENT_STOP.  A task in a traced
 * call comes out of it on the way, with the session's numbers in its registers again; one that is
 * born is held from its first stop.  The parent of a vfork can't stop before its child has called
 * exec or has ended: such a child goes on for so long.
 *
 * Copies of memory are tracees, too, and stand still when the session runs again, until a snapshot
 * is written.  They have no numbers, and nothing that a wait tells of them lets them go.
 */
#ifndef SUPERVISOR_REWRITE_HOLD_H
#define SUPERVISOR_REWRITE_HOLD_H

#include "ckpt/ckpt.h"

struct rewriter;

/* What ckpt is told of a session of @w, which is the context.  *paths only where it has a view. */
void hold_describe(struct rewriter *w, struct ckpt_names *names, struct ckpt_paths *paths,
	struct ckpt_ipc_names *ipc);

/* Is @status one of a copy?  Then nobody else is to deal with it. */
bool hold_is_copy(struct rewriter *w, pid_t host, int status);

#endif
