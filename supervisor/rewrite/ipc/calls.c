// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * System V calls that the task makes itself: they wait, or attach memory, or leave something to be
 * undone at its end.
 *
 * The id is the first argument of each; a number that is none of the session's never gets to the
 * kernel. Whoever has used an object is noted at the exit, for when somebody asks after its end.
 */
#include <errno.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/compat/compat.h"
#include "supervisor/rewrite/ipc/host.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/robust.h"

static int replace(struct rewrite *rw, enum ipc_sort sort, unsigned long long *id)
{
	struct ipc_object *o = ipc_names_find(rw->ipc, sort, (int)*id);

	if (!o)
		return -EINVAL;
	o->attached |= sort == IPC_SHM;
	*id = (unsigned long long)o->host;
	return 0;
}

static int enter(struct rewrite *rw, enum ipc_sort sort, struct user_regs_struct *regs)
{
	return replace(rw, sort, &regs->rdi);
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

static void look_again(struct rewrite *rw, enum ipc_sort sort, const struct task *task, uint64_t id,
	long long result)
{
	struct ipc_object *o;

	if (result >= 0 || result < -4095)
		ipc_names_note_user(
			rw->ipc, task->tgid, numbers_virtual(rw->tasks.numbers, task->tgid));
	if (result != -EINVAL && result != -EIDRM)
		return;
	o = ipc_names_find(rw->ipc, sort, (int)id);
	if (o)
		ipc_host_has(rw->ipc, sort, o);
}

static void leave(struct rewrite *rw, enum ipc_sort sort, const struct task *task, long long result)
{
	look_again(rw, sort, task, task->call.args[0], result);
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

/* ---- ipc(2) of i386 -------------------------------------------------------------------------- */

/*
 * Those that wait or attach (compat_unpack has made other calls of the rest); their id is the
 * second argument.
 */
static int sort_of(uint64_t call)
{
	switch (call & 0xffff) {
	case 1:
	case 4:
		return IPC_SEM;
	case 11:
	case 12:
		return IPC_MSG;
	case 21:
		return IPC_SHM;
	default:
		return -1;
	}
}

static int enter_any(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	int sort = sort_of(regs->rdi);

	if (sort < 0)
		return -ENOSYS;
	if (sort == IPC_SHM)
		robust_watch(task, true);
	return replace(rw, (enum ipc_sort)sort, &regs->rsi);
}

static void leave_any(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	look_again(rw, (enum ipc_sort)sort_of(task->call.args[0]), task, task->call.args[1],
		(long long)regs->rax);
}

const struct rewrite_call ipc_calls[] = {
	{COMPAT_OWN | 117, .enter = enter_any, .leave = leave_any},
	{SYS_shmat, .enter = enter_shm, .leave = leave_shm},
	{SYS_semop, .enter = enter_sem, .leave = leave_sem},
	{SYS_semtimedop, .enter = enter_sem, .leave = leave_sem},
	{SYS_msgsnd, .enter = enter_msg, .leave = leave_msg},
	{SYS_msgrcv, .enter = enter_msg, .leave = leave_msg},
};
const size_t ipc_n_calls = ARRAY_SIZE(ipc_calls);
