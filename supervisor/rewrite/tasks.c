// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The host may give the number of a task that has ended to a stranger.  So the name of one that is
 * gone is believed only as long as somebody, who may be a zombie, has it as his group or session,
 * or it is a zombie, which the host's /proc tells.
 */
#include "supervisor/rewrite/tasks.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base.h"

#define SWEEP_AT 64 /* numbers of ended tasks before they are looked through */

/* Of pid 1, which is podrun's own and says the host's numbers: nobody may
 * look at it, but root can. */
static bool is_ours(const struct task *task)
{
	return task->number == 1;
}

int task_peek(const struct task *task, uint64_t addr, void *data, size_t len)
{
	struct iovec local = {data, len}, there = {(void *)(uintptr_t)addr, len};

	if (is_ours(task))
		return -EFAULT;
	return process_vm_readv(task->host, &local, 1, &there, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

int task_poke(const struct task *task, uint64_t addr, const void *data, size_t len)
{
	struct iovec local = {(void *)data, len}, there = {(void *)(uintptr_t)addr, len};

	if (is_ours(task))
		return -EFAULT;
	return process_vm_writev(task->host, &local, 1, &there, 1, 0) == (ssize_t)len ? 0 : -EFAULT;
}

struct task *tasks_find(const struct tasks *t, pid_t host)
{
	struct task *task = t->all[numbers_virtual(t->numbers, host)];

	/* Others may only be called by its number (numbers_alias). */
	return task && task->host == host ? task : NULL;
}

static void forget(struct tasks *t, struct task *task)
{
	tasks_bore(t, task);
	t->all[task->number] = NULL;
	t->n--;
	t->living -= !task->gone;
	t->n_gone -= task->gone && !task->reaped;
	numbers_remove(t->numbers, task->number);
	free(task);
}

bool tasks_look(pid_t host, char *ret_state, pid_t *ret_parent)
{
	char path[32], text[512], *p;
	_cleanup_close_ int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", host);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	p = strrchr(text, ')');
	return p && sscanf(p, ") %c %d", ret_state, ret_parent) == 2;
}

/* A zombie child of somebody in the session. */
static bool is_zombie(const struct tasks *t, pid_t host)
{
	pid_t parent;
	char state;

	return tasks_look(host, &state, &parent) && state == 'Z' && tasks_find(t, parent);
}

bool tasks_is_zombie(const struct tasks *t, const struct task *task)
{
	return task->gone && is_zombie(t, task->host);
}

/* Of somebody who lives, or of a zombie. */
static bool names_group(const struct tasks *t, pid_t host, bool session)
{
	for (int i = 1; i < NUMBERS_MAX; i++) {
		const struct task *one = t->all[i];

		if (one && !one->reaped &&
			(getpgid(one->host) == host || (session && getsid(one->host) == host)) &&
			(!one->gone || is_zombie(t, one->host)))
			return true;
	}
	return false;
}

/* A signal, or a call that is about to return, may still have to tell of it. */
static void forget_soon(struct tasks *t, struct task *task)
{
	pid_t former = t->reaped[t->next_reaped];

	task->reaped = true;
	t->n_gone--;
	t->reaped[t->next_reaped] = task->number;
	t->next_reaped = (t->next_reaped + 1) % TASKS_REAPED;
	if (t->all[former] && t->all[former]->reaped)
		forget(t, t->all[former]);
}

/* Most are forgotten when somebody waits for them: tasks_reaped. */
static void sweep(struct tasks *t)
{
	for (int i = 1; i < NUMBERS_MAX; i++) {
		struct task *one = t->all[i];

		if (one && one->gone && !one->reaped && !is_zombie(t, one->host) &&
			!names_group(t, one->host, true))
			forget_soon(t, one);
	}
	t->sweep_at = 2 * t->n_gone + SWEEP_AT;
}

static struct task *enter(struct tasks *t, pid_t host, pid_t number)
{
	struct task *task = calloc(1, sizeof(*task));

	if (!task)
		return NULL;
	task->number = number;
	task->host = host;
	task->tgid = host;
	task->leads = true;
	task->serial = ++t->last_serial;
	numbers_set(t->numbers, number, host);
	t->all[number] = task;
	t->n++;
	t->living++;
	return task;
}

struct task *tasks_add(struct tasks *t, pid_t host)
{
	struct task *task = tasks_find(t, host);
	pid_t number;

	/* The host has given the number away again, so the old one's names are all gone. */
	if (task)
		forget(t, task);
	if (t->n_gone > MAX(t->sweep_at, SWEEP_AT))
		sweep(t);
	number = numbers_add(t->numbers, host);
	task = number > 0 ? enter(t, host, number) : NULL;
	if (number > 0 && !task)
		numbers_remove(t->numbers, number);
	return task;
}

struct task *tasks_add_as(struct tasks *t, pid_t host, pid_t number)
{
	struct task *task = tasks_find(t, host);

	if (task && task->number == number)
		return task;
	if (number <= 0 || number >= NUMBERS_MAX || t->all[number])
		return NULL;
	if (task)
		forget(t, task);
	return enter(t, host, number);
}

struct task *tasks_born(struct tasks *t, pid_t host)
{
	struct task *task = tasks_add(t, host);

	if (task)
		task->leads = false;
	return task;
}

bool tasks_bear(struct tasks *t, struct task *parent)
{
	tasks_bore(t, parent);
	if (t->most && t->living - 1 + t->bearing >= t->most)
		return false;
	parent->bears = true;
	t->bearing++;
	return true;
}

void tasks_bore(struct tasks *t, struct task *parent)
{
	t->bearing -= parent->bears;
	parent->bears = false;
}

static void inherit_ids(struct task *child, const struct task *process, const struct task *thread)
{
	if (child->inherited)
		return;
	child->inherited = true;
	child->uid = process->uid;
	child->caps = thread->caps;
}

void tasks_inherit_early(struct tasks *t, struct task *child)
{
	const struct task *parent;
	pid_t host;
	char state;

	if ((!t->closes && !t->users) || child->told || !tasks_look(child->host, &state, &host))
		return;
	parent = tasks_find(t, host);
	child->closed = parent && parent->closed;
	if (parent)
		inherit_ids(child, parent, parent);
}

void tasks_inherit(struct tasks *t, struct task *child, const struct task *parent)
{
	const struct task *process = tasks_find(t, parent->tgid);

	child->closed = process && process->closed;
	inherit_ids(child, process ? process : parent, parent);
}

/*
 * All its threads have ended before it.  One that has called exec goes by its number, and if it was
 * killed in that moment nobody has told of it.
 */
static void end_threads(struct tasks *t, const struct task *process)
{
	for (int i = 1; process->threaded && i < NUMBERS_MAX; i++)
		if (t->all[i] && t->all[i] != process && !t->all[i]->gone &&
			t->all[i]->tgid == process->host)
			tasks_end(t, t->all[i]);
}

void tasks_end(struct tasks *t, struct task *task)
{
	bool thread = task->tgid != task->host;

	if (!thread && !task->gone)
		end_threads(t, task);

	tasks_bore(t, task);
	t->n_gone += !task->gone;
	t->living -= !task->gone;
	t->lost += task->call.row != NULL;
	task->gone = true;
	task->call.row = NULL;
	if (thread)
		forget(t, task);
}

void tasks_reaped(struct tasks *t, pid_t number)
{
	struct task *task = number > 0 && number < NUMBERS_MAX ? t->all[number] : NULL;

	if (task && task->gone && !task->reaped && task->told && !task->leads)
		forget_soon(t, task);
}

void tasks_exec(struct tasks *t, struct task *leader, pid_t former)
{
	struct task *thread = former != leader->host ? tasks_find(t, former) : NULL;

	if (thread)
		forget(t, thread);
	/* The leader was perhaps in another call. */
	t->lost += thread != NULL;
	t->n_gone -= leader->gone;
	t->living += leader->gone;
	leader->gone = false;
	leader->closed = false;
	leader->threaded = leader->parted = false;
	leader->vforked_by = 0;
	leader->loose = false;
	leader->ends = false;
	leader->renewed = true;
	leader->headless = false;
	leader->call.row = NULL;
}

pid_t tasks_host_task(const struct tasks *t, pid_t number)
{
	const struct task *task = number > 0 && number < NUMBERS_MAX ? t->all[number] : NULL;

	if (!task || (task->gone && !is_zombie(t, task->host)))
		return 0;
	return task->host;
}

pid_t tasks_host_waited(const struct tasks *t, pid_t number)
{
	return numbers_host(t->numbers, number);
}

pid_t tasks_host_group(const struct tasks *t, pid_t number)
{
	pid_t host = numbers_host(t->numbers, number);

	return host && names_group(t, host, true) ? host : 0;
}
