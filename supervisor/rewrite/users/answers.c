// SPDX-License-Identifier: GPL-2.0-or-later
/* Questions for ids, and changes of them.  The theory of operation is in users.h. */
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/names/owners.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/caps.h"
#include "supervisor/rewrite/users/users.h"

#define KEEP 0xffffffffU

static const struct rewrite_users *users_of(const struct question *q)
{
	return q->rw->tasks.users;
}

static long go_on(struct question *q)
{
	q->go_on = true;
	return 0;
}

/* ---- calls of i386 -------------------------------------------------------------------------- */

/* The older ones have ids of 16 bits, and all of those come before the others. */
static bool is_narrow(const struct question *q)
{
	return q->nr32 >= 0 && q->nr32 <= USERS_LAST_NARROW;
}

static uint32_t id_arg(const struct question *q, int i)
{
	uint32_t id = (uint32_t)q->data->args[i];

	if (!is_narrow(q))
		return id;
	return (uint16_t)id == 0xffff ? KEEP : (uint16_t)id;
}

/* @n of them at @addr. */
static int put_ids(const struct question *q, uint64_t addr, const uint32_t *ids, size_t n)
{
	uint16_t narrow[USERS_MAX_GROUPS];

	if (!is_narrow(q))
		return n ? question_write(q, addr, ids, n * sizeof(*ids)) : 0;
	for (size_t i = 0; i < n; i++)
		narrow[i] = (uint16_t)(ids[i] > 0xffff ? OWNERS_NOBODY : ids[i]);
	return n ? question_write(q, addr, narrow, n * sizeof(*narrow)) : 0;
}

static int take_ids(const struct question *q, uint64_t addr, uint32_t *ids, size_t n)
{
	uint16_t narrow[USERS_MAX_GROUPS];
	int r;

	if (!is_narrow(q))
		return n ? question_read(q, addr, ids, n * sizeof(*ids)) : 0;
	r = n ? question_read(q, addr, narrow, n * sizeof(*narrow)) : 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		ids[i] = narrow[i];
	return r;
}

/* ---- ids ------------------------------------------------------------------------------------ */

/*
 * getuid, geteuid, getgid, getegid; setfsuid and setfsgid, which follow the effective ones and tell
 * the old.
 */
static long get(struct question *q)
{
	int nr = q->data->nr;
	struct users u;

	rewrite_users_load(users_of(q), q->tid, &u);
	return nr == SYS_getuid || nr == SYS_getgid ? users_triple(&u, nr)->real
						    : users_triple(&u, nr)->effective;
}

/* getresuid, getresgid */
static long get_three(struct question *q)
{
	struct users_ids *t;
	struct users u;

	rewrite_users_load(users_of(q), q->tid, &u);
	t = users_triple(&u, q->data->nr);
	if (put_ids(q, q->data->args[0], &t->real, 1) < 0 ||
		put_ids(q, q->data->args[1], &t->effective, 1) < 0 ||
		put_ids(q, q->data->args[2], &t->saved, 1) < 0)
		return -EFAULT;
	return 0;
}

static int n_args(int nr)
{
	switch (nr) {
	case SYS_setuid:
	case SYS_setgid:
		return 1;
	case SYS_setreuid:
	case SYS_setregid:
		return 2;
	default:
		return 3;
	}
}

/* With one id that is mapped there is no other to become. */
static long set_only(const struct question *q, const struct users *u)
{
	int nr = q->data->nr, n = n_args(nr);

	for (int i = 0; i < n; i++) {
		uint32_t id = id_arg(q, i);

		if (id != users_triple((struct users *)u, nr)->real && (id != KEEP || n == 1))
			return -EINVAL;
	}
	return 0;
}

static struct task *process_of(const struct question *q)
{
	struct task *process = tasks_find(&q->rw->tasks, q->asker->tgid);

	return process ? process : q->asker;
}

static long become(const struct question *q, const struct users *before, const struct users *after)
{
	int r = users_same(before, after) ? 0 : users_store(q->tid, after);

	if (r < 0)
		return r;
	process_of(q)->uid = after->uid.real;
	users_caps_follow(&q->rw->tasks, q->asker, before, after);
	return 0;
}

static bool is_of_groups(int nr)
{
	struct users u;

	return users_triple(&u, nr) == &u.gid;
}

static long set(struct question *q)
{
	struct users before, after;
	uint64_t args[3];
	int r;

	rewrite_users_load(users_of(q), q->tid, &before);
	if (!users_of(q)->root)
		return set_only(q, &before);
	after = before;
	for (int i = 0; i < 3; i++)
		args[i] = id_arg(q, i);
	r = users_change(&after, q->data->nr, args,
		users_caps_has(
			q->asker, &before, is_of_groups(q->data->nr) ? CAP_SETGID : CAP_SETUID));
	return r < 0 ? r : become(q, &before, &after);
}

/* ---- groups --------------------------------------------------------------------------------- */

static long set_groups(struct question *q)
{
	const struct rewrite_users *us = users_of(q);
	size_t n = (uint32_t)q->data->args[0];
	struct users before, after;
	gid_t ids[USERS_MAX_GROUPS];
	int set;

	rewrite_users_load(us, q->tid, &before);
	if (!us->root || !users_caps_has(q->asker, &before, CAP_SETGID))
		return -EPERM;
	if (n > USERS_MAX_GROUPS)
		return -EINVAL;
	if (take_ids(q, q->data->args[1], ids, n) < 0)
		return -EFAULT;
	set = users_groups_find(us->groups, ids, n);
	if (set < 0)
		return set;
	after = before;
	after.groups = (uint16_t)set;
	return become(q, &before, &after);
}

