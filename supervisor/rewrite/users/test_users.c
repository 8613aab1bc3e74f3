// SPDX-License-Identifier: GPL-2.0-or-later
/* What virtual users may become, and which capabilities they are told of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/config.pb-c.h"
#include "supervisor/names/users.h"
#include "supervisor/rewrite/tasks.h"
#include "supervisor/rewrite/users/caps.h"

#define KEEP UINT64_C(0xffffffffffffffff)

static struct users u;

static int change(int nr, bool root, uint64_t a, uint64_t b, uint64_t c)
{
	return users_change(&u, nr, (const uint64_t[]){a, b, c}, root);
}

static void expect(struct users_ids is, uint32_t real, uint32_t effective, uint32_t saved)
{
	assert_int_equal(is.real, real);
	assert_int_equal(is.effective, effective);
	assert_int_equal(is.saved, saved);
}

static int setup(void **state)
{
	u = (struct users){.groups = USERS_NO_GROUPS};
	return 0;
}

/* setuid(2), setreuid(2), setresuid(2), "errors" included. */
static void root_becomes_anybody(void **state)
{
	assert_int_equal(change(SYS_setresuid, true, KEEP, 33, 34), 0);
	expect(u.uid, 0, 33, 34);
	expect(u.gid, 0, 0, 0);
	assert_int_equal(change(SYS_setreuid, true, KEEP, 35, 0), 0);
	expect(u.uid, 0, 35, 35);
	assert_int_equal(change(SYS_setreuid, true, KEEP, 0, 0), 0);
	expect(u.uid, 0, 0, 35);
	assert_int_equal(change(SYS_setgid, true, 7, 0, 0), 0);
	expect(u.gid, 7, 7, 7);
	assert_int_equal(change(SYS_setuid, true, 8, 0, 0), 0);
	expect(u.uid, 8, 8, 8);
}

static void others_are_what_they_are(void **state)
{
	u.uid = (struct users_ids){1, 2, 3};
	assert_int_equal(change(SYS_setuid, false, 2, 0, 0), -EPERM);
	assert_int_equal(change(SYS_setresuid, false, 3, 4, KEEP), -EPERM);
	assert_int_equal(change(SYS_setreuid, false, 3, KEEP, 0), -EPERM);
	expect(u.uid, 1, 2, 3);
	assert_int_equal(change(SYS_setuid, false, 3, 0, 0), 0);
	expect(u.uid, 1, 3, 3);
	assert_int_equal(change(SYS_setresuid, false, 3, 1, 1), 0);
	expect(u.uid, 3, 1, 1);
	assert_int_equal(change(SYS_setreuid, false, 1, 3, 0), 0);
	expect(u.uid, 1, 3, 3);
}

static void what_has_no_room_is_nobody(void **state)
{
	assert_int_equal(change(SYS_setuid, true, 65534, 0, 0), 0);
	assert_int_equal(change(SYS_setuid, true, 65535, 0, 0), -EINVAL);
	assert_int_equal(change(SYS_setuid, true, 0xffffffff, 0, 0), -EINVAL);
	assert_int_equal(change(SYS_setresgid, true, 0, 0, 1 << 20), -EINVAL);
	expect(u.gid, 0, 0, 0);
	u.uid = (struct users_ids){100000, 100000, 100000};
	assert_int_equal(change(SYS_setuid, false, 100000, 0, 0), 0);
}

