// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * owners - whom a descriptor tells by a signal, who holds a lock, whose terminal it is: the
 * numbers that fcntl(2) and ioctl(2) take and tell.
 *
 * The owner of a descriptor gets SIGIO or any other signal (F_SETSIG), so whoever may choose it
 * freely may kill.  It is never read from memory by the kernel, where a second thread could
 * exchange the number in between: F_SETOWN_EX and SIOCSPGRP become F_SETOWN, whose number is in a
 * register.  F_OWNER_TID can't be said that way and is EINVAL.  Pid 1 owns nothing.
 */
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/pts.h"
#include "supervisor/rewrite/rewrite.h"

#define MAX_ERRNO	 4095
#define PIDFD_INFO_IOCTL 0xff0b /* PIDFD_GET_INFO of linux/pidfd.h, without its size */
#define PIDFD_INFO_PID	 16	/* three numbers: pid, tgid, ppid */
#define IOCTL_TYPE(cmd)	 ((cmd)&0xffff)

/*
 * As F_SETOWN takes it: a group is negative.  Becomes the host's in @regs, which make that call.
 */
static int set_owner(const struct tasks *t, struct user_regs_struct *regs, long long number)
{
	long long host = number < 0 ? -(long long)tasks_host_group(t, (pid_t)-number)
				    : tasks_host_task(t, (pid_t)number);

	if (number < -NUMBERS_MAX || number > NUMBERS_MAX || (number && !host))
		return -ESRCH;
	if (number == 1 || number == -1)
		return -EPERM;
	regs->orig_rax = SYS_fcntl;
	regs->rsi = F_SETOWN;
	regs->rdx = (unsigned long long)host;
	return 0;
}

static int set_owner_ex(
	const struct tasks *t, const struct task *task, struct user_regs_struct *regs)
{
	struct f_owner_ex owner;

	if (task_peek(task, regs->rdx, &owner, sizeof(owner)) < 0)
		return -EFAULT;
	if (owner.pid < 0)
		return -ESRCH;
	switch (owner.type) {
	case F_OWNER_PID:
		return set_owner(t, regs, owner.pid);
	case F_OWNER_PGRP:
		return set_owner(t, regs, -(long long)owner.pid);
	default:
		return -EINVAL;
	}
}

static int enter_fcntl(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	switch ((int)regs->rsi) {
	case F_SETOWN:
		return set_owner(&rw->tasks, regs, (int)regs->rdx);
	case F_SETOWN_EX:
		return set_owner_ex(&rw->tasks, task, regs);
	default:
		return 0;
	}
}

static long long signed_number(const struct tasks *t, long long host)
{
	return host > 0 ? numbers_virtual(t->numbers, (pid_t)host)
			: -(long long)numbers_virtual(t->numbers, (pid_t)-host);
}

static size_t lock_owner(const struct task *task)
{
	if (!task->compat.is)
		return offsetof(struct flock, l_pid);
	return (int)task->call.args[1] == F_GETLK ? offsetof(struct compat_flock, pid)
						  : offsetof(struct compat_flock64, pid);
}

static void leave_fcntl(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	uint64_t at = task->call.args[2];
	long long host = (long long)regs->rax;

	switch ((int)task->call.args[1]) {
	case F_GETOWN: /* a group may look like an error; the kernel has the same trouble */
		if (host > 0 || host < -MAX_ERRNO)
			regs->rax = (unsigned long long)signed_number(&rw->tasks, host);
		break;
	case F_GETOWN_EX:
		if (!call_failed(regs))
			call_rename(&rw->tasks, task, at + offsetof(struct f_owner_ex, pid));
		break;
	case F_GETLK:
	case F_OFD_GETLK: /* a lock of that sort has -1, but it may be another's that is in the way */
	case COMPAT_F_GETLK64:
		if (!call_failed(regs))
			call_rename(&rw->tasks, task, at + lock_owner(task));
		break;
	default:
		break;
	}
}

/* FIOSETOWN and SIOCSPGRP: only sockets have them. */
static int set_socket_owner(
	const struct tasks *t, const struct task *task, struct user_regs_struct *regs)
{
	char path[64], target[32];
	ssize_t n;
	int number;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", task->host, (int)regs->rdi);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return -EBADF;
	target[n] = '\0';
	if (strncmp(target, "socket:", 7) != 0)
		return -ENOTTY;
	if (task_peek(task, regs->rdx, &number, sizeof(number)) < 0)
		return -EFAULT;
	return set_owner(t, regs, number);
}

static int enter_ioctl(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	switch ((unsigned)regs->rsi) {
	case TIOCSPGRP: /* the kernel takes groups of the caller's session only */
		return call_host_at(&rw->tasks, task, NUMBER_GROUP, regs->rdx);
	case FIOSETOWN:
	case SIOCSPGRP:
		return set_socket_owner(&rw->tasks, task, regs);
	default:
		return 0;
	}
}

static void rename_signed(const struct tasks *t, const struct task *task, uint64_t addr)
{
	int number;

	if (task_peek(task, addr, &number, sizeof(number)) < 0)
		return;
	number = (int)signed_number(t, number);
	task_poke(task, addr, &number, sizeof(number));
}

static void leave_ioctl(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	unsigned cmd = (unsigned)task->call.args[1];
	uint64_t at = task->call.args[2];

	if (cmd == TIOCSPGRP)
		call_back_at(rw, task, regs);
	else if (call_failed(regs) || cmd == FIOSETOWN || cmd == SIOCSPGRP)
		return;
	else if (cmd == TIOCGPTN)
		pts_told(rw, task, regs);
	else if (cmd == FIOGETOWN || cmd == SIOCGPGRP)
		rename_signed(&rw->tasks, task, at);
	else if (IOCTL_TYPE(cmd) == PIDFD_INFO_IOCTL)
		for (int i = 0; i < 3; i++)
			call_rename(&rw->tasks, task, at + PIDFD_INFO_PID + i * sizeof(pid_t));
	else /* TIOCGPGRP, TIOCGSID */
		call_rename(&rw->tasks, task, at);
}

const struct rewrite_call owner_calls[] = {
	{SYS_ioctl, .enter = enter_ioctl, .leave = leave_ioctl},
	{SYS_fcntl, .enter = enter_fcntl, .leave = leave_fcntl},
};
const size_t owner_n_calls = ARRAY_SIZE(owner_calls);
