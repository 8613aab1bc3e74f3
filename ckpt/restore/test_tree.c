// SPDX-License-Identifier: GPL-2.0-or-later
/* Carries plans out on a table of numbers that behaves like the kernel, and compares. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "ckpt/restore/tree.h"

#define MAX_TASKS 64

struct task {
	pid_t vpid, ppid, pgid, sid;
	bool alive;
	struct ckpt_ns_set ns; /* the nodes say which number a new namespace has */
};

struct kernel {
	struct task t[MAX_TASKS];
	size_t n;
	const struct ckpt_tree_node *nodes;
	size_t n_nodes;
};

static struct task *task(struct kernel *k, pid_t vpid)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->t[i].vpid == vpid)
			return &k->t[i];
	return NULL;
}

static void born(struct kernel *k, pid_t vpid, pid_t ppid, const struct task *maker)
{
	assert_null(task(k, vpid));
	assert_true(k->n < MAX_TASKS);
	k->t[k->n++] = (struct task){vpid, ppid, maker ? maker->pgid : 0, maker ? maker->sid : 0,
		true, maker ? maker->ns : (struct ckpt_ns_set){{0}}};
}

/*
 * As the kernel lets one: around it is what was said, and no sibling gets a pid or user namespace.
 */
static void make_namespaces(struct kernel *k, struct task *t, unsigned founds)
{
	const struct ckpt_tree_node *node = NULL;

	for (size_t i = 0; i < k->n_nodes; i++)
		if (k->nodes[i].vpid == t->vpid)
			node = &k->nodes[i];
	assert_non_null(node);
	for (int i = 0; i < CKPT_N_NS; i++) {
		if (!(founds & 1U << i))
			continue;
		assert_true(node->founds & 1U << i);
		if (i == CKPT_NS_PID || (i == CKPT_NS_USER && t->ns.ns[i] != node->first_user))
			assert_int_equal(t->ns.ns[i], node->outer.ns[i]);
		t->ns.ns[i] = node->ns.ns[i];
	}
	/* there may be another one to be gone into later */
	if (founds == (1U << CKPT_NS_USER | 1U << CKPT_NS_PID))
		t->ns.ns[CKPT_NS_USER] = node->first_user;
}

static pid_t inside(const struct kernel *k, const struct task *t)
{
	return (pid_t)t->ns.ns[CKPT_NS_PID];
}

static void make_namespaces_of(struct kernel *k, const struct ckpt_tree_op *o)
{
	assert_int_equal(task(k, o->who)->ns.ns[CKPT_NS_USER], o->user);
	if (o->founds)
		make_namespaces(k, task(k, o->target), o->founds);
}

static void step(struct kernel *k, const struct ckpt_tree_op *o)
{
	struct task *w = o->type == CKPT_TREE_SEED ? NULL : task(k, o->who);
	struct task *g;

	switch (o->type) {
	case CKPT_TREE_SEED:
		born(k, o->target, 1, NULL);
		break;
	case CKPT_TREE_CHILD:
		assert_non_null(w);
		born(k, o->target, w->vpid, w);
		break;
	case CKPT_TREE_SIBLING:
		assert_non_null(w);
		assert_int_equal(o->founds, 0);
		born(k, o->target, w->ppid, w);
		break;
	case CKPT_TREE_ORPHAN:
		assert_non_null(w);
		born(k, o->target, o->adopter, w);
		while (o->adopter != 1 && w->vpid != o->adopter)
			assert_non_null(w = task(k, w->ppid));
		break;
	case CKPT_TREE_SETSID:
		assert_non_null(w);
		assert_int_not_equal(w->pgid, w->vpid);
		w->sid = w->pgid = w->vpid;
		break;
	case CKPT_TREE_SETPGID:
		assert_non_null(w);
		g = task(k, o->target);
		assert_non_null(g);
		assert_int_not_equal(w->sid, w->vpid);
		assert_int_equal(w->sid, g->sid);
		assert_int_equal(inside(k, w), inside(k, g));
		w->pgid = o->target;
		break;
	case CKPT_TREE_UNSHARE:
		assert_non_null(w);
		assert_false(o->founds & 1U << CKPT_NS_PID);
		make_namespaces(k, w, o->founds);
		break;
	case CKPT_TREE_END:
		assert_non_null(w);
		assert_int_equal(w->ppid, o->target);
		w->alive = false;
		break;
	}
	if (o->type == CKPT_TREE_CHILD || o->type == CKPT_TREE_ORPHAN)
		make_namespaces_of(k, o);
}

