/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reaper - keeps PTRACE_SEIZE from waiting for ever.  Private to ckpt.
 *
 * A thread that calls exec holds a lock which PTRACE_SEIZE takes, and keeps it until the other
 * threads of its process are gone.  Those we have seized already are gone when we have reaped them:
 * we would wait for each other.  So while threads of one process are being seized, another thread
 * of ours reaps those that have ended, if it takes long.
 */
#ifndef CKPT_FREEZE_REAPER_H
#define CKPT_FREEZE_REAPER_H

#include <sys/types.h>

struct ckpt_reaper;

/*
 * NULL when there is no thread to be had: it is needed once in a blue moon.  @host_proc is
 * borrowed.
 */
struct ckpt_reaper *ckpt_reaper_start(int host_proc);
/* The threads of @pid are being seized from now on; 0: of no process. */
void ckpt_reaper_watch(struct ckpt_reaper *r, pid_t pid);
/* NULL is fine. */
void ckpt_reaper_stop(struct ckpt_reaper *r);

#endif
