// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls about capabilities, where there is a root inside.  The theory of operation is in
 * users/caps.h.
 */
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/user.h>

#include "base/base.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/caps.h"
#include "supervisor/rewrite/users/users.h"

#define ALL	 USERS_CAPS_ALL
#define BIT(cap) (UINT64_C(1) << (cap))

/* ---- capget(2), capset(2) ------------------------------------------------------------------- */

/* How many structures the caller has; 0: a version that nobody knows. */
static int n_structures(uint32_t version)
{
	switch (version) {
	case _LINUX_CAPABILITY_VERSION_1:
		return 1;
	case _LINUX_CAPABILITY_VERSION_2:
	case _LINUX_CAPABILITY_VERSION_3:
		return 2;
	default:
		return 0;
	}
}

static int get(const struct rewrite *rw, const struct task *task, const struct task *whose,
	uint64_t addr, int n)
{
	struct __user_cap_data_struct data[2];
	struct task_caps c;
	struct users u;

	rewrite_users_load(rw->tasks.users, whose->host, &u);
	c = users_caps_of(whose, &u);
	for (int i = 0; i < 2; i++)
		data[i] = (struct __user_cap_data_struct){(uint32_t)(c.effective >> 32 * i),
			(uint32_t)(c.permitted >> 32 * i), (uint32_t)(c.inheritable >> 32 * i)};
	return addr ? task_poke(task, addr, data, (size_t)n * sizeof(*data)) : 0;
}

/* cap_capset() of the kernel's security/commoncap.c */
static int set(const struct rewrite *rw, struct task *task, uint64_t addr, int n)
{
	struct __user_cap_data_struct data[2] = {0};
	struct task_caps now, new;
	struct users u;

	if (task_peek(task, addr, data, (size_t)n * sizeof(*data)) < 0)
		return -EFAULT;
	rewrite_users_load(rw->tasks.users, task->host, &u);
	now = users_caps_of(task, &u);
	new = task->caps;
	new.effective = (data[0].effective | (uint64_t)data[1].effective << 32) & ALL;
	new.permitted = (data[0].permitted | (uint64_t)data[1].permitted << 32) & ALL;
	new.inheritable = (data[0].inheritable | (uint64_t)data[1].inheritable << 32) & ALL;
	if (!(now.effective & BIT(CAP_SETPCAP)) &&
		new.inheritable & ~(now.inheritable | now.permitted))
		return -EPERM;
	if (new.inheritable & ~(now.inheritable | now.bounding) || new.permitted & ~now.permitted ||
		new.effective & ~new.permitted)
		return -EPERM;
	new.ambient &= new.permitted &new.inheritable;
	new.set = true;
	task->caps = new;
	return 0;
}

int users_caps_enter(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	struct __user_cap_header_struct h;
	const struct task *whose = task;
	int n, r;

	if (task_peek(task, regs->rdi, &h, sizeof(h)) < 0)
		return -EFAULT;
	n = n_structures(h.version);
	if (!n) {
		h.version = _LINUX_CAPABILITY_VERSION_3;
		task_poke(task, regs->rdi, &h, sizeof(h));
		if ((int)regs->orig_rax == SYS_capset || regs->rsi)
			return -EINVAL;
		regs->rax = 0;
		return CALL_DONE;
	}
	if (h.pid < 0)
		return -EINVAL;
	if (h.pid)
		whose = tasks_find(&rw->tasks, tasks_host_task(&rw->tasks, h.pid));
	if ((int)regs->orig_rax == SYS_capset)
		r = whose == task ? set(rw, task, regs->rsi, n) : -EPERM;
	else
		r = whose ? get(rw, task, whose, regs->rsi, n) : -ESRCH;
	regs->rax = 0;
	return r < 0 ? r : CALL_DONE;
}

/* ---- prctl(2) ------------------------------------------------------------------------------- */

static long ambient(struct question *q, const struct task_caps *now)
{
	struct task_caps *c = &q->asker->caps;
	uint64_t cap = q->data->args[2];

	if (question_arg(q, 1) == PR_CAP_AMBIENT_CLEAR_ALL && !cap) {
		c->ambient = 0;
		return 0;
	}
	if (cap > CAP_LAST_CAP || q->data->args[3] || q->data->args[4])
		return -EINVAL;
	switch (question_arg(q, 1)) {
	case PR_CAP_AMBIENT_IS_SET:
		return (long)(c->ambient >> cap & 1);
	case PR_CAP_AMBIENT_LOWER:
		c->ambient &= ~BIT(cap);
		return 0;
	case PR_CAP_AMBIENT_RAISE:
		if (!(now->permitted & now->inheritable & BIT(cap)))
			return -EPERM;
		c->ambient |= BIT(cap);
		return 0;
	default:
		return -EINVAL;
	}
}

long users_caps_prctl(struct question *q)
{
	uint64_t cap = q->data->args[1];
	struct task_caps now;
	struct users u;

	rewrite_users_load(q->rw->tasks.users, q->tid, &u);
	now = users_caps_of(q->asker, &u);
	switch (question_arg(q, 0)) {
	case PR_CAPBSET_READ:
		return cap <= CAP_LAST_CAP ? (long)(now.bounding >> cap & 1) : -EINVAL;
	case PR_CAPBSET_DROP:
		if (!(now.effective & BIT(CAP_SETPCAP)))
			return -EPERM;
		if (cap > CAP_LAST_CAP)
			return -EINVAL;
		q->asker->caps.bounding &= ~BIT(cap);
		return 0;
	case PR_CAP_AMBIENT:
		return ambient(q, &now);
	default:
		q->go_on = true;
		return 0;
	}
}