static void check(const struct ckpt_tree_node *nodes, size_t n)
{
	struct kernel k = {.nodes = nodes, .n_nodes = n};
	struct ckpt_tree_op *ops = NULL;
	size_t n_ops = 0, alive = 0;
	struct err e = {0};
	int r = ckpt_tree_plan(nodes, n, &ops, &n_ops, &e);

	if (r < 0)
		fail_msg("%s", e.msg);
	for (size_t i = 0; i < n_ops; i++)
		step(&k, &ops[i]);
	free(ops);
	for (size_t i = 0; i < k.n; i++)
		alive += k.t[i].alive;
	assert_int_equal(alive, n);
	for (size_t i = 0; i < n; i++) {
		const struct task *t = task(&k, nodes[i].vpid);

		assert_non_null(t);
		assert_int_equal(t->ppid, nodes[i].ppid);
		assert_int_equal(t->pgid, nodes[i].pgid);
		assert_int_equal(t->sid, nodes[i].sid);
		assert_memory_equal(&t->ns, &nodes[i].ns, sizeof(t->ns));
	}
}

#define NODE(v, p, g, s)                                                                   \
	{                                                                                  \
		.vpid = (v), .ppid = (p), .pgid = (g), .sid = (s), .exit_signal = SIGCHLD, \
		.mm = (v), .sighand = (v), .files = (v), .fs = (v)                         \
	}

static void test_plain(void **state)
{
	const struct ckpt_tree_node n[] = {
		NODE(2, 1, 2, 2), NODE(3, 2, 2, 2), NODE(4, 3, 2, 2), NODE(9, 1, 0, 0)};

	check(n, ARRAY_SIZE(n));
}

static void test_shell_jobs(void **state)
{
	const struct ckpt_tree_node n[] = {
		NODE(2, 1, 2, 2), NODE(10, 2, 10, 2), NODE(11, 2, 10, 2), NODE(20, 2, 20, 2)};

	check(n, ARRAY_SIZE(n));
}

/* A child born before its parent's setsid, deep down; the older session's leader is dead. */
static void test_older_session(void **state)
{
	const struct ckpt_tree_node n[] = {NODE(2, 1, 2, 2), NODE(3, 2, 3, 3), NODE(4, 3, 2, 2),
		NODE(5, 1, 5, 5), NODE(6, 5, 40, 40), NODE(7, 6, 7, 7), NODE(8, 7, 40, 40)};

	check(n, 4);
	/* 6 is of session 40 although its parent 5 leads 5: 5 was born in 40 */
	check(n, ARRAY_SIZE(n));
}

static void test_dead_leaders(void **state)
{
	const struct ckpt_tree_node n[] = {NODE(2, 1, 2, 2),
		NODE(5, 1, 50, 50),			/* leader of session and group dead */
		NODE(6, 5, 50, 50), NODE(7, 1, 51, 50), /* another dead group of it */
		NODE(8, 1, 60, 2) /* orphan of a live session, dead group */};

	check(n, ARRAY_SIZE(n));
}

/* The leader is a grandchild; its orphan went to pid 1, another one to a subreaper. */
static void test_orphans(void **state)
{
	const struct ckpt_tree_node n[] = {
		NODE(2, 1, 2, 2), NODE(3, 2, 3, 3), NODE(4, 1, 3, 3), NODE(5, 2, 3, 3)};

	check(n, ARRAY_SIZE(n));
}

/*
 * As desktops start programs: who leads the session ended at once, and its orphans went to a
 * subreaper, or to several, and to pid 1.
 */
static void test_orphans_of_a_dead_leader(void **state)
{
	const struct ckpt_tree_node n[] = {NODE(2, 1, 2, 2), NODE(3, 2, 2, 2), NODE(4, 3, 4, 2),
		NODE(5, 2, 50, 50), NODE(6, 2, 60, 60), NODE(7, 2, 70, 70), /* of the desktop's own */
		NODE(10, 3, 54, 54), NODE(11, 4, 54, 54), /* 54 was below 4 */
		NODE(12, 1, 57, 54), NODE(13, 10, 58, 54), NODE(14, 13, 14, 14),
		NODE(20, 1, 80, 80)};

	check(n, ARRAY_SIZE(n));
}

/* A group whose first process went to another group. */
static void test_moved_leader(void **state)
{
	const struct ckpt_tree_node n[] = {
		NODE(2, 1, 2, 2), NODE(3, 2, 4, 2), NODE(4, 2, 3, 2), NODE(5, 2, 2, 2)};

	check(n, ARRAY_SIZE(n));
}

#define FOUNDS(sort) (1U << CKPT_NS_##sort)
#define NESTED(v, p, g, s, ...)                                                            \
	{                                                                                  \
		.vpid = (v), .ppid = (p), .pgid = (g), .sid = (s), .exit_signal = SIGCHLD, \
		.mm = (v), .sighand = (v), .files = (v), .fs = (v), __VA_ARGS__            \
	}

