// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Some of a task's state is in the kernel's stop rather than in its registers: that it is inside a
 * restartable sequence (rseq), and which system call it will make again.  Our own calls in it
 * (ckpt/remote) would lose the one, and a resume the other, so both are put into the registers.
 */
#include "ckpt/freeze/settle.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "base/base.h"
#include "ckpt/freeze/restart.h"
#include "ckpt/remote/i386.h"
#include "ckpt/remote/trace.h"

#define ERESTARTSYS    512
#define ERESTARTNOINTR 513

/* linux/rseq.h; libc's header has it only in newer versions. */
struct rseq_section {
	uint32_t version, flags;
	uint64_t start, length, abort;
};
#define RSEQ_CS_OFFSET 8 /* in struct rseq */

static bool copy_in(pid_t tid, uint64_t addr, void *data, size_t len)
{
	struct iovec local = {data, len}, there = {(void *)addr, len};

	return process_vm_readv(tid, &local, 1, &there, 1, 0) == (ssize_t)len;
}

/*
 * Inside a restartable sequence the kernel would move the task to the abort handler before it runs
 * again, if it still found it there.  It would not after our calls, so this is done here.
 */
static bool leave_rseq(pid_t tid, struct user_regs_struct *regs)
{
	struct __ptrace_rseq_configuration conf = {0};
	struct rseq_section cs;
	uint64_t ptr, none = 0;
	struct iovec local = {&none, sizeof(none)}, there;

	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof(conf), &conf) < 0 ||
		!conf.rseq_abi_pointer)
		return false;
	there = (struct iovec){(void *)(conf.rseq_abi_pointer + RSEQ_CS_OFFSET), sizeof(none)};
	if (!copy_in(tid, conf.rseq_abi_pointer + RSEQ_CS_OFFSET, &ptr, sizeof(ptr)) || !ptr ||
		!copy_in(tid, ptr, &cs, sizeof(cs)) || regs->rip - cs.start >= cs.length)
		return false;
	if (process_vm_writev(tid, &local, 1, &there, 1, 0) != sizeof(none))
		return false;
	regs->rip = cs.abort;
	return true;
}

/*
 * A 32-bit program's numbers are others, of which few go to the supervisor
 * (supervisor/filter/notify.c).
 */
static bool is_notified(const struct ckpt_freeze_options *o, const struct user_regs_struct *regs)
{
	unsigned long nr = regs->orig_rax;

	if (i386_runs(regs))
		return nr == I386_PRCTL || nr == I386_SECCOMP;
	for (size_t i = 0; i < o->n_notified; i++)
		if ((unsigned long)o->notified[i] == nr)
			return true;
	return false;
}

/*
 * A call that was waiting for the supervisor's answer reads as -ERESTARTSYS, which becomes EINTR if
 * a handler without SA_RESTART runs first; but it is not the call that was interrupted, only
 * our way of making it.
 */
static bool protect_notified(const struct ckpt_freeze_options *o, struct user_regs_struct *regs)
{
	if ((long)regs->rax != -ERESTARTSYS || !is_notified(o, regs))
		return false;
	regs->rax = (unsigned long)-ERESTARTNOINTR;
	return true;
}

int ckpt_settle(const struct ckpt_freeze_options *o, pid_t tid, struct user_regs_struct *regs)
{
	unsigned long rax;
	bool changed;

	if (ptrace(PTRACE_GETREGS, tid, 0, regs) < 0)
		return 0;
	rax = regs->rax;
	ckpt_restart_note(regs);
	if ((long)regs->orig_rax < 0)
		changed = leave_rseq(tid, regs);
	else
		changed = protect_notified(o, regs);
	if (!changed && regs->rax == rax)
		return 1;
	return ptrace(PTRACE_SETREGS, tid, 0, regs) == 0;
}
