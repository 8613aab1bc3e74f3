// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * System V calls that the task makes itself: they wait, or attach memory, or leave something to be
 * undone at its end.
 *
 * The id is the first argument of each; a number that is none of the session's never gets to the kernel.
 * Whoever has used an object is noted at the exit, for when somebody asks after its end.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/ipc_host.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/robust.h"

static int enter(struct rewrite *rw, enum ipc_sort sort, struct user_regs_struct *regs)
{
	struct ipc_object *o = ipc_names_find(rw->ipc, sort, (int)regs->rdi);

	if (!o)
		return -EINVAL;
	o->attached |= sort == IPC_SHM;
	regs->rdi = (unsigned long long)o->host;
	return 0;
}

static int enter_shm(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	robust_watch(task, true); /* there may be mutexes in it */
	return enter(rw, IPC_SHM, regs);
}

static int enter_sem(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return enter(rw, IPC_SEM, regs);
}

static int enter_msg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return enter(rw, IPC_MSG, regs);
}

static void leave(struct rewrite *rw, enum ipc_sort sort, const struct task *task, long long result)
{
	struct ipc_object *o;

	if (result >= 0 || result < -4095)
		ipc_names_note_user(
			rw->ipc, task->tgid, numbers_virtual(rw->tasks.numbers, task->tgid));
	if (result != -EINVAL && result != -EIDRM)
		return;
	o = ipc_names_find(rw->ipc, sort, (int)task->call.args[0]);
	if (o)
		ipc_host_has(rw->ipc, sort, o);
}

static void leave_shm(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	leave(rw, IPC_SHM, task, (long long)regs->rax);
}

static void leave_sem(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	leave(rw, IPC_SEM, task, (long long)regs->rax);
}

static void leave_msg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	leave(rw, IPC_MSG, task, (long long)regs->rax);
}

const struct rewrite_call ipc_calls[] = {
	{SYS_shmat, .enter = enter_shm, .leave = leave_shm},
	{SYS_semop, .enter = enter_sem, .leave = leave_sem},
	{SYS_semtimedop, .enter = enter_sem, .leave = leave_sem},
	{SYS_msgsnd, .enter = enter_msg, .leave = leave_msg},
	{SYS_msgrcv, .enter = enter_msg, .leave = leave_msg},
};
const size_t ipc_n_calls = ARRAY_SIZE(ipc_calls);
