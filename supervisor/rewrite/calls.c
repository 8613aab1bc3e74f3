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
#include "supervisor/rewrite/users/caps.h"
#include "supervisor/rewrite/users/users.h"

#define ERESTARTSYS    512 /* linux/errno.h of the kernel */
#define ERESTARTNOINTR 513

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
	/*
	 * What means the same on the host, as -1 does to wait4(2), stays as it was said, in 32 or
	 * 64 bits.
	 */
	if (host != number)
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
	place_again(&rw->place);
	return regs->rdi ? 0 : 1;
}

static void leave_affinity(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	place_again(&rw->place);
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

/* ---- births: only where they are counted (supervisor/filter/filter.c)
 * ------------------------------- */

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

#define SYSCALL_LEN 2 /* bytes of the instruction */

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

/*
 * Whom nobody has a number for, as a snapshot's copy of memory, was no child of its: it waits on.
 */
static void wait_again(const struct task *task, struct user_regs_struct *regs)
{
	regs->rax = task->compat.is ? task->compat.raw.orig_rax : regs->orig_rax;
	regs->rip -= SYSCALL_LEN;
}

static void leave_waitid(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	uint64_t addr = task->call.args[2];
	siginfo_t info = {0};
	int32_t who[2]; /* si_pid, and si_uid behind it */

	if (call_failed(regs) || !addr)
		return;
	addr += task->compat.is ? offsetof(struct compat_siginfo_head, pid)
				: offsetof(siginfo_t, si_pid);
	if (task_peek(task, addr, who, sizeof(who)) < 0 || who[0] <= 0)
		return;
	if (!numbers_virtual(rw->tasks.numbers, who[0]) && !(task->call.args[3] & WNOWAIT)) {
		wait_again(task, regs);
		return;
	}
	info.si_uid = (uid_t)who[1];
	rewrite_users_sender(&rw->tasks, who[0], &info);
	who[0] = numbers_virtual(rw->tasks.numbers, who[0]);
	who[1] = (int32_t)info.si_uid;
	task_poke(task, addr, who, sizeof(who));
	if (!(task->call.args[3] & WNOWAIT))
		tasks_reaped(&rw->tasks, who[0]);
}

void calls_leave_wait4(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	pid_t number;

	if (call_failed(regs) || !regs->rax)
		return;
	number = numbers_virtual(rw->tasks.numbers, (pid_t)regs->rax);
	if (number) {
		tasks_reaped(&rw->tasks, number);
		regs->rax = (unsigned long long)number;
	} else {
		wait_again(task, regs);
	}
}

static void leave_sigwait_32(struct rewrite *rw, const struct task *task, uint64_t addr)
{
	struct compat_siginfo_head head;
	siginfo_t info = {0};

	if (task_peek(task, addr, &head, sizeof(head)) < 0)
		return;
	info.si_signo = head.signo;
	info.si_code = head.code;
	info.si_pid = head.pid;
	if (!rewrite_siginfo(&rw->tasks, &info))
		return;
	head.code = info.si_code;
	head.pid = info.si_pid;
	task_poke(task, addr, &head, sizeof(head));
}

/* rt_sigtimedwait(2): who sent it. */
static void leave_sigwait(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	siginfo_t info;
	uint64_t addr = task->call.args[1];

	if (call_failed(regs) || !addr)
		return;
	if (task->compat.is)
		leave_sigwait_32(rw, task, addr);
	else if (task_peek(task, addr, &info, sizeof(info)) == 0 &&
		 rewrite_siginfo(&rw->tasks, &info))
		task_poke(task, addr, &info, sizeof(info));
}

/* ---- numbers in memory -------------------------------------------------------------------- */

/* capget(2), capset(2): the number is in the header. */
static int enter_cap(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (rw->tasks.users && rw->tasks.users->root)
		return users_caps_enter(rw, task, regs);
	return call_host_at(&rw->tasks, task, NUMBER_TASK,
		regs->rdi + offsetof(struct __user_cap_header_struct, pid));
}

/* ---- sockets -------------------------------------------------------------------------------- */

static int enter_peer(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return (int)regs->rsi != SOL_SOCKET || (int)regs->rdx != SO_PEERCRED;
}

/* SO_PEERCRED: struct ucred begins with the number. */
static void leave_peer(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	uint64_t addr = task->call.args[3];
	struct ucred cred;
	socklen_t len;

	if (call_failed(regs))
		return;
	if (rw->tasks.users && task_peek(task, task->call.args[4], &len, sizeof(len)) == 0 &&
		len == sizeof(cred) && task_peek(task, addr, &cred, sizeof(cred)) == 0) {
		rewrite_users_peer(rw->tasks.users, &cred, true);
		task_poke(task, addr, &cred, sizeof(cred));
	}
	call_rename(&rw->tasks, task, addr);
}

#define MAX_CONTROL  4096 /* of one message; SCM_CREDENTIALS comes before many descriptors */
#define MAX_MESSAGES 1024 /* UIO_MAXIOV, as for sendmmsg(2) */

bool calls_peek_message(const struct task *task, uint64_t addr, struct message *ret)
{
	struct compat_msghdr m32;
	struct msghdr m;

	if (task->compat.is) {
		if (task_peek(task, addr, &m32, sizeof(m32)) < 0)
			return false;
		*ret = (struct message){m32.name, m32.namelen, m32.control, m32.controllen};
		return true;
	}
	if (task_peek(task, addr, &m, sizeof(m)) < 0)
		return false;
	*ret = (struct message){
		(uintptr_t)m.msg_name, m.msg_namelen, (uintptr_t)m.msg_control, m.msg_controllen};
	return true;
}

uint64_t calls_message_at(const struct task *task, uint64_t addr, uint64_t i)
{
	return addr + i * (task->compat.is ? sizeof(struct compat_msghdr) + sizeof(uint32_t)
					   : sizeof(struct mmsghdr));
}

/* What is in front of a control message's content: size_t and two numbers. */
static size_t control_head(const struct task *task)
{
	return task->compat.is ? 12 : sizeof(struct cmsghdr);
}

/* The first credentials in @control, of @len bytes; 0 if there are none. */
static size_t find_credentials(const struct task *task, const char *control, size_t len)
{
	size_t head = control_head(task), word = head - 2 * sizeof(int), n;

	for (size_t at = 0; at + head <= len; at += (n + word - 1) / word * word) {
		int sort[2];

		n = 0;
		memcpy(&n, control + at, word);
		memcpy(sort, control + at + word, sizeof(sort));
		if (n < head || n > len - at)
			return 0;
		if (sort[0] == SOL_SOCKET && sort[1] == SCM_CREDENTIALS &&
			n >= head + sizeof(struct ucred))
			return at + head;
	}
	return 0;
}

enum { SENT, SENT_BACK, RECEIVED };

/*
 * In credentials that are sent the session's names become the host's, at the exit of the call they
 * are put back; in those received they are the host's.  0 or -EPERM.
 */
static int rename_ucred(struct rewrite *rw, struct task *task, struct ucred *cred, int how)
{
	struct tasks *t = &rw->tasks;

	if (how == SENT) {
		cred->pid = tasks_host_task(t, cred->pid);
		task->call.extra = cred->uid | (uint64_t)cred->gid << 32;
		return t->users ? rewrite_users_send(t->users, task, cred) : 0;
	}
	if (t->users && how == RECEIVED)
		rewrite_users_peer(t->users, cred, false);
	if (t->users && how == SENT_BACK) { /* of several messages all are by one user */
		cred->uid = (uid_t)task->call.extra;
		cred->gid = (gid_t)(task->call.extra >> 32);
	}
	cred->pid = numbers_virtual(t->numbers, cred->pid);
	return 0;
}

/* Of message @addr: 1, 0 if it has no credentials, -EPERM. */
static int rename_credentials(struct rewrite *rw, struct task *task, uint64_t addr, int how)
{
	char control[MAX_CONTROL];
	struct message m;
	struct ucred cred;
	size_t at;

	if (!calls_peek_message(task, addr, &m) || !m.control || !m.control_len)
		return 0;
	m.control_len = MIN(m.control_len, sizeof(control));
	if (task_peek(task, m.control, control, m.control_len) < 0)
		return 0;
	at = find_credentials(task, control, m.control_len);
	if (!at)
		return 0;
	memcpy(&cred, control + at, sizeof(cred));
	if (rename_ucred(rw, task, &cred, how) < 0)
		return -EPERM;
	task_poke(task, m.control + at, &cred, sizeof(cred));
	return 1;
}

/* As a row's enter has it. */
static int entered(int renamed)
{
	return renamed < 0 ? renamed : !renamed;
}

int calls_enter_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return entered(rename_credentials(rw, task, regs->rsi, SENT));
}

