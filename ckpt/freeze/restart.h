/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * restart - system calls that a freeze interrupted.  Private to ckpt.
 *
 * A stopped task's registers tell what the kernel would do next: orig_rax is the number of the
 * call and rax one of -512 (ERESTARTSYS), -513 (ERESTARTNOINTR), -514 (ERESTARTNOHAND): then the
 * kernel does the call again, and the same registers in a rebuilt task make it do just that there.
 * Two cases need more:
 *
 *   -516 (ERESTART_RESTARTBLOCK)  a wait with a relative timeout.  The kernel keeps the point in
 *           time out of sight, and a rebuilt task has none: the call is done again with what
 *           was left.  Where the call writes that itself (nanosleep with a second argument) it
 *           is exact, else it is the timeout less the time asleep.  Which call it was is not told
 *           where this is not its first interruption (behind.h).
 *   -EINTR  some calls are never restarted, though no signal came but our stop: semop, epoll_wait
 *           and others.  They are given -514: restarted, unless a handler runs first.
 */
#ifndef CKPT_FREEZE_RESTART_H
#define CKPT_FREEZE_RESTART_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct remote;

/* What clocks of CPUs said, and when; all zero at first. */
struct ckpt_restart_clocks {
	struct {
		uint64_t said, at;
	} of[CPU_SETSIZE];
};

/* Of a task that is stopped by us: makes the second case restartable. */
void ckpt_restart_note(struct user_regs_struct *regs);

/*
 * For how long @tid has not run, in nanoseconds; 0 when it can't be told or runs right now.  To be
 * asked before it is stopped, for that makes it run.  @clocks is for whoever asks of many.
 */
uint64_t ckpt_restart_asleep(int proc_fd, pid_t tid, struct ckpt_restart_clocks *clocks);
/* The same; false if it runs, so that nothing can be said of the call it will be in. */
bool ckpt_restart_sleeps(
	int proc_fd, pid_t tid, struct ckpt_restart_clocks *clocks, uint64_t *ret_asleep_ns);

/*
 * Of a rebuilt task whose memory is in place: changes @regs (and memory below its stack) so that
 * the call goes on with what is left of its timeout.
 */
void ckpt_restart_resume(struct remote *r, struct user_regs_struct *regs, uint64_t asleep_ns);

#endif
