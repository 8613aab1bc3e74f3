// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in ckpt/restore/grow.c, that of namespaces in ckpt/nested/nested.h. */
#include "ckpt/restore/birth.h"

#include <errno.h>
#include <linux/sched.h>
#include <sched.h>

#include "base/base.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/nested/build.h"
#include "ckpt/nested/help.h"
#include "ckpt/nested/list.h"

#define THREAD_FLAGS \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

int ckpt_birth_note(struct ckpt_build *b, pid_t pid, struct err *e)
{
	if ((b->n_made & (b->n_made + 1)) == 0) {
		pid_t *p = reallocarray(b->made, 2 * (b->n_made + 1), sizeof(*p));

		if (!p)
			return err_errno(e, -ENOMEM, "process tree");
		b->made = p;
	}
	b->made[b->n_made++] = pid;
	return 0;
}

int ckpt_birth_tell(const struct ckpt_build *b, pid_t vpid, pid_t host, pid_t pid, struct err *e)
{
	const struct ckpt_names *names = b->world->names;
	int r = names && vpid ? names->born(names->ctx, vpid, host, pid) : 0;

	return r < 0 ? err_errno(e, r, "number %d", vpid) : 0;
}

/* Only clone3 takes a number, and container engines do not know it. */
static void add_clone(
	const struct ckpt_build *b, struct remote *maker, const struct clone_args *args)
{
	if (b->world->names)
		remote_add(maker, SYS_clone, args->flags | args->exit_signal, 0, 0, 0, 0, 0);
	else
		remote_add(maker, SYS_clone3, remote_put(maker, args, sizeof(*args)), sizeof(*args),
			0, 0, 0, SYS_PODRUN_CLONE3_MARK);
}

static int choose_numbers(struct ckpt_build *b, const struct ckpt_build_proc *p, size_t k,
	uint32_t user, struct remote *maker, struct clone_args *args, struct err *e)
{
	pid_t set[CKPT_MAX_SET];
	int n = ckpt_nested_numbers(b, p, k, user, set, e);

	args->set_tid = n > 0 ? remote_put(maker, set, (size_t)n * sizeof(*set)) : 0;
	args->set_tid_size = n > 0 ? (uint64_t)n : 0;
	return MIN(n, 0);
}

static int choose_number(struct ckpt_build *b, pid_t vpid, uint32_t user, struct remote *maker,
	struct clone_args *args, struct err *e)
{
	const struct ckpt_build_proc *p = ckpt_build_proc(b, vpid);

	if (!vpid || b->world->names)
		return 0;
	if (p)
		return choose_numbers(b, p, 0, user, maker, args, e);
	args->set_tid = remote_put(maker, &vpid, sizeof(vpid));
	args->set_tid_size = 1;
	return 0;
}

int ckpt_birth_child(struct ckpt_build *b, const struct ckpt_born *maker, uint32_t user, pid_t vpid,
	uint64_t flags, int exit_signal, struct ckpt_born *t, struct err *e)
{
	struct clone_args args = {.flags = flags, .exit_signal = (uint64_t)exit_signal};
	int r = choose_number(b, vpid, user, maker->remote, &args, e);

	if (r == 0)
		add_clone(b, maker->remote, &args);
	if (r == 0)
		r = ckpt_run_all(maker->remote, "clone", e);
	if (r < 0)
		return err_wrap(e, "cannot make process %d", vpid);
	t->told = (pid_t)remote_result(maker->remote, 0);
	t->vpid = vpid ? vpid : t->told;
	t->lend_fd = maker->lend_fd;
	t->user = user;
	t->pid = remote_born(maker->remote, 0);
	if (t->pid <= 0)
		return err_set(e, ERR_FAILED, -ESRCH, "process %d was not seen", vpid);
	r = ckpt_birth_note(b, t->pid, e);
	if (r == 0)
		r = ckpt_birth_tell(b, vpid, t->pid, t->pid, e);
	if (r == 0 && ckpt_build_proc(b, vpid))
		r = ckpt_nested_check(b, ckpt_build_proc(b, vpid), 0, t->pid, b->level, e);
	if (r < 0)
		return r;
	return flags & CLONE_VM ? remote_open_thread(&t->remote, t->pid, maker->remote, e)
				: remote_open_child(&t->remote, t->pid, maker->remote, e);
}

int ckpt_birth_add_thread(struct ckpt_build *b, const struct ckpt_build_proc *p, size_t k,
	struct remote *leader, struct err *e)
{
	struct clone_args args = {.flags = THREAD_FLAGS};
	int r = b->world->names ? 0
				: choose_numbers(b, p, k, p->ns.ns[CKPT_NS_USER], leader, &args, e);

