// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pidfds - what is done to a process by a descriptor of it.
 *
 * Such a descriptor is a number that can't be exchanged, so one of a process outside is as good
 * as power over it: and there are several ways to get one, SO_PEERPIDFD, SCM_PIDFD, or any
 * directory /proc/PID, which pidfd_send_signal(2) takes as well.  So the rewriter looks whose it
 * is, and does itself what was asked for, to a process of the session only: what the descriptor's
 * number stands for a moment later does not matter.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/procfs/node.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/signals.h"
#include "supervisor/rewrite/view/view.h"

#define SIGNAL_THREAD  1 /* PIDFD_SIGNAL_* of linux/pidfd.h */
#define SIGNAL_PROCESS 2
#define SIGNAL_GROUP   4

struct target {
	const struct task *task;
	bool thread; /* the descriptor is that of a thread: PIDFD_THREAD */
};

/*
 * By /proc/PID/fdinfo/N: the host's number, 0 for one that has ended, -EBADF for another sort of
 * descriptor.
 */
static pid_t read_info(pid_t tid, int fd, bool *ret_thread)
{
	_cleanup_close_ int file = -1;
	char path[64], text[1024], *p;
	unsigned flags = 0;
	ssize_t n;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, fd);
	file = open(path, O_RDONLY | O_CLOEXEC);
	n = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
	if (n <= 0)
		return -EBADF;
	text[n] = '\0';
	p = strstr(text, "\nflags:");
	if (p)
		sscanf(p, "\nflags: %o", &flags);
	*ret_thread = flags & O_EXCL;
	p = strstr(text, "\nPid:");
	if (!p || sscanf(p, "\nPid: %d", &pid) != 1)
		return -EBADF;
	return MAX(pid, 0);
}

/*
 * A directory of the session's own /proc, which is nobody to the kernel: its process, 0 for
 * another sort.
 */
static pid_t read_own(const struct rewrite *rw, const char *target)
{
	const struct procfs *p = rw->view ? rw->view->procfs : NULL;
	char name[PATH_MAX], *end;
	long number;

	if (!p || target[0] != '/' || procfs_from_host(p, target, name, sizeof(name)) <= 0)
		return 0;
	number = strtol(name, &end, 10);
	return *end ? 0 : tasks_host_task(&rw->tasks, (pid_t)number);
}

/* A directory of /proc, as killall(1) uses it. */
static pid_t read_link(const struct question *q, int fd)
{
	char path[64], target[PATH_MAX], rest;
	ssize_t n;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", q->tid, fd);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return -EBADF;
	target[n] = '\0';
	if (sscanf(target, "/proc/%d%c", &pid, &rest) == 1)
		return pid;
	pid = read_own(q->rw, target);
	return pid ? pid : -EBADF;
}

/* 0, -EBADF, -ESRCH for one that has ended, @outside for one that is none of the session's. */
static int find_target(const struct question *q, int fd, int outside, struct target *ret)
{
	pid_t host = read_info(q->tid, fd, &ret->thread);

	if (host == -EBADF)
		host = read_link(q, fd);
	if (host < 0)
		return host;
	if (host == 0)
		return -ESRCH;
	/* It was the asker's table that was looked at. */
	ret->task = question_waits(q) ? tasks_find(&q->rw->tasks, host) : NULL;
	if (!ret->task)
		return outside;
	return tasks_host_task(&q->rw->tasks, ret->task->number) == host ? 0 : -ESRCH;
}

static long send_info(struct question *q, const struct target *t, int sig)
{
	siginfo_t info;

	if (question_siginfo(q, q->data->args[2], &info) < 0)
		return -EFAULT;
	if (info.si_signo != sig)
		return -EINVAL;
	return signals_queue(&q->rw->tasks, q->asker,
		t->thread ? numbers_virtual(q->rw->tasks.numbers, t->task->tgid) : 0,
		t->task->number, sig, &info);
}

static long send_signal(struct question *q)
{
	int sig = question_arg(q, 1), flags = question_arg(q, 3), r;
	struct target t;

	if (flags & ~(SIGNAL_THREAD | SIGNAL_PROCESS | SIGNAL_GROUP) || flags & (flags - 1))
		return -EINVAL;
	r = find_target(q, question_arg(q, 0), -EINVAL, &t);
	if (r < 0)
		return r;
	if (flags)
		t.thread = flags == SIGNAL_THREAD;
	if (q->data->args[2] && flags != SIGNAL_GROUP)
		return send_info(q, &t, sig);
	if (flags == SIGNAL_GROUP && t.task->number == 1)
		return 0; /* pid 1 takes no signal, and -1 is everybody */
	if (t.thread)
		return signals_tgkill(&q->rw->tasks, q->asker, 0, t.task->number, sig);
	return signals_kill(&q->rw->tasks, q->asker,
		flags == SIGNAL_GROUP ? -t.task->number : t.task->number, sig);
}

/* Gives the asker descriptor @fd, as whatever number is free. */
static long give(struct question *q, int fd)
{
	struct seccomp_notif_addfd add = {.id = q->id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (uint32_t)fd,
		.newfd_flags = O_CLOEXEC};

	if (ioctl(q->rw->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add) < 0)
		return -errno;
	q->sent = true;
	return 0;
}

static long get_fd(struct question *q)
{
	_cleanup_close_ int pidfd = -1, fd = -1;
	struct target t;
	int r;

	if (question_arg(q, 2))
		return -EINVAL;
	r = find_target(q, question_arg(q, 0), -EPERM, &t);
	if (r < 0)
		return r;
	if (t.task->number == 1)
		return -EPERM;
	pidfd = sys_pidfd_open(t.task->host, 0);
	fd = pidfd < 0 ? -1 : sys_pidfd_getfd(pidfd, question_arg(q, 1));
	return fd < 0 ? -errno : give(q, fd);
}

const struct answer_row pidfd_answers[] = {
	{SYS_pidfd_send_signal, send_signal},
	{SYS_pidfd_getfd, get_fd},
};
const size_t pidfd_n_answers = ARRAY_SIZE(pidfd_answers);
