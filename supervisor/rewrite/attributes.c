// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * attributes - what prctl(2) takes a process for.
 *
 * A program that is not dumpable would be closed to the rewriter, who has no privilege: it could
 * neither read what a call says in memory nor freeze it.  So that is only noted, and told to who
 * asks; it is kept over a fork and ends with an exec, as in the kernel.  To debuggers a session
 * is closed anyway, for everybody in it is traced: PR_SET_PTRACER is believed and has no effect. 
 * Core scheduling would tie processes of the session to others of the user's, by their numbers:
 * the kernel looks as if it had none.
 */
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "base/base.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/users.h"

static long dumpable(struct question *q, bool set)
{
	struct task *process = tasks_find(&q->rw->tasks, q->asker->tgid);

	if (!process)
		process = q->asker;
	if (!set)
		return !process->closed;
	if (question_arg(q, 1) != 0 && question_arg(q, 1) != 1)
		return -EINVAL;
	process->closed = !question_arg(q, 1);
	q->rw->tasks.closes |= process->closed;
	return 0;
}

static long set_ptracer(const struct question *q)
{
	pid_t number = question_arg(q, 1);

	return number == 0 || number == -1 || tasks_host_task(&q->rw->tasks, number) ? 0 : -EINVAL;
}

static long on_prctl(struct question *q)
{
	switch (question_arg(q, 0)) {
	case PR_SET_DUMPABLE:
		return dumpable(q, true);
	case PR_GET_DUMPABLE:
		return dumpable(q, false);
	case PR_SET_PTRACER:
		return set_ptracer(q);
	case PR_SCHED_CORE:
		return -EINVAL;
	default:
		return rewrite_users_prctl(q);
	}
}

bool attributes_asked(const struct seccomp_data *data)
{
	int what = (int)data->args[0];

	return data->nr == SYS_prctl && (what == PR_SET_DUMPABLE || what == PR_GET_DUMPABLE);
}

const struct answer_row attribute_answers[] = {
	{SYS_prctl, on_prctl},
};
const size_t attribute_n_answers = ARRAY_SIZE(attribute_answers);
