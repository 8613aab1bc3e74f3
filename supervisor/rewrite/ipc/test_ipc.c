// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/ipc/host.h"
#include "supervisor/rewrite/ipc/ipc.h"

static struct ipc_names *fresh(void)
{
	struct ipc_names *n;
	struct err e = {0};

	assert_int_equal(ipc_names_create(&n, 0x1234567890abcdef, &e), 0);
	return n;
}

static int add(struct ipc_names *n, enum ipc_sort sort, key_t key)
{
	int slot = ipc_names_next(n, sort);
	struct ipc_object *o = slot < 0 ? NULL : ipc_names_add(n, sort, slot);

	if (!o)
		return slot;
	o->key = key;
	ipc_names_set_host(n, sort, o, 70000 + slot);
	return ipc_names_id(n, sort, o);
}

static void remove_id(struct ipc_names *n, enum ipc_sort sort, int id)
{
	struct ipc_object *o = ipc_names_find(n, sort, id);

	assert_non_null(o);
	ipc_names_remove(n, sort, o);
}

static void given_in_a_circle(void **state)
{
	struct ipc_names *n = fresh();

	assert_int_equal(ipc_names_max(n, IPC_SEM), -1);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(add(n, IPC_SEM, 0), i);
		remove_id(n, IPC_SEM, i);
	}
	assert_int_equal(add(n, IPC_SEM, 5), 32768);
	assert_int_equal(add(n, IPC_SHM, 5), 0);
	assert_int_equal(ipc_names_max(n, IPC_SEM), 0);
	assert_int_equal(ipc_names_count(n, IPC_SEM), 1);
	assert_int_equal(ipc_names_high(n, IPC_SEM), 64);
	ipc_names_free(n);
}

static void found_by_all_names(void **state)
{
	struct ipc_names *n = fresh();
	struct ipc_object *o;

	assert_int_equal(add(n, IPC_SHM, 4711), 0);
	o = ipc_names_find_key(n, IPC_SHM, 4711);
	assert_non_null(o);
	assert_ptr_equal(ipc_names_find(n, IPC_SHM, 0), o);
	assert_ptr_equal(ipc_names_find_host(n, IPC_SHM, 70000), o);
	assert_ptr_equal(ipc_names_at(n, IPC_SHM, 0), o);
	assert_null(ipc_names_find_key(n, IPC_MSG, 4711));
	ipc_names_set_removed(n, o);
	assert_null(ipc_names_find_key(n, IPC_SHM, 4711));
	assert_int_equal(ipc_names_removed(n), 1);
	ipc_names_remove(n, IPC_SHM, o);
	assert_int_equal(ipc_names_removed(n), 0);
	assert_null(ipc_names_find_host(n, IPC_SHM, 70000));
	ipc_names_free(n);
}

static void strange_ids(void **state)
{
	static const int strange[] = {-1, 1, 32768, 32769, 1 << 30, (int)0x80000000, 0x7fffffff};
	struct ipc_names *n = fresh();

	assert_int_equal(add(n, IPC_MSG, 1), 0);
	for (size_t i = 0; i < ARRAY_SIZE(strange); i++)
		assert_null(ipc_names_find(n, IPC_MSG, strange[i]));
	assert_null(ipc_names_at(n, IPC_MSG, -1));
	assert_null(ipc_names_at(n, IPC_MSG, IPC_SLOTS));
	assert_null(ipc_names_restore(n, IPC_MSG, -1));
	assert_null(ipc_names_restore(n, IPC_MSG, 3 * 32768));
	ipc_names_free(n);
}

static void given_again_after_a_move(void **state)
{
	struct ipc_names *n = fresh();
	struct ipc_object *o = ipc_names_restore(n, IPC_SEM, 5 * 32768 + 1);

	assert_non_null(o);
	assert_int_equal(ipc_names_id(n, IPC_SEM, o), 5 * 32768 + 1);
	assert_int_equal(add(n, IPC_SEM, 0), 0);
	assert_int_equal(add(n, IPC_SEM, 0), 2);
	ipc_names_free(n);
}

static void no_more_than_a_namespace_has(void **state)
{
	struct ipc_names *n = fresh();

	for (int i = 0; i < 4096; i++)
		assert_int_equal(add(n, IPC_SHM, 0), i);
	assert_int_equal(add(n, IPC_SHM, 0), -ENOSPC);
	remove_id(n, IPC_SHM, 17);
	assert_int_equal(add(n, IPC_SHM, 0), 4096);
	ipc_names_free(n);
}

static void keys_differ(void **state)
{
	static uint8_t seen[1 << 20];

	for (int i = 0; i < IPC_SLOTS; i++) {
		uint32_t key = (uint32_t)ipc_names_host_key(42, i);

		for (int k = 0; k < i && seen[key % sizeof(seen)]; k++)
			assert_int_not_equal(key, (uint32_t)ipc_names_host_key(42, k));
		seen[key % sizeof(seen)] = 1;
	}
	assert_int_not_equal(ipc_names_host_key(42, 0), ipc_names_host_key(43, 0));
}

