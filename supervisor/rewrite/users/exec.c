// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A new program.  The kernel tells it in the auxiliary vector who it is, which the C library
 * believes without asking; that is at the top of the new stack, and replaced before the program has
 * run.
 */
#include <elf.h>
#include <sys/ptrace.h>

#include "base/base.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/caps.h"
#include "supervisor/rewrite/users/users.h"
#include "supervisor/rewrite/view/calls.h"

static const uint32_t *id_of(const struct users *u, uint64_t type)
{
	switch (type) {
	case AT_UID:
		return &u->uid.real;
	case AT_EUID:
		return &u->uid.effective;
	case AT_GID:
		return &u->gid.real;
	case AT_EGID:
		return &u->gid.effective;
	default:
		return NULL;
	}
}

static void put_ids(const struct task *task, const struct users *u)
{
	struct view_auxiliary vector[VIEW_VECTOR];
	size_t width = 8, n;
	uint64_t at = view_vector(task, &width);

	n = at ? view_read_vector(task, at, width, vector) : 0;
	for (size_t i = 0; i < n; i++, at += 2 * width) {
		const uint32_t *id = id_of(u, vector[i].sort);
		uint64_t value = id ? *id : 0;

		if (id && value != vector[i].value)
			view_poke(task, at + width, &value, width);
	}
}

void rewrite_users_execed(struct rewrite *rw, struct task *task)
{
	const struct rewrite_users *us = rw->tasks.users;
	struct users before, u;

	if (!us || rw->trusting)
		return;
	rewrite_users_load(us, task->host, &before);
	u = before;
	u.uid.saved = u.uid.effective;
	u.gid.saved = u.gid.effective;
	u.keeps_caps = false;
	if (us->root && !users_same(&before, &u))
		users_store(task->host, &u);
	users_caps_exec(task);
	put_ids(task, &u);
}
