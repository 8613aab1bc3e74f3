// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in answers.h. */
#include "supervisor/rewrite/answers.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/uio.h>

#include "base/base.h"
#include "supervisor/policy/policy.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/signals.h"

/* ---- for all rooms -------------------------------------------------------------------------- */

bool question_waits(const struct question *q)
{
	return ioctl(q->rw->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &q->id) == 0;
}

int question_read(const struct question *q, uint64_t addr, void *data, size_t len)
{
	struct iovec local = {data, len}, there = {(void *)(uintptr_t)addr, len};

	return process_vm_readv(q->tid, &local, 1, &there, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

int question_write(const struct question *q, uint64_t addr, const void *data, size_t len)
{
	struct iovec local = {(void *)data, len}, there = {(void *)(uintptr_t)addr, len};

	if (!question_waits(q))
		return -EFAULT;
	return process_vm_writev(q->tid, &local, 1, &there, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

int question_siginfo(const struct question *q, uint64_t addr, siginfo_t *ret)
{
	char narrow[COMPAT_SIGINFO];

	if (q->nr32 < 0)
		return question_read(q, addr, ret, sizeof(*ret));
	if (question_read(q, addr, narrow, sizeof(narrow)) < 0)
		return -EFAULT;
	compat_siginfo(narrow, ret);
	return 0;
}

/* ---- who ------------------------------------------------------------------------------------ */

static long get_pid(struct question *q)
{
	return numbers_virtual(q->rw->tasks.numbers, q->asker->tgid);
}

static long get_tid(struct question *q)
{
	return q->asker->number;
}

/* When the one who made it has ended only the host knows who is its parent now. */
static long get_ppid(struct question *q)
{
	const struct tasks *t = &q->rw->tasks;
	const struct task *process = tasks_find(t, q->asker->tgid);
	const struct task *maker = process ? tasks_find(t, process->parent) : NULL;
	pid_t parent;
	char state;

	if (maker && !maker->gone && maker->serial < process->serial)
		return maker->number;
	return tasks_look(q->asker->tgid, &state, &parent)
		       ? numbers_virtual(q->rw->tasks.numbers, parent)
		       : 0;
}

static long of(struct question *q, pid_t number, pid_t (*ask)(pid_t))
{
	pid_t host = number ? tasks_host_task(&q->rw->tasks, number) : q->asker->host, found;

	if (!host)
		return -ESRCH;
	found = ask(host);
	return found < 0 ? -errno : numbers_virtual(q->rw->tasks.numbers, found);
}

static long get_pgrp(struct question *q)
{
	return of(q, 0, getpgid);
}

static long get_pgid(struct question *q)
{
	return of(q, question_arg(q, 0), getpgid);
}

static long get_sid(struct question *q)
{
	return of(q, question_arg(q, 0), getsid);
}

/* ---- signals -------------------------------------------------------------------------------- */

static long on_kill(struct question *q)
{
	return signals_kill(&q->rw->tasks, q->asker, question_arg(q, 0), question_arg(q, 1));
}

static long on_tkill(struct question *q)
{
	return signals_tgkill(&q->rw->tasks, q->asker, 0, question_arg(q, 0), question_arg(q, 1));
}

static long on_tgkill(struct question *q)
{
	if (question_arg(q, 0) <= 0)
		return -EINVAL;
	return signals_tgkill(&q->rw->tasks, q->asker, question_arg(q, 0), question_arg(q, 1),
		question_arg(q, 2));
}

static long queue(struct question *q, pid_t tgid, pid_t tid, int sig, uint64_t addr)
{
	siginfo_t info;

	if (question_siginfo(q, addr, &info) < 0)
		return -EFAULT;
	return signals_queue(&q->rw->tasks, q->asker, tgid, tid, sig, &info);
}

static long on_sigqueue(struct question *q)
{
	if (question_arg(q, 0) <= 0)
		return -ESRCH;
	return queue(q, 0, question_arg(q, 0), question_arg(q, 1), q->data->args[2]);
}

static long on_tgsigqueue(struct question *q)
{
	if (question_arg(q, 0) <= 0 || question_arg(q, 1) <= 0)
		return -EINVAL;
	return queue(
		q, question_arg(q, 0), question_arg(q, 1), question_arg(q, 2), q->data->args[3]);
}

/* ---- the table ------------------------------------------------------------------------------ */

const struct answer_row task_answers[] = {
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
};

const size_t task_n_answers = ARRAY_SIZE(task_answers);

/* Of all rooms; where two have a row for a call the first is taken. */
static const struct {
	const struct answer_row *rows;
	const size_t *n;
} rooms[] = {
	{task_answers, &task_n_answers},
	{ipc_sysv_answers, &ipc_sysv_n_answers},
	{ipc_queue_answers, &ipc_queue_n_answers},
	{view_answers, &view_n_answers},
	{pidfd_answers, &pidfd_n_answers},
	{attribute_answers, &attribute_n_answers},
	{host_answers, &host_n_answers},
	{user_answers, &user_n_answers},
	{clock_answers, &clock_n_answers},
};

static rewrite_answer *by_number[ANSWERS_MAX];

static void __attribute__((constructor)) put_together(void)
{
	for (size_t k = ARRAY_SIZE(rooms); k-- > 0;)
		for (size_t i = 0; i < *rooms[k].n; i++)
			by_number[rooms[k].rows[i].nr] = rooms[k].rows[i].answer;
}

size_t answers_list(long ret[ANSWERS_MAX])
{
	size_t n = 0;

	for (int nr = 0; nr < ANSWERS_MAX; nr++)
		if (by_number[nr])
			ret[n++] = nr;
	return n;
}

bool answers_has(int nr)
{
	return nr >= 0 && nr < ANSWERS_MAX && by_number[nr];
}

/* A call of i386 is put in the words of x86-64. */
static void understand(struct question *q, struct seccomp_data *data)
{
	q->nr32 = -1;
	if (data->arch != AUDIT_ARCH_I386)
		return;
	q->nr32 = data->nr;
	data->nr = policy_number64(data->nr);
	/* 64-bit code may have more in its registers. */
	for (size_t i = 0; i < ARRAY_SIZE(data->args); i++)
		data->args[i] = (uint32_t)data->args[i];
}

static long answer(struct question *q)
{
	if (!q->asker || !answers_has(q->data->nr))
		return -ENOSYS;
	return by_number[q->data->nr](q);
}

/* ---- lending -------------------------------------------------------------------------------- */

uint64_t answers_lend(struct rewrite *rw)
{
	uint64_t key = 0;

	while (!key)
		if (getrandom(&key, sizeof(key), 0) != sizeof(key))
			key = 0;
	pthread_mutex_lock(&rw->lock);
	rw->lend_key = key;
	pthread_mutex_unlock(&rw->lock);
	return key;
}

/* Only what we have injected can know the key: the session has never run since it was made. */
static bool asks_for_descriptor(const struct question *q)
{
	return q->rw->trusting && q->rw->lend_key && q->nr32 < 0 && q->data->nr == ANSWERS_LEND &&
	       q->data->args[0] == q->rw->lend_key;
}

/* The number it has there is the call's result. */
static long give_descriptor(struct question *q)
{
	struct seccomp_notif_addfd a = {.id = q->id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (uint32_t)q->data->args[1],
		.newfd_flags = O_CLOEXEC};

	q->sent = ioctl(q->rw->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &a) >= 0;
	return q->sent ? 0 : -errno;
}

int answers_one(struct rewrite *rw)
{
	struct seccomp_notif request = {0};
	struct seccomp_notif_resp response = {0};
	struct question q = {.rw = rw, .data = &request.data};
	long value;

	/* ENOENT: a call was interrupted before it was received. */
	if (ioctl(rw->listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0)
		return errno == ENOENT || errno == EINTR ? 0 : -errno;
	q.tid = (pid_t)request.pid;
	q.id = request.id;
	understand(&q, &request.data);
	pthread_mutex_lock(&rw->lock);
	q.asker = tasks_find(&rw->tasks, q.tid);
	q.go_on = rw->trusting && !asks_for_descriptor(&q) && !attributes_asked(q.data);
	value = q.go_on ? 0 : asks_for_descriptor(&q) ? give_descriptor(&q) : answer(&q);
	pthread_mutex_unlock(&rw->lock);
	response.id = request.id;
	if (q.go_on)
		response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	else if (value < 0)
		response.error = (int)value;
	else
		response.val = value;
	if (!q.sent) /* ENOENT: killed meanwhile */
		ioctl(rw->listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
	return 0;
}
