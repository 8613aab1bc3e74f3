/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * users/caps - the capabilities of a root inside, as it is told.  Private to rewrite/.
 *
 * No task has any.  What is recorded (struct task_caps) is what the kernel would have if a user
 * namespace's root had never taken another id on, as under kernel names; and so it is in an image.
 * What a task is told, and what it may set its ids by, follows from that and from its ids
 * (capabilities(7)).
 */
#ifndef SUPERVISOR_REWRITE_USERS_CAPS_H
#define SUPERVISOR_REWRITE_USERS_CAPS_H

#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>

struct task;
struct task_caps;
struct tasks;
struct users;

#define USERS_CAPS_ALL ((UINT64_C(2) << CAP_LAST_CAP) - 1)
/* All that there are, as pid 1 of a user namespace has them. */
void users_caps_all(struct task_caps *ret);
/* Those of @task, which is @u. */
struct task_caps users_caps_of(const struct task *task, const struct users *u);
/* Has @task, which is @u, effectively @cap? */
bool users_caps_has(const struct task *task, const struct users *u, int cap);
/* @task has other ids. */
void users_caps_follow(
	struct tasks *t, struct task *task, const struct users *before, const struct users *after);
/* It has called exec. */
void users_caps_exec(struct task *task);

#endif