static void queues_have_names(void **state)
{
	struct ipc_names *n = fresh();
	char host[IPC_HOST_NAME];

	assert_int_equal(ipc_names_find_queue(n, "one"), -ENOENT);
	assert_int_equal(ipc_names_add_queue(n, "one"), 0);
	assert_int_equal(ipc_names_add_queue(n, "two"), 1);
	assert_int_equal(ipc_names_find_queue(n, "two"), 1);
	ipc_names_host_queue(ipc_names_tag(n), 1, host);
	assert_string_equal(host, "podrun-1234567890abcdef-1");
	assert_int_equal(ipc_names_host_slot(n, host), 1);
	assert_int_equal(ipc_names_host_slot(n, "podrun-1234567890abcdef-2"), -ENOENT);
	assert_int_equal(ipc_names_host_slot(n, "podrun-1234567890abcdee-1"), -ENOENT);
	assert_int_equal(ipc_names_host_slot(n, "two"), -ENOENT);
	ipc_names_spoil_queue(n, 1);
	assert_int_equal(ipc_names_find_queue(n, "two"), -ENOENT);
	ipc_names_remove_queue(n, 0);
	assert_int_equal(ipc_names_add_queue(n, "three"), 0);
	ipc_names_free(n);
}

/* ---- as the kernel --------------------------------------------------------------------------- */

#define OBJECTS 300

/* The same objects made and removed by the kernel in a namespace of their own, and in the table. */
static int compare(enum ipc_sort sort, unsigned seed)
{
	struct ipc_names *n = fresh();
	int ids[OBJECTS], held = 0;

	for (int step = 0; step < 20000; step++) {
		bool growing = step / 4000 % 2 == 0;

		seed = seed * 1103515245 + 12345;
		if (held < OBJECTS && (held == 0 || (seed >> 16) % 8 < (growing ? 5 : 3))) {
			int id = ipc_host_get(sort, IPC_PRIVATE, 1, 0600 | IPC_CREAT);

			if (id < 0 || add(n, sort, 0) != id)
				return 1;
			ids[held++] = id;
		} else {
			int at = (int)((seed >> 16) % (unsigned)held);

			if (ipc_host_ctl(sort, ids[at], IPC_RMID, NULL) < 0)
				return 2;
			remove_id(n, sort, ids[at]);
			ids[at] = ids[--held];
		}
	}
	return 0;
}

static void ids_are_the_kernels(void **state)
{
	for (int sort = 0; sort < IPC_SORTS; sort++) {
		pid_t child = fork();
		int status;

		if (child == 0)
			_exit(unshare(CLONE_NEWUSER | CLONE_NEWIPC) < 0 ? 77 : compare(sort, 7));
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			skip();
		assert_int_equal(status, 0);
	}
}

/* ---- what is left ---------------------------------------------------------------------------- */

static int count(uint64_t tag)
{
	int there = 0;

	for (int sort = 0; sort < IPC_SORTS; sort++)
		there += ipc_host_get(sort, ipc_names_host_key(tag, 3), 0, 0) >= 0;
	return there;
}

static void make_three(struct ipc_names *n)
{
	struct err e = {0};

	for (int sort = 0; sort < IPC_SORTS; sort++) {
		int host = ipc_restore(n, sort, 32768 + 3, 99, 1, 0400, 0200, &e);

		assert_true(host >= 0);
		assert_int_equal(ipc_names_find_key(n, sort, 99)->host, host);
	}
	assert_int_equal(ipc_restore(n, IPC_SHM, 3, 98, 1, 0600, 0, &e), -EEXIST);
	assert_int_equal(count(ipc_names_tag(n)), 3);
}

static void gone_at_the_end(void **state)
{
	struct ipc *i;
	struct err e = {0};
	uint64_t tag;

	assert_int_equal(ipc_create(&i, &e), 0);
	tag = ipc_names_tag(ipc_table(i));
	make_three(ipc_table(i));
	ipc_end(i);
	assert_int_equal(count(tag), 0);
}

/* A process that makes them and is killed; another sees its tag. */
static void gone_after_a_crash(void **state)
{
	char dir[] = "/tmp/podrun-ipc-XXXXXX", path[64];
	int told[2], status;
	struct err e = {0};
	uint64_t tag = 0;
	pid_t child;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(pipe(told), 0);
	child = fork();
	if (child == 0) {
		struct ipc *i;

		if (ipc_create(&i, &e) < 0 || ipc_begin(i, dir, &e) < 0)
			_exit(1);
		make_three(ipc_table(i));
		tag = ipc_names_tag(ipc_table(i));
		if (write(told[1], &tag, sizeof(tag)) != sizeof(tag))
			_exit(1);
		for (;;)
			pause();
	}
	close(told[1]);
	assert_int_equal(read(told[0], &tag, sizeof(tag)), sizeof(tag));
	ipc_sweep(dir);
	assert_int_equal(count(tag), 3);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	ipc_sweep(dir);
	assert_int_equal(count(tag), 0);
	snprintf(path, sizeof(path), "%s/ipc", dir);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(given_in_a_circle),
		cmocka_unit_test(found_by_all_names),
		cmocka_unit_test(strange_ids),
		cmocka_unit_test(given_again_after_a_move),
		cmocka_unit_test(no_more_than_a_namespace_has),
		cmocka_unit_test(keys_differ),
		cmocka_unit_test(queues_have_names),
		cmocka_unit_test(ids_are_the_kernels),
		cmocka_unit_test(gone_at_the_end),
		cmocka_unit_test(gone_after_a_crash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
