// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls that only i386 has; ipc(2) is in ipc/calls.c. */
#include <errno.h>
#include <linux/net.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/compat/compat.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/robust.h"

/* ---- two that stand for many ---------------------------------------------------------------- */

/* By socketcall's number: the call, and how many arguments it has. */
static const struct {
	uint16_t nr;
	uint8_t n;
} sockets[] = {
	[SYS_SOCKET] = {SYS_socket, 3},
	[SYS_BIND] = {SYS_bind, 3},
	[SYS_CONNECT] = {SYS_connect, 3},
	[SYS_GETSOCKNAME] = {SYS_getsockname, 3},
	[SYS_GETPEERNAME] = {SYS_getpeername, 3},
	[SYS_SENDTO] = {SYS_sendto, 6},
	[SYS_GETSOCKOPT] = {SYS_getsockopt, 5},
	[SYS_SENDMSG] = {SYS_sendmsg, 3},
	[SYS_RECVMSG] = {SYS_recvmsg, 3},
	[SYS_RECVMMSG] = {SYS_recvmmsg, 5},
	[SYS_SENDMMSG] = {SYS_sendmmsg, 4},
};

static int unpack_sockets(const struct task *task, struct user_regs_struct *regs)
{
	uint32_t which = (uint32_t)regs->rdi, args[REWRITE_ARGS];

	if (which >= ARRAY_SIZE(sockets) || !sockets[which].n)
		return -EINVAL;
	if (task_peek(task, regs->rsi, args, sockets[which].n * sizeof(args[0])) < 0)
		return -EFAULT;
	for (int i = 0; i < sockets[which].n; i++)
		*call_arg(regs, i) = args[i];
	regs->orig_rax = sockets[which].nr;
	return 0;
}

enum { SEMGET = 2, SEMCTL, MSGGET = 13, MSGCTL, SHMGET = 23, SHMCTL };

/*
 * The structures are those that all C libraries have asked for since 1999; of the others there is
 * none.
 */
#define IPC_64 0x100

static int unpack_control(struct user_regs_struct *regs, int nr, unsigned long long id,
	unsigned long long number, unsigned long long command, unsigned long long arg)
{
	int c = (int)command;
	bool has_none = c == IPC_RMID || (nr == SYS_semctl && c >= GETPID && c <= SETALL) ||
			(nr == SYS_shmctl && (c == SHM_LOCK || c == SHM_UNLOCK));

	if (!(command & IPC_64) && !has_none)
		return -EINVAL;
	regs->orig_rax = (unsigned long long)nr;
	regs->rdi = id;
	regs->rsi = nr == SYS_semctl ? number : command & ~(unsigned long long)IPC_64;
	regs->rdx = nr == SYS_semctl ? command & ~(unsigned long long)IPC_64 : arg;
	regs->r10 = arg;
	return 0;
}

/*
 * ipc(CALL, FIRST, SECOND, THIRD, POINTER, FIFTH).  What gets and what controls will be a question
 * (answers.h).
 */
static int unpack_ipc(const struct task *task, struct user_regs_struct *regs)
{
	struct user_regs_struct r = *regs;
	uint32_t arg = 0;

	switch ((uint32_t)r.rdi & 0xffff) {
	case SEMGET:
	case SHMGET:
		regs->rdx = r.r10;
		__attribute__((fallthrough));
	case MSGGET:
		regs->rdi = r.rsi;
		regs->rsi = r.rdx;
		regs->orig_rax = ((uint32_t)r.rdi & 0xffff) == SEMGET	? SYS_semget
				 : ((uint32_t)r.rdi & 0xffff) == SHMGET ? SYS_shmget
									: SYS_msgget;
		return 0;
	case SEMCTL:
		if (!r.r8)
			return -EINVAL;
		if (task_peek(task, r.r8, &arg, sizeof(arg)) < 0)
			return -EFAULT;
		return unpack_control(regs, SYS_semctl, r.rsi, r.rdx, r.r10, arg);
	case MSGCTL:
		return unpack_control(regs, SYS_msgctl, r.rsi, 0, r.rdx, r.r8);
	case SHMCTL:
		return unpack_control(regs, SYS_shmctl, r.rsi, 0, r.rdx, r.r8);
	default:
		return 0;
	}
}

int compat_unpack(struct task *task, struct user_regs_struct *regs)
{
	unsigned long long before = regs->orig_rax;
	int r = 0;

	if (before == (COMPAT_OWN | 102))
		r = unpack_sockets(task, regs);
	else if (before == (COMPAT_OWN | 117))
		r = unpack_ipc(task, regs);
	task->compat.unpacked = regs->orig_rax != before;
	return r;
}

/* ---- what x86-64 has in other ways ----------------------------------------------------------- */

/* Its arguments are in memory: perhaps it shares something. */
static int enter_old_mmap(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	robust_watch(task, true);
	return 1;
}

/* Older structures, with a room of @width for each name and none for the domain's. */
static void leave_old_name(
	struct rewrite *rw, struct task *task, struct user_regs_struct *regs, size_t width)
{
	char name[HOST_NAME_LEN + 1];

	if (call_failed(regs))
		return;
	memcpy(name, rw->host.node, sizeof(name));
	name[width - 1] = '\0';
	if (task_poke(task, task->call.args[0] + width, name, width) < 0)
		regs->rax = (unsigned long long)-EFAULT;
}

static void leave_olduname(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	leave_old_name(rw, task, regs, 65);
}

static void leave_oldolduname(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	leave_old_name(rw, task, regs, 9);
}

const struct rewrite_call compat_calls[] = {
	{COMPAT_OWN | 59, .leave = leave_oldolduname},
	{COMPAT_OWN | 109, .leave = leave_olduname},
	{COMPAT_OWN | 7 /* waitpid */, {NUMBER_WAIT}, .error = -ECHILD, .leave = calls_leave_wait4},
	{COMPAT_OWN | 90 /* mmap */, .enter = enter_old_mmap},
};
const size_t compat_n_calls = ARRAY_SIZE(compat_calls);
