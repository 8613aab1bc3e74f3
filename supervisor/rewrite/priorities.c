// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * priorities - of processes, of groups, and of all that a user has: that is all that the session
 * has.
 *
 * The kernel would take PRIO_USER for everything the user runs on the host.  So it is done here,
 * one task after the other: whether a task may have a priority depends on itself, not on who
 * asks.
 */
#include <linux/ioprio.h>
#include <sys/resource.h>

#include "base/base.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/users.h"

#define PRIO_OFFSET 20 /* getpriority(2): the call itself returns 20 - nice */

/* -1 with errno for what can't be, as the calls themselves; @value is to be set. */
typedef int each(pid_t host, int value);

static int set_priority(pid_t host, int value)
{
	return setpriority(PRIO_PROCESS, (id_t)host, value);
}

static int set_ioprio(pid_t host, int value)
{
	return (int)syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, host, value);
}

/* The kernel's own order: the lowest value of getpriority is the greatest nice. */
static int get_priority(pid_t host, int value)
{
	int nice;

	errno = 0;
	nice = getpriority(PRIO_PROCESS, (id_t)host);
	return nice == -1 && errno ? -1 : PRIO_OFFSET - nice;
}

static int get_ioprio(pid_t host, int value)
{
	return (int)syscall(SYS_ioprio_get, IOPRIO_WHO_PROCESS, host);
}

static uid_t real_uid(const struct tasks *t, const struct task *task)
{
	struct users u;

	if (!t->users)
		return getuid();
	rewrite_users_load(t->users, task->host, &u);
	return u.uid.real;
}

/*
 * Of the session's tasks but pid 1; @uid 0 is one's own.  The best (@most) or the least result,
 * or an error.
 */
static long of_all(const struct tasks *t, const struct task *asker, uid_t uid, int value,
	each *do_one, bool most)
{
	long result = -ESRCH;

	uid = uid ? uid : real_uid(t, asker);
	for (int i = 2; i < NUMBERS_MAX; i++) {
		const struct task *one = t->all[i];
		bool does = one && !one->gone && real_uid(t, one) == uid;
		int r = does ? do_one(one->host, value) : 0;

		if (!does || (r < 0 && errno == ESRCH))
			continue;
		if (r < 0)
			result = -errno;
		else if (result == -ESRCH || (result >= 0 && (most ? r > result : r < result)))
			result = r;
	}
	return result;
}

static int done(struct user_regs_struct *regs, long result)
{
	regs->rax = (unsigned long long)result;
	return CALL_DONE;
}

static int enter_priority(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	bool set = (int)regs->orig_rax == SYS_setpriority;

	switch ((int)regs->rdi) {
	case PRIO_PROCESS:
		return call_replace(&rw->tasks, NUMBER_TASK, &regs->rsi);
	case PRIO_PGRP:
		return call_replace(&rw->tasks, NUMBER_GROUP, &regs->rsi);
	case PRIO_USER:
		return done(regs, of_all(&rw->tasks, task, (uid_t)regs->rsi, (int)regs->rdx,
					  set ? set_priority : get_priority, true));
	default:
		return 1;
	}
}

static int enter_ioprio(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	bool set = (int)regs->orig_rax == SYS_ioprio_set;

	switch ((int)regs->rdi) {
	case IOPRIO_WHO_PROCESS:
		return call_replace(&rw->tasks, NUMBER_TASK, &regs->rsi);
	case IOPRIO_WHO_PGRP:
		return call_replace(&rw->tasks, NUMBER_GROUP, &regs->rsi);
	case IOPRIO_WHO_USER:
		return done(regs, of_all(&rw->tasks, task, (uid_t)regs->rsi, (int)regs->rdx,
					  set ? set_ioprio : get_ioprio, false));
	default:
		return 1;
	}
}

const struct rewrite_call priority_calls[] = {
	{SYS_getpriority, .enter = enter_priority},
	{SYS_setpriority, .enter = enter_priority},
	{SYS_ioprio_get, .enter = enter_ioprio},
	{SYS_ioprio_set, .enter = enter_ioprio},
};
const size_t priority_n_calls = ARRAY_SIZE(priority_calls);