int calls_enter_sendmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	uint64_t n = MIN((unsigned)regs->rdx, MAX_MESSAGES), i = 0;
	int any = 0, r = 0;

	for (; r >= 0 && i < n; i++) {
		r = rename_credentials(rw, task, calls_message_at(task, regs->rsi, i), SENT);
		any |= r > 0;
	}
	if (r >= 0)
		return entered(any);
	/* What comes before it is put back. */
	for (n = i - 1, i = 0; i < n; i++)
		rename_credentials(rw, task, calls_message_at(task, regs->rsi, i), SENT_BACK);
	return r;
}

void calls_leave_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	rename_credentials(rw, task, task->call.args[1], SENT_BACK);
}

void calls_leave_sendmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	for (uint64_t i = 0; i < MIN((unsigned)task->call.args[2], MAX_MESSAGES); i++)
		rename_credentials(
			rw, task, calls_message_at(task, task->call.args[1], i), SENT_BACK);
}

/* Whoever gives no room for credentials gets none. */
static int enter_recvmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	struct message m;

	return !calls_peek_message(task, regs->rsi, &m) ||
	       m.control_len < control_head(task) + sizeof(struct ucred);
}

static void leave_recvmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (!call_failed(regs))
		rename_credentials(rw, task, task->call.args[1], RECEIVED);
}

