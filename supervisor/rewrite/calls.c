// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in calls.h.  The table is at the bottom. */
#include "supervisor/rewrite/calls.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/base.h"
#include "supervisor/rewrite/pi.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/robust.h"
#include "supervisor/rewrite/signals.h"

/* ---- registers ------------------------------------------------------------------------------ */

static unsigned long long *arg(struct user_regs_struct *r, int i)
{
	unsigned long long *const all[] = {&r->rdi, &r->rsi, &r->rdx, &r->r10, &r->r8, &r->r9};

	return all[i];
}

/* ---- one number ----------------------------------------------------------------------------- */

/* One that is to be made has the number of its first process. */
static pid_t to_group(const struct tasks *t, pid_t number)
{
	pid_t host = tasks_host_group(t, number);

	return host ? host : tasks_host_task(t, number);
}

/* The host's number for @number, 0 for one that nobody has.  Some values mean no number at all. */
static pid_t to_host(const struct tasks *t, enum number_sort sort, pid_t number)
{
	switch (sort) {
	case NUMBER_TASK:
		return number == 0 ? 0 : tasks_host_task(t, number);
	case NUMBER_GROUP:
		return number == 0 ? 0 : to_group(t, number);
	case NUMBER_WAIT:
		if (number == 0 || number == -1)
			return number;
		return number > 0 ? tasks_host_waited(t, number) : -tasks_host_group(t, -number);
	case NUMBER_NONE:
		break;
	}
	return number;
}

int call_replace(const struct tasks *t, enum number_sort sort, unsigned long long *value)
{
	pid_t number = (pid_t)*value, host = to_host(t, sort, number);

	/* What can't be a number at all: the kernel has an error of its own for it. */
	if (number < 0 && sort != NUMBER_WAIT)
		return 0;
	if (number != 0 && host == 0)
		return -ESRCH;
	*value = (unsigned long long)(long long)host;
	return 0;
}

/* A number in memory which the call has left there, or the kernel has written. */
void call_rename(const struct tasks *t, const struct task *task, uint64_t addr)
{
	pid_t host;

	if (task_peek(task, addr, &host, sizeof(host)) < 0 || host <= 0)
		return;
	host = numbers_virtual(t->numbers, host);
	task_poke(task, addr, &host, sizeof(host));
}

/* One that the call will read; task->call.extra keeps the address, whose number must come back. */
int call_host_at(struct tasks *t, struct task *task, enum number_sort sort, uint64_t addr)
{
	pid_t number, host;

	if (task_peek(task, addr, &number, sizeof(number)) < 0)
		return -EFAULT;
	host = to_host(t, sort, number);
	if (number > 0 && !host)
		return -ESRCH;
	task->call.extra = addr;
	return number > 0 ? task_poke(task, addr, &host, sizeof(host)) : 0;
}

void call_back_at(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (task->call.extra)
		call_rename(&rw->tasks, task, task->call.extra);
}

/* ---- processors ----------------------------------------------------------------------------- */

static int enter_affinity(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	rw->place.asked = true;
	return regs->rdi ? 0 : 1;
}

/* ---- groups --------------------------------------------------------------------------------- */

static int lead(struct rewrite *rw, pid_t host)
{
	struct task *leader = tasks_find(&rw->tasks, host);

	if (leader)
		leader->leads = true;
	return 0;
}

static int enter_setsid(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return lead(rw, task->tgid);
}

static int enter_setpgid(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	pid_t process = (pid_t)regs->rdi, group = (pid_t)regs->rsi;

	if (call_replace(&rw->tasks, NUMBER_GROUP, &regs->rsi) < 0)
		return -EPERM;
	return lead(rw, group ? (pid_t)regs->rsi : process ? process : task->tgid);
}

/* ---- births: only where they are counted (supervisor/filter.c) ------------------------------- */

static int enter_birth(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return tasks_bear(&rw->tasks, task) ? 1 : -EAGAIN;
}

/* ---- shared memory -------------------------------------------------------------------------- */