/* As a user namespace shows those of the host: one's own group, and what nobody has mapped. */
static size_t inherited(const struct rewrite_users *us, gid_t ids[USERS_MAX_GROUPS])
{
	int n = getgroups(USERS_MAX_GROUPS, ids);

	for (int i = 0; i < n; i++)
		ids[i] = ids[i] == us->host_gid ? us->gid : OWNERS_NOBODY;
	return (size_t)MAX(n, 0);
}

size_t rewrite_users_groups(
	const struct rewrite_users *us, const struct users *u, gid_t ret[USERS_MAX_GROUPS])
{
	const gid_t *ids;
	size_t n;

	if (u->groups == USERS_NO_GROUPS)
		return inherited(us, ret);
	ids = users_groups_of(us->groups, u->groups, &n);
	memcpy(ret, ids, n * sizeof(*ids));
	return n;
}

static long get_groups(struct question *q)
{
	gid_t ids[USERS_MAX_GROUPS];
	int room = question_arg(q, 0);
	struct users u;
	size_t n;

	rewrite_users_load(users_of(q), q->tid, &u);
	n = rewrite_users_groups(users_of(q), &u, ids);
	if (room < 0 || (room && (size_t)room < n))
		return -EINVAL;
	if (room && put_ids(q, q->data->args[1], ids, n) < 0)
		return -EFAULT;
	return (long)n;
}

/* ---- limits --------------------------------------------------------------------------------- */

enum { I386_OLD_GETRLIMIT = 76 };

/* struct rlimit, which is of longs unless prlimit64 is asked. */
static bool is_short(const struct question *q)
{
	return q->nr32 >= 0 && q->data->nr != SYS_prlimit64;
}

static int take_limit(const struct question *q, uint64_t addr, struct rlimit *ret)
{
	uint32_t words[2] = {0};
	int r;

	if (!is_short(q))
		return question_read(q, addr, ret, sizeof(*ret));
	r = question_read(q, addr, words, sizeof(words));
	ret->rlim_cur = words[0] == UINT32_MAX ? RLIM_INFINITY : words[0];
	ret->rlim_max = words[1] == UINT32_MAX ? RLIM_INFINITY : words[1];
	return r;
}

static int put_limit(const struct question *q, uint64_t addr, const struct rlimit *l)
{
	enum { FIRST_GETRLIMIT = 76 }; /* knew no more than a signed long */
	uint32_t most = q->nr32 == FIRST_GETRLIMIT ? INT32_MAX : UINT32_MAX;
	uint32_t words[2] = {
		(uint32_t)MIN(l->rlim_cur, most), (uint32_t)MIN(l->rlim_max, most)};

	return is_short(q) ? question_write(q, addr, words, sizeof(words))
			   : question_write(q, addr, l, sizeof(*l));
}

/* Of somebody who has no words in them: as the kernel does it, on the host's terms. */
static long limit_really(
	const struct question *q, pid_t host, unsigned which, uint64_t to, uint64_t from)
{
	struct rlimit new, old;

	if (to && take_limit(q, to, &new) < 0)
		return -EFAULT;
	if (prlimit(host, which, to ? &new : NULL, &old) < 0)
		return -errno;
	return from ? put_limit(q, from, &old) : 0;
}

/* The two that hold virtual users look unlimited, and setting them does nothing. */
static long limit(struct question *q)
{
	static const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	bool pid = q->data->nr == SYS_prlimit64;
	uint64_t to = 0, from = 0;
	pid_t host = q->tid;

	if (pid && question_arg(q, 0))
		host = tasks_host_task(&q->rw->tasks, question_arg(q, 0));
	if (host <= 0)
		return -ESRCH;
	if (q->data->nr != SYS_getrlimit)
		to = q->data->args[pid ? 2 : 1];
	if (q->data->nr != SYS_setrlimit)
		from = q->data->args[pid ? 3 : 1];
	if (!users_of(q)->root)
		return limit_really(q, host, (unsigned)question_arg(q, pid), to, from);
	return from ? put_limit(q, from, &unlimited) : 0;
}

/* ---- prctl(2) ------------------------------------------------------------------------------- */

long rewrite_users_prctl(struct question *q)
{
	struct users before, after;

	if (!users_of(q) || !users_of(q)->root)
		return go_on(q);
	if (question_arg(q, 0) != PR_SET_KEEPCAPS)
		return users_caps_prctl(q);
	if (q->data->args[1] > 1)
		return -EINVAL;
	rewrite_users_load(users_of(q), q->tid, &before);
	after = before;
	after.keeps_caps = q->data->args[1] != 0;
	become(q, &before, &after);
	return go_on(q); /* the kernel does it, too, so that it tells */
}

const struct answer_row user_answers[] = {
	{SYS_getuid, get},
	{SYS_geteuid, get},
	{SYS_getgid, get},
	{SYS_getegid, get},
	{SYS_setfsuid, get},
	{SYS_setfsgid, get},
	{SYS_getresuid, get_three},
	{SYS_getresgid, get_three},
	{SYS_setuid, set},
	{SYS_setgid, set},
	{SYS_setreuid, set},
	{SYS_setregid, set},
	{SYS_setresuid, set},
	{SYS_setresgid, set},
	{SYS_getgroups, get_groups},
	{SYS_setgroups, set_groups},
	{SYS_getrlimit, limit},
	{SYS_setrlimit, limit},
	{SYS_prlimit64, limit},
};
const size_t user_n_answers = ARRAY_SIZE(user_answers);