static void leave_recvmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	for (uint64_t i = 0; !call_failed(regs) && i < MIN(regs->rax, MAX_MESSAGES); i++)
		rename_credentials(
			rw, task, calls_message_at(task, task->call.args[1], i), RECEIVED);
}

/* ---- timers --------------------------------------------------------------------------------- */

/* The clock of a process or thread: CPUCLOCK_PID of linux/posix-timers.h. */
int calls_enter_clock(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
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

/* Where the number of a thread to be told is; 0: nowhere. */
static uint64_t thread_told(const struct task *task, uint64_t addr)
{
	struct compat_sigevent ev32;
	struct sigevent ev;

	if (!addr)
		return 0;
	if (task->compat.is)
		return task_peek(task, addr, &ev32, sizeof(ev32)) == 0 &&
				       ev32.notify & SIGEV_THREAD_ID
			       ? addr + offsetof(struct compat_sigevent, tid)
			       : 0;
	return task_peek(task, addr, &ev, sizeof(ev)) == 0 && ev.sigev_notify & SIGEV_THREAD_ID
		       ? addr + SIGEV_TID
		       : 0;
}

static int enter_timer_create(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	int r = calls_enter_clock(rw, task, regs);
	uint64_t at = r < 0 ? 0 : thread_told(task, regs->rsi);

	if (!at)
		return r;
	return call_host_at(&rw->tasks, task, NUMBER_TASK, at) < 0 ? -EINVAL : 0;
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
	{SYS_wait4, {W}, .error = -ECHILD, .leave = calls_leave_wait4},
	{SYS_waitid, .enter = enter_waitid, .leave = leave_waitid},
	{SYS_rt_sigtimedwait, .leave = leave_sigwait},
	{SYS_sched_setparam, {T}, .error = -ESRCH},
	{SYS_sched_getparam, {T}, .error = -ESRCH},
	{SYS_sched_setscheduler, {T}, .error = -ESRCH},
	{SYS_sched_getscheduler, {T}, .error = -ESRCH},
	{SYS_sched_rr_get_interval, {T}, .error = -ESRCH},
	{SYS_sched_setaffinity, {T}, .error = -ESRCH, .enter = enter_affinity,
		.leave = leave_affinity},
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
	{SYS_clock_gettime, .enter = calls_enter_clock},
	{SYS_clock_getres, .enter = calls_enter_clock},
	{SYS_clock_nanosleep, .enter = calls_enter_clock},
	{SYS_timer_create, .enter = enter_timer_create, .leave = call_back_at},
};

const size_t task_n_calls = ARRAY_SIZE(task_calls);

/* Of all rooms. */
static const struct {
	const struct rewrite_call *rows;
	const size_t *n;
} rooms[] = {
	{view_calls, &view_n_calls}, /* before what it adds to */
	{clock_calls, &clock_n_calls}, /* likewise */
	{task_calls, &task_n_calls},
	{ipc_calls, &ipc_n_calls},
	{owner_calls, &owner_n_calls},
	{priority_calls, &priority_n_calls},
	{confine_calls, &confine_n_calls},
	{host_calls, &host_n_calls},
	{compat_calls, &compat_n_calls},
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
		if (row->args[i] && call_replace(t, row->args[i], call_arg(regs, i)) < 0)
			return row->error;
	return 0;
}

static void remember(
	struct task *task, const struct rewrite_call *row, struct user_regs_struct *regs)
{
	task->call = (struct task_call){.row = row};
	for (int i = 0; i < REWRITE_ARGS; i++)
		task->call.args[i] = *call_arg(regs, i);
}

/* A call that has made a task: it can't fail any more, and only its result is another. */
static const struct rewrite_call birth = {.nr = SYS_clone};

void rewrite_call_birth(struct task *task, pid_t number)
{
	task->call = (struct task_call){.row = &birth, .extra = (uint64_t)number};
}

static void leave_birth(struct task *task)
{
	task->call.row = NULL;
	compat_set_result(task->host, task->call.extra ? (long)task->call.extra : -EAGAIN);
}

/*
 * What is a question now is never interrupted (answers.h): rewriter.c would not know it by its own
 * number.
 */
static void leave_unpacked(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if ((long long)regs->rax == -ERESTARTSYS)
		regs->rax = (unsigned long long)-ERESTARTNOINTR;
}

/* A call that is to be put back only because it has become another one. */
static const struct rewrite_call unpacked = {.nr = -1, .leave = leave_unpacked};

static int enter(struct rewrite *rw, struct task *task, const struct rewrite_call *row,
	struct user_regs_struct *regs)
{
	int r = replace_all(&rw->tasks, row, regs);

	if (r == 0 && row->enter)
		r = row->enter(rw, task, regs);
	if (r != 1 || !task->compat.unpacked)
		return r;
	task->call.row = &unpacked;
	return 0;
}

/* The call is not made: @regs->rax is its result. */
static int is_done(struct task *task, struct user_regs_struct *regs)
{
	task->call.row = NULL;
	for (int i = 0; i < REWRITE_ARGS; i++)
		*call_arg(regs, i) = task->call.args[i];
	regs->orig_rax = (unsigned long long)-1;
	compat_set_back(task->host, &task->compat, regs);
	return 1;
}

/* The session's own filters, if it has any, are not asked about this once more (confine.h). */
static void pass_filters(const struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (!rw->confined)
		return;
	task->call.behind = regs->rip;
	regs->rip = PODRUN_DOOR;
}

int rewrite_call_enter(struct rewrite *rw, struct task *task)
{
	const struct rewrite_call *row;
	struct user_regs_struct regs;
	int r;

	if (compat_get(task->host, &task->compat, &regs) < 0)
		return 1;
	r = compat_unpack(task, &regs);
	row = rewrite_call_find((int)regs.orig_rax);
	if (!row && task->compat.unpacked)
		row = &unpacked;
	remember(task, row, &regs);
	if (r == 0)
		r = row ? enter(rw, task, row, &regs) : -ENOSYS;
	if (r == CALL_GONE || r == CALL_EXECED)
		return r;
	if (r < 0)
		regs.rax = (unsigned long long)r;
	if (r < 0 || r == CALL_DONE)
		return is_done(task, &regs);
	if (r != 0) {
		task->call.row = NULL;
		return r;
	}
	pass_filters(rw, task, &regs);
	compat_set(task->host, &task->compat, &regs);
	return 0;
}

void rewrite_call_leave(struct rewrite *rw, struct task *task)
{
	const struct rewrite_call *row = task->call.row;
	struct user_regs_struct regs;

	if (row == &birth) {
		leave_birth(task);
		return;
	}
	if (!row || compat_get_again(task->host, &task->compat, &regs) < 0)
		return;
	for (int i = 0; i < REWRITE_ARGS; i++)
		*call_arg(&regs, i) = task->call.args[i];
	if (task->call.behind)
		regs.rip = task->call.behind;
	if (row->result && (long long)regs.rax > 0)
		regs.rax = (unsigned long long)numbers_virtual(rw->tasks.numbers, (pid_t)regs.rax);
	if (row->leave)
		row->leave(rw, task, &regs);
	task->call.row = NULL;
	compat_set_back(task->host, &task->compat, &regs);
}