static int enter_share(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	robust_watch(task, true);
	return 1;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static int enter_waitid(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	switch ((idtype_t)regs->rdi) {
	case P_PID:
		return call_replace(&rw->tasks, NUMBER_WAIT, &regs->rsi) < 0 ? -ECHILD : 0;
	case P_PGID:
		return call_replace(&rw->tasks, NUMBER_GROUP, &regs->rsi) < 0 ? -ECHILD : 0;
	default:
		return 0;
	}
}

static void leave_waitid(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	uint64_t info = task->call.args[2];
	pid_t host;

	if (call_failed(regs) || !info)
		return;
	info += offsetof(siginfo_t, si_pid);
	if (task_peek(task, info, &host, sizeof(host)) < 0 || host <= 0)
		return;
	host = numbers_virtual(rw->tasks.numbers, host);
	task_poke(task, info, &host, sizeof(host));
	if (!(task->call.args[3] & WNOWAIT))
		tasks_reaped(&rw->tasks, host);
}

static void leave_wait4(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (!call_failed(regs))
		tasks_reaped(&rw->tasks, (pid_t)regs->rax);
}

/* rt_sigtimedwait(2): who sent it. */
static void leave_sigwait(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	siginfo_t info;
	uint64_t addr = task->call.args[1];

	if (call_failed(regs) || !addr || task_peek(task, addr, &info, sizeof(info)) < 0)
		return;
	if (rewrite_siginfo(&rw->tasks, &info))
		task_poke(task, addr, &info, sizeof(info));
}

/* ---- numbers in memory -------------------------------------------------------------------- */

/* capget(2), capset(2): the number is in the header. */
static int enter_cap(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return call_host_at(&rw->tasks, task, NUMBER_TASK,
		regs->rdi + offsetof(struct __user_cap_header_struct, pid));
}

/* ---- sockets -------------------------------------------------------------------------------- */

static int enter_peer(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return (int)regs->rsi != SOL_SOCKET;
}

/* SO_PEERCRED: struct ucred begins with the number. */
static void leave_peer(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (!call_failed(regs))
		call_rename(&rw->tasks, task, task->call.args[3]);
}

#define MAX_CONTROL  4096 /* of one message; SCM_CREDENTIALS comes before many descriptors */
#define MAX_MESSAGES 1024 /* UIO_MAXIOV, as for sendmmsg(2) */

/* The number in the credentials of message @addr becomes the host's, or what the session calls it.
 * False if there are none. */
static bool rename_credentials(struct tasks *t, struct task *task, uint64_t addr, bool host)
{
	char control[MAX_CONTROL] __attribute__((aligned(8)));
	struct msghdr m;
	uint64_t at;
	pid_t number;

	if (task_peek(task, addr, &m, sizeof(m)) < 0 || !m.msg_control || !m.msg_controllen)
		return false;
	at = (uintptr_t)m.msg_control;
	m.msg_controllen = MIN(m.msg_controllen, sizeof(control));
	if (task_peek(task, at, control, m.msg_controllen) < 0)
		return false;
	m.msg_control = control;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_CREDENTIALS ||
			c->cmsg_len < CMSG_LEN(sizeof(struct ucred)) ||
			(char *)CMSG_DATA(c) + sizeof(struct ucred) > control + m.msg_controllen)
			continue;
		memcpy(&number, CMSG_DATA(c), sizeof(number));
		number = host ? tasks_host_task(t, number) : numbers_virtual(t->numbers, number);
		task_poke(task, at + (uint64_t)((char *)CMSG_DATA(c) - control), &number,
			sizeof(number));
		return true;
	}
	return false;
}

int calls_enter_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return !rename_credentials(&rw->tasks, task, regs->rsi, true);
}

int calls_enter_sendmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	bool any = false;

	for (uint64_t i = 0; i < MIN((unsigned)regs->rdx, MAX_MESSAGES); i++)
		any |= rename_credentials(
			&rw->tasks, task, regs->rsi + i * sizeof(struct mmsghdr), true);
	return !any;
}

void calls_leave_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	rename_credentials(&rw->tasks, task, task->call.args[1], false);
}

void calls_leave_sendmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	for (uint64_t i = 0; i < MIN((unsigned)task->call.args[2], MAX_MESSAGES); i++)
		rename_credentials(
			&rw->tasks, task, task->call.args[1] + i * sizeof(struct mmsghdr), false);
}

/* Whoever gives no room for credentials gets none. */
static int enter_recvmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	struct msghdr m;

	return task_peek(task, regs->rsi, &m, sizeof(m)) < 0 ||
	       m.msg_controllen < CMSG_LEN(sizeof(struct ucred));
}