/*
 * As a browser is: a zygote in namespaces of its own, whose children have each a pid namespace
 * within that.
 */
static void test_browser(void **state)
{
	const struct ckpt_tree_node n[] = {NODE(2, 1, 2, 2),
		NODE(5, 2, 5,
			2), /* the browser is a job of the shell's: its group is not its session */
		NODE(6, 5, 5, 2),
		NESTED(7, 5, 5, 2, .ns = {{1, 2, 3}},
			.founds = FOUNDS(USER) | FOUNDS(PID) | FOUNDS(NET), .pid_owner = 6,
			.first_user = 6), /* and goes on into 1 */
		NESTED(8, 7, 5, 2, .ns = {{1, 2, 3}}),
		NESTED(9, 8, 5, 2, .ns = {{1, 4, 3}}, .outer = {{0, 2}}, .founds = FOUNDS(PID),
			.pid_owner = 1),
		NESTED(10, 8, 5, 2, .ns = {{1, 5, 3}}, .outer = {{0, 2}}, .founds = FOUNDS(PID),
			.pid_owner = 1),
		NESTED(11, 10, 11, 2, .ns = {{1, 5, 3}}),
		NESTED(12, 10, 12, 12, .ns = {{1, 5, 3}})};

	check(n, ARRAY_SIZE(n));
}

/*
 * Who goes into a user namespace has children from before and from afterwards; one of those leads a
 * session.
 */
static void test_unshare(void **state)
{
	const struct ckpt_tree_node n[] = {
		NESTED(2, 1, 2, 2, .ns = {{1, 0, 2}}, .founds = FOUNDS(USER) | FOUNDS(NET),
			.first_user = 1),
		NODE(3, 2, 2, 2), NODE(4, 2, 4, 4), NESTED(5, 2, 2, 2, .ns = {{1, 0, 2}}),
		NESTED(6, 5, 6, 6, .ns = {{1, 0, 3}}, .founds = FOUNDS(NET)),
		NESTED(7, 6, 6, 6, .ns = {{1, 0, 3}})};

	check(n, ARRAY_SIZE(n));
}

static void refuse(const struct ckpt_tree_node *n, size_t count, int error)
{
	struct ckpt_tree_op *ops;
	size_t n_ops;
	struct err e = {0};

	assert_int_equal(ckpt_tree_plan(n, count, &ops, &n_ops, &e), error);
}

static void test_hostile(void **state)
{
	const struct ckpt_tree_node circle[] = {NODE(2, 3, 2, 2), NODE(3, 2, 2, 2)};
	const struct ckpt_tree_node nowhere[] = {NODE(2, 7, 2, 2)};
	const struct ckpt_tree_node twice[] = {NODE(2, 1, 2, 2), NODE(2, 1, 2, 2)};
	const struct ckpt_tree_node init[] = {NODE(1, 1, 1, 1)};
	const struct ckpt_tree_node group[] = {NODE(2, 1, 2, 2), NODE(3, 1, 2, 3)};
	const struct ckpt_tree_node other[] = {
		NODE(2, 1, 2, 2), NODE(3, 1, 3, 3), NODE(4, 3, 2, 3)};

	/* the leader of its group is outside, and its parent is in another */
	const struct ckpt_tree_node out_of_reach[] = {NODE(2, 1, 2, 2), NODE(3, 2, 3, 2),
		NESTED(4, 2, 3, 2, .ns = {{1, 2}}, .founds = FOUNDS(USER) | FOUNDS(PID),
			.pid_owner = 1)};
	/* nobody has made it */
	const struct ckpt_tree_node unfounded[] = {
		NODE(2, 1, 2, 2), NESTED(3, 2, 2, 2, .ns = {{0, 0, 1}})};

	refuse(out_of_reach, 3, -EOPNOTSUPP);
	refuse(unfounded, 2, -EOPNOTSUPP);
	refuse(circle, 2, -EINVAL);
	refuse(nowhere, 1, -EINVAL);
	refuse(twice, 2, -EINVAL);
	refuse(init, 1, -EINVAL);
	refuse(group, 2, -EINVAL);
	refuse(other, 3, -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_shell_jobs),
		cmocka_unit_test(test_older_session),
		cmocka_unit_test(test_dead_leaders),
		cmocka_unit_test(test_orphans),
		cmocka_unit_test(test_orphans_of_a_dead_leader),
		cmocka_unit_test(test_moved_leader),
		cmocka_unit_test(test_browser),
		cmocka_unit_test(test_unshare),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