	if (r == 0)
		add_clone(b, leader, &args);
	return r;
}

/* ---- namespaces of their own ----------------------------------------------------------------- */

static uint64_t flags_of(unsigned founds)
{
	uint64_t flags = 0;

	for (int i = 0; i < CKPT_N_NS; i++)
		if (founds & 1U << i)
			flags |= ckpt_ns_flag((enum ckpt_ns)i);
	return flags;
}

/*
 * Before @who makes user namespace @user for itself or a child: descriptor *ret_fd of its will lend
 * in there.
 */
static int take_lender(
	struct ckpt_build *b, struct ckpt_born *who, uint32_t user, int *ret_fd, struct err *e)
{
	int pidfd, at, r = ckpt_lender_start(b, user, &pidfd, e);

	if (r < 0)
		return r;
	at = remote_add(
		who->remote, SYS_pidfd_getfd, (uint64_t)who->lend_fd, (uint64_t)pidfd, 0, 0, 0, 0);
	r = ckpt_run_all(who->remote, "a descriptor for a sandbox", e);
	*ret_fd = r < 0 ? -1 : (int)remote_result(who->remote, at);
	return r;
}

static int close_in(struct ckpt_born *t, int fd, struct err *e)
{
	return remote_must(t->remote, NULL, e, SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
}

/* @t, which is @p, has just got into its new user namespace @user, with descriptor @fd. */
static int enter_user(struct ckpt_build *b, const struct ckpt_build_proc *p, struct ckpt_born *t,
	uint32_t user, int fd, struct err *e)
{
	int r = ckpt_nested_ids(b, p, user, e);

	if (r == 0)
		r = ckpt_lender_enter(b, user, t->pid, e);
	if (r == 0)
		r = close_in(t, t->lend_fd, e);
	t->lend_fd = fd;
	t->user = user;
	return r;
}

/* All that @p founds and is owned by the user namespace in which it is now. */
static int unshare_owned(struct ckpt_build *b, const struct ckpt_build_proc *p,
	struct ckpt_born *who, unsigned founds, struct err *e)
{
	unsigned now = ckpt_nested_owned(b, p, founds, who->user);
	int r = now ? remote_must(who->remote, NULL, e, SYS_unshare, flags_of(now), 0, 0, 0, 0, 0)
		    : 0;

	return r < 0 || !now ? r : ckpt_nested_furnish(b, p, who->remote, now, e);
}

/* One user namespace after the other, and in each what it owns. */
int ckpt_birth_unshare(
	struct ckpt_build *b, const struct ckpt_tree_op *o, struct ckpt_born *who, struct err *e)
{
	const struct ckpt_build_proc *p = ckpt_build_proc(b, o->who);
	uint32_t next;
	int fd, r = unshare_owned(b, p, who, o->founds, e);

	while (r == 0 && (next = ckpt_nested_next_user(b, p, who->user))) {
		r = take_lender(b, who, next, &fd, e);
		if (r == 0)
			r = remote_must(
				who->remote, NULL, e, SYS_unshare, CLONE_NEWUSER, 0, 0, 0, 0, 0);
		if (r == 0)
			r = enter_user(b, p, who, next, fd, e);
		if (r == 0)
			r = unshare_owned(b, p, who, o->founds, e);
	}
	return r;
}

/* A birth into a pid namespace of its own, maybe with the user namespace that owns it. */
static int bear_founder(struct ckpt_build *b, const struct ckpt_tree_op *o, struct ckpt_born *maker,
	uint64_t flags, int exit_signal, struct ckpt_born *t, struct err *e)
{
	const struct ckpt_build_proc *p = ckpt_build_proc(b, o->target);
	uint32_t user = o->founds & 1U << CKPT_NS_USER ? ckpt_nested_next_user(b, p, o->user) : 0;
	int fd = -1, r = user ? take_lender(b, maker, user, &fd, e) : 0;

	if (r == 0)
		r = ckpt_birth_child(b, maker, o->user, o->target, flags | flags_of(o->founds),
			exit_signal, t, e);
	if (r == 0 && user)
		r = close_in(maker, fd, e);
	return r < 0 || !user ? r : enter_user(b, p, t, user, fd, e);
}

int ckpt_birth(struct ckpt_build *b, const struct ckpt_tree_op *o, struct ckpt_born *maker,
	uint64_t flags, int exit_signal, struct ckpt_born *t, struct err *e)
{
	if (o->founds)
		return bear_founder(b, o, maker, flags, exit_signal, t, e);
	return ckpt_birth_child(b, maker, o->user, o->target, flags, exit_signal, t, e);
}