static void leave_recvmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (!call_failed(regs))
		rename_credentials(&rw->tasks, task, task->call.args[1], false);
}

static void leave_recvmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	for (uint64_t i = 0; !call_failed(regs) && i < MIN(regs->rax, MAX_MESSAGES); i++)
		rename_credentials(
			&rw->tasks, task, task->call.args[1] + i * sizeof(struct mmsghdr), false);
}

/* ---- timers --------------------------------------------------------------------------------- */

/* The clock of a process or thread: CPUCLOCK_PID of linux/posix-timers.h. */
static int enter_clock(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	int clock = (int)regs->rdi;
	pid_t number = ~(clock >> 3), host;

	if (clock >= 0 || number == 0 || (clock & 7) == 3) /* the caller's; of a descriptor */
		return 0;
	host = tasks_host_task(&rw->tasks, number);
	if (!host)
		return -EINVAL;
	regs->rdi = (unsigned long long)(int)(((unsigned)~host << 3) | ((unsigned)clock & 7));
	return 0;
}

#define SIGEV_TID offsetof(struct sigevent, _sigev_un._tid)

static int enter_timer_create(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	struct sigevent ev;
	int r = enter_clock(rw, task, regs);

	if (r < 0 || !regs->rsi || task_peek(task, regs->rsi, &ev, sizeof(ev)) < 0 ||
		!(ev.sigev_notify & SIGEV_THREAD_ID))
		return r;
	return call_host_at(&rw->tasks, task, NUMBER_TASK, regs->rsi + SIGEV_TID) < 0 ? -EINVAL : 0;
}

/* ---- the table ------------------------------------------------------------------------------ */

#define T NUMBER_TASK
#define G NUMBER_GROUP
#define W NUMBER_WAIT

const struct rewrite_call task_calls[] = {
	{SYS_mmap, .enter = enter_share},
	{SYS_clone, .enter = enter_birth},
	{SYS_fork, .enter = enter_birth},
	{SYS_vfork, .enter = enter_birth},
	{SYS_set_tid_address, .result = true},
	{SYS_setsid, .result = true, .enter = enter_setsid},
	{SYS_setpgid, {T}, .error = -ESRCH, .enter = enter_setpgid},
	{SYS_wait4, {W}, .result = true, .error = -ECHILD, .leave = leave_wait4},
	{SYS_waitid, .enter = enter_waitid, .leave = leave_waitid},
	{SYS_rt_sigtimedwait, .leave = leave_sigwait},
	{SYS_sched_setparam, {T}, .error = -ESRCH},
	{SYS_sched_getparam, {T}, .error = -ESRCH},
	{SYS_sched_setscheduler, {T}, .error = -ESRCH},
	{SYS_sched_getscheduler, {T}, .error = -ESRCH},
	{SYS_sched_rr_get_interval, {T}, .error = -ESRCH},
	{SYS_sched_setaffinity, {T}, .error = -ESRCH, .enter = enter_affinity},
	{SYS_sched_getaffinity, {T}, .error = -ESRCH},
	{SYS_sched_setattr, {T}, .error = -ESRCH},
	{SYS_sched_getattr, {T}, .error = -ESRCH},
	{SYS_prlimit64, {T}, .error = -ESRCH},
	{SYS_process_vm_readv, {T}, .error = -ESRCH},
	{SYS_process_vm_writev, {T}, .error = -ESRCH},
	{SYS_kcmp, {T, T}, .error = -ESRCH},
	{SYS_get_robust_list, {T}, .error = -ESRCH},
	{SYS_migrate_pages, {T}, .error = -ESRCH},
	{SYS_move_pages, {T}, .error = -ESRCH},
	{SYS_pidfd_open, {T}, .error = -ESRCH},
	{SYS_capget, .enter = enter_cap, .leave = call_back_at},
	{SYS_capset, .enter = enter_cap, .leave = call_back_at},
	{SYS_getsockopt, .enter = enter_peer, .leave = leave_peer},
	{SYS_sendmsg, .enter = calls_enter_sendmsg, .leave = calls_leave_sendmsg},
	{SYS_sendmmsg, .enter = calls_enter_sendmmsg, .leave = calls_leave_sendmmsg},
	{SYS_recvmsg, .enter = enter_recvmsg, .leave = leave_recvmsg},
	{SYS_recvmmsg, .leave = leave_recvmmsg},
	{SYS_futex, .enter = pi_enter, .leave = pi_leave},
	{SYS_clock_gettime, .enter = enter_clock},
	{SYS_clock_getres, .enter = enter_clock},
	{SYS_clock_nanosleep, .enter = enter_clock},
	{SYS_timer_create, .enter = enter_timer_create, .leave = call_back_at},
};

