/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hold - all tasks of the session stand still, for a freeze.  Private to rewrite/.
 *
 * Only their tracer can stop tasks, and the rewriter traces them all their lives.  So it does not
 * look for them as ckpt/freeze.c does under kernel names: each is told to stop, and then stops go
 * on being dealt with as ever until all stand in a PTRACE_EVENT_STOP.  A task in a traced call comes
 * out of it on the way, with the session's numbers in its registers again; one that is born
 * is held from its first stop.  The parent of a vfork can't stop before its child has called
 * exec or has ended: such a child goes on for so long.
 */
#ifndef SUPERVISOR_REWRITE_HOLD_H
#define SUPERVISOR_REWRITE_HOLD_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

#include "ckpt/ckpt.h"

struct err;
struct rewriter;

/* As struct ckpt_names has them, with the rewriter as context. */
pid_t hold_number(void *rewriter, pid_t host);
pid_t hold_host(void *rewriter, pid_t number);
void hold_signal(void *rewriter, siginfo_t *info);
pid_t hold_kin(void *rewriter, pid_t host);
ssize_t hold_list(void *rewriter, struct ckpt_held **ret);
int hold_stop(void *rewriter, uint32_t deadline_ms, struct err *e);
void hold_release(void *rewriter);

#endif
