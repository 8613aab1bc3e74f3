// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in users/caps.h. */
#include "supervisor/rewrite/users/caps.h"

#include <linux/capability.h>

#include "base/base.h"
#include "supervisor/names/users.h"
#include "supervisor/rewrite/tasks.h"

void users_caps_all(struct task_caps *ret)
{
	*ret = (struct task_caps){.effective = USERS_CAPS_ALL,
		.permitted = USERS_CAPS_ALL,
		.bounding = USERS_CAPS_ALL};
}

static bool is_root(const struct users *u)
{
	return u->uid.real == 0 || u->uid.effective == 0 || u->uid.saved == 0;
}

struct task_caps users_caps_of(const struct task *task, const struct users *u)
{
	struct task_caps c = task->caps;

	if (!is_root(u) && !u->keeps_caps)
		c.permitted = 0;
	if (u->uid.effective != 0 && !c.set)
		c.effective = 0;
	c.permitted |= c.ambient;
	c.effective = (c.effective | c.ambient) & c.permitted;
	return c;
}

bool users_caps_has(const struct task *task, const struct users *u, int cap)
{
	return users_caps_of(task, u).effective >> cap & 1;
}

static void follow(struct task_caps *c, const struct users *before, const struct users *after)
{
	if (is_root(before) && !is_root(after))
		c->ambient = 0;
	if (before->uid.effective != 0 && after->uid.effective == 0)
		c->effective = c->permitted;
	c->set = false;
}

/* The C library has every thread set them; but those of our words are one for all. */
void users_caps_follow(
	struct tasks *t, struct task *task, const struct users *before, const struct users *after)
{
	if (before->uid.real == after->uid.real && before->uid.effective == after->uid.effective &&
		before->uid.saved == after->uid.saved)
		return;
	for (int i = 1; i < NUMBERS_MAX; i++)
		if (t->all[i] && t->all[i]->tgid == task->tgid)
			follow(&t->all[i]->caps, before, after);
}

void users_caps_exec(struct task *task)
{
	struct task_caps *c = &task->caps;

	c->permitted = c->bounding | c->inheritable;
	c->effective = c->permitted;
	c->set = false;
}
