// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The call that takes a directory of /proc for a process: pidfd_send_signal(2), as killall(1) uses it.  What
 * the session has open is a directory of the mirror, which is nobody to the kernel.  All other pidfds
 * the kernel knows: they go on.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/procfs_node.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/signals.h"
#include "supervisor/rewrite/view.h"

/* The process that descriptor @fd of the asker is the directory of; 0 if it is none. */
static pid_t process_of(const struct question *q, int fd)
{
	char link[48], host[PATH_MAX], name[PATH_MAX], *end;
	const struct procfs *p = q->rw->view ? q->rw->view->procfs : NULL;
	ssize_t n;
	long number;

	snprintf(link, sizeof(link), "/proc/%d/fd/%d", q->tid, fd);
	n = p && fd >= 0 ? readlink(link, host, sizeof(host) - 1) : -1;
	if (n < 0)
		return 0;
	host[n] = '\0';
	if (host[0] != '/' || procfs_from_host(p, host, name, sizeof(name)) <= 0)
		return 0;
	number = strtol(name, &end, 10);
	return *end ? 0 : (pid_t)number;
}

static long on_pidfd_signal(struct question *q)
{
	pid_t number = process_of(q, question_arg(q, 0));
	int sig = question_arg(q, 1);
	siginfo_t info;

	if (!number || question_arg(q, 3)) {
		q->go_on = true;
		return 0;
	}
	if (!q->data->args[2])
		return signals_kill(&q->rw->tasks, q->asker, number, sig);
	if (question_read(q, q->data->args[2], &info, sizeof(info)) < 0)
		return -EFAULT;
	if (info.si_signo != sig)
		return -EINVAL;
	return signals_queue(&q->rw->tasks, q->asker, 0, number, sig, &info);
}

const struct answer_row procfs_answers[] = {
	{SYS_pidfd_send_signal, on_pidfd_signal},
};
const size_t procfs_n_answers = ARRAY_SIZE(procfs_answers);