static void words_hold_them(void **state)
{
	struct users got;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		u = (struct users){{1, 2, 3}, {4, 5, 65534}, true, 6};
		_exit(users_store(getpid(), &u) == 0 &&
					(users_load(getpid(), &got), users_same(&u, &got))
				? 0
				: 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	users_load(getpid(), &got);
	assert_true(users_same(&got, &(struct users){.groups = USERS_NO_GROUPS}));
}

/* ---- groups --------------------------------------------------------------------------------- */

static void sets_of_groups(void **state)
{
	struct users_groups *g = users_groups_new(), *other = users_groups_new();
	const gid_t a[] = {5, 4}, b[] = {4, 5};
	uint32_t many[USERS_MAX_GROUPS + 1] = {0};
	Pb__GroupSet too_many = PB__GROUP_SET__INIT, *list[] = {&too_many};
	Pb__World w = PB__WORLD__INIT;
	struct err e = {0};
	void *room;
	size_t n;

	assert_int_equal(users_groups_find(g, NULL, 0), 0);
	assert_int_equal(users_groups_find(g, a, 2), 1);
	assert_int_equal(users_groups_find(g, b, 2), 2);
	assert_int_equal(users_groups_find(g, a, 2), 1);
	assert_int_equal(users_groups_dump(g, &w, &room), 0);
	assert_int_equal(users_groups_restore(other, &w, &e), 0);
	free(room);
	assert_memory_equal(users_groups_of(other, 2, &n), b, sizeof(b));
	assert_int_equal(n, 2);
	users_groups_of(other, 3, &n);
	assert_int_equal(n, 0);
	too_many.ids = many;
	too_many.n_ids = USERS_MAX_GROUPS + 1;
	w.group_sets = list;
	w.n_group_sets = 1;
	assert_true(users_groups_restore(other, &w, &e) < 0);
	users_groups_free(g);
	users_groups_free(other);
}

/* They end where a message would. */
static void groups_have_an_end(void **state)
{
	struct users_groups *g = users_groups_new();
	gid_t ids[USERS_MAX_GROUPS] = {0};
	int r = 0, n = 0;

	for (; r >= 0 && n < 10000; n++) {
		ids[0] = (gid_t)n;
		r = users_groups_find(g, ids, USERS_MAX_GROUPS);
	}
	assert_int_equal(r, -ENOMEM);
	assert_int_equal(users_groups_find(g, NULL, 0), n - 1);
	users_groups_free(g);
}

/* ---- capabilities --------------------------------------------------------------------------- */

static void caps_follow_ids(void **state)
{
	const struct users root = {0}, www = {.uid = {33, 33, 33}}, for_now = {.uid = {0, 33, 0}},
			   keeps = {.uid = {33, 33, 33}, .keeps_caps = true};
	struct task task = {.number = 2, .tgid = 2};
	struct tasks *t = calloc(1, sizeof(*t));

	t->all[2] = &task;
	users_caps_all(&task.caps);
	assert_true(users_caps_has(&task, &root, CAP_SETUID));
	assert_false(users_caps_has(&task, &www, CAP_SETUID));
	assert_false(users_caps_has(&task, &for_now, CAP_SETUID));
	assert_int_equal(users_caps_of(&task, &for_now).permitted, USERS_CAPS_ALL);
	assert_int_equal(users_caps_of(&task, &www).permitted, 0);
	assert_int_equal(users_caps_of(&task, &keeps).permitted, USERS_CAPS_ALL);
	assert_int_equal(users_caps_of(&task, &keeps).effective, 0);
	/* What capset(2) has raised is had until the ids change. */
	task.caps.set = true;
	task.caps.effective = task.caps.permitted = 1u << CAP_KILL;
	assert_int_equal(users_caps_of(&task, &keeps).effective, 1u << CAP_KILL);
	users_caps_follow(t, &task, &keeps, &www);
	assert_int_equal(users_caps_of(&task, &keeps).effective, 1u << CAP_KILL);
	users_caps_follow(t, &task, &for_now, &root);
	assert_int_equal(users_caps_of(&task, &root).effective, 1u << CAP_KILL);
	/* The next program begins with what is not forbidden. */
	task.caps.bounding &= ~(UINT64_C(1) << CAP_CHOWN);
	users_caps_exec(&task);
	assert_false(users_caps_has(&task, &root, CAP_CHOWN));
	assert_true(users_caps_has(&task, &root, CAP_KILL));
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(root_becomes_anybody, setup),
		cmocka_unit_test_setup(others_are_what_they_are, setup),
		cmocka_unit_test_setup(what_has_no_room_is_nobody, setup),
		cmocka_unit_test_setup(words_hold_them, setup),
		cmocka_unit_test(sets_of_groups),
		cmocka_unit_test(groups_have_an_end),
		cmocka_unit_test(caps_follow_ids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