const size_t task_n_calls = ARRAY_SIZE(task_calls);

/* Of all rooms. */
static const struct {
	const struct rewrite_call *rows;
	const size_t *n;
} rooms[] = {
	{view_calls, &view_n_calls}, /* before what it adds to */
	{task_calls, &task_n_calls},
	{ipc_calls, &ipc_n_calls},
	{owner_calls, &owner_n_calls},
	{priority_calls, &priority_n_calls},
	{confine_calls, &confine_n_calls},
	{host_calls, &host_n_calls},
};

const struct rewrite_call *rewrite_call_find(int nr)
{
	for (size_t k = 0; k < ARRAY_SIZE(rooms); k++)
		for (size_t i = 0; i < *rooms[k].n; i++)
			if (rooms[k].rows[i].nr == nr)
				return &rooms[k].rows[i];
	return NULL;
}

/* ---- entry and exit ------------------------------------------------------------------------- */

static int replace_all(
	const struct tasks *t, const struct rewrite_call *row, struct user_regs_struct *regs)
{
	for (int i = 0; i < REWRITE_ARGS; i++)
		if (row->args[i] && call_replace(t, row->args[i], arg(regs, i)) < 0)
			return row->error;
	return 0;
}

static void remember(struct task *task, const struct rewrite_call *row, struct user_regs_struct *regs)
{
	task->call = (struct task_call){.row = row};
	for (int i = 0; i < REWRITE_ARGS; i++)
		task->call.args[i] = *arg(regs, i);
}

static void leave_birth(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (!call_failed(regs))
		regs->rax = task->call.extra ? task->call.extra : (unsigned long long)-EAGAIN;
}

void rewrite_call_birth(struct task *task, struct user_regs_struct *regs, pid_t number)
{
	static const struct rewrite_call row = {SYS_clone, .leave = leave_birth};

	remember(task, &row, regs);
	task->call.extra = (uint64_t)number;
}

bool rewrite_call_enter(struct rewrite *rw, struct task *task)
{
	const struct rewrite_call *row;
	struct user_regs_struct regs;
	int r;

	if (ptrace(PTRACE_GETREGS, task->host, 0, &regs) < 0)
		return false;
	row = rewrite_call_find((int)regs.orig_rax);
	if (!row) {
		regs.orig_rax = (unsigned long long)-1;
		regs.rax = (unsigned long long)-ENOSYS;
		ptrace(PTRACE_SETREGS, task->host, 0, &regs);
		return false;
	}
	remember(task, row, &regs);
	r = replace_all(&rw->tasks, row, &regs);
	if (r == 0 && row->enter)
		r = row->enter(rw, task, &regs);
	if (r < 0 || r == CALL_DONE) {
		for (int i = 0; i < REWRITE_ARGS; i++)
			*arg(&regs, i) = task->call.args[i];
		regs.orig_rax = (unsigned long long)-1;
	}
	if (r < 0)
		regs.rax = (unsigned long long)r;
	if (r != 0)
		task->call.row = NULL;
	if (r != 1)
		ptrace(PTRACE_SETREGS, task->host, 0, &regs);
	return r == 0;
}

void rewrite_call_leave(struct rewrite *rw, struct task *task)
{
	const struct rewrite_call *row = task->call.row;
	struct user_regs_struct regs;

	if (!row || ptrace(PTRACE_GETREGS, task->host, 0, &regs) < 0)
		return;
	for (int i = 0; i < REWRITE_ARGS; i++)
		*arg(&regs, i) = task->call.args[i];
	if (row->result && (long long)regs.rax > 0)
		regs.rax = (unsigned long long)numbers_virtual(rw->tasks.numbers, (pid_t)regs.rax);
	if (row->leave)
		row->leave(rw, task, &regs);
	task->call.row = NULL;
	ptrace(PTRACE_SETREGS, task->host, 0, &regs);
}
