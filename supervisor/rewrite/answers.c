// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in answers.h. */
#include "supervisor/rewrite/answers.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "base/base.h"
#include "supervisor/rewrite/signals.h"
#include "supervisor/rewrite/tasks.h"

struct question {
	const struct tasks *tasks;
	const struct task *asker;
	const struct seccomp_data *data;
	pid_t tid;
	bool go_on; /* the kernel shall do it */
};

static pid_t arg(const struct question *q, int i)
{
	return (pid_t)q->data->args[i];
}

/* ---- who ------------------------------------------------------------------------------------ */

static long get_pid(struct question *q)
{
	return numbers_virtual(q->tasks->numbers, q->asker->tgid);
}

static long get_tid(struct question *q)
{
	return q->asker->number;
}

/* Whoever is its parent may change at any moment: only the host knows. */
static long get_ppid(struct question *q)
{
	pid_t parent;
	char state;

	return tasks_look(q->asker->tgid, &state, &parent)
		? numbers_virtual(q->tasks->numbers, parent) : 0;
}

static long of(struct question *q, pid_t number, pid_t (*ask)(pid_t))
{
	pid_t host = number ? tasks_host_task(q->tasks, number) : q->asker->host, found;

	if (!host)
		return -ESRCH;
	found = ask(host);
	return found < 0 ? -errno : numbers_virtual(q->tasks->numbers, found);
}

static long get_pgrp(struct question *q)
{
	return of(q, 0, getpgid);
}

static long get_pgid(struct question *q)
{
	return of(q, arg(q, 0), getpgid);
}

static long get_sid(struct question *q)
{
	return of(q, arg(q, 0), getsid);
}

/* ---- signals -------------------------------------------------------------------------------- */

static long on_kill(struct question *q)
{
	return signals_kill(q->tasks, q->asker, arg(q, 0), arg(q, 1));
}

static long on_tkill(struct question *q)
{
	return signals_tgkill(q->tasks, q->asker, 0, arg(q, 0), arg(q, 1));
}

static long on_tgkill(struct question *q)
{
	if (arg(q, 0) <= 0)
		return -EINVAL;
	return signals_tgkill(q->tasks, q->asker, arg(q, 0), arg(q, 1), arg(q, 2));
}

static long queue(struct question *q, pid_t tgid, pid_t tid, int sig, uint64_t addr)
{
	siginfo_t info;
	struct iovec local = {&info, sizeof(info)}, there = {(void *)(uintptr_t)addr, sizeof(info)};

	if (process_vm_readv(q->tid, &local, 1, &there, 1, 0) != sizeof(info))
		return -EFAULT;
	return signals_queue(q->tasks, q->asker, tgid, tid, sig, &info);
}

static long on_sigqueue(struct question *q)
{
	if (arg(q, 0) <= 0)
		return -ESRCH;
	return queue(q, 0, arg(q, 0), arg(q, 1), q->data->args[2]);
}

static long on_tgsigqueue(struct question *q)
{
	if (arg(q, 0) <= 0 || arg(q, 1) <= 0)
		return -EINVAL;
	return queue(q, arg(q, 0), arg(q, 1), arg(q, 2), q->data->args[3]);
}

/* ---- the rest ------------------------------------------------------------------------------- */

static long go_on(struct question *q)
{
	q->go_on = true;
	return 0;
}

static const struct {
	int nr;
	long (*answer)(struct question *q);
} table[] = {
	{SYS_getpid, get_pid},
	{SYS_gettid, get_tid},
	{SYS_getppid, get_ppid},
	{SYS_getpgrp, get_pgrp},
	{SYS_getpgid, get_pgid},
	{SYS_getsid, get_sid},
	{SYS_kill, on_kill},
	{SYS_tkill, on_tkill},
	{SYS_tgkill, on_tgkill},
	{SYS_rt_sigqueueinfo, on_sigqueue},
	{SYS_rt_tgsigqueueinfo, on_tgsigqueue},
	/* Handed over for what only a suspend needs to know. */
	{SYS_seccomp, go_on},
	{SYS_prctl, go_on},
};

static long answer(struct question *q)
{
	if (q->data->arch != AUDIT_ARCH_X86_64 || !q->asker)
		return -ENOSYS;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].nr == q->data->nr)
			return table[i].answer(q);
	return -ENOSYS;
}

bool answers_has(int nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (table[i].nr == nr)
			return true;
	return false;
}

int answers_one(const struct tasks *t, int listener, pthread_mutex_t *lock)
{
	struct seccomp_notif request = {0};
	struct seccomp_notif_resp response = {0};
	struct question q = {.tasks = t, .data = &request.data};
	long value;

	/* ENOENT: a call was interrupted before it was received. */
	if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	q.tid = (pid_t)request.pid;
	pthread_mutex_lock(lock);
	q.asker = tasks_find(t, q.tid);
	value = answer(&q);
	pthread_mutex_unlock(lock);
	response.id = request.id;
	if (q.go_on)
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (value < 0)
		response.error = (int)value;
	else
		response.val = value;
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response); /* ENOENT: killed meanwhile */
	return 0;
}
