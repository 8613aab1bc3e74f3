// SPDX-License-Identifier: GPL-2.0-or-later
/* Which descriptors lead to the same open file, without kcmp(2). */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "ckpt/survey/same.h"

static void close_all(const int *fds, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close(fds[i]);
}

static void expect(const int *fds, size_t n, const size_t *first)
{
	size_t got[512];

	assert_int_equal(ckpt_same_files(fds, n, got), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(got[i], first[i]);
}

static void duplicates_are_the_same_file(void **state)
{
	int a = open("/dev/null", O_RDWR), b = open("/dev/null", O_RDWR), pair[2];
	int fds[6];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	memcpy(fds, (int[]){a, b, dup(b), pair[0], dup(a), pair[1]}, sizeof(fds));
	expect(fds, 6, (size_t[]){0, 1, 1, 3, 0, 5});
	assert_true(ckpt_same_file(fds[1], fds[2]));
	assert_false(ckpt_same_file(a, b));
	close_all(fds, 6);
}

/* More than there are marks; nothing is left of them. */
static void there_may_be_many(void **state)
{
	int fds[400];
	size_t first[400];

	for (size_t i = 0; i < 200; i++) {
		fds[i] = eventfd(0, 0);
		first[i] = i;
		if (i % 3 == 0)
			assert_int_equal(fcntl(fds[i], F_SETSIG, 40), 0);
	}
	for (size_t i = 200; i < 400; i++) {
		first[i] = (i * 7) % 200;
		fds[i] = dup(fds[first[i]]);
	}
	expect(fds, 400, first);
	for (size_t i = 0; i < 200; i++)
		assert_int_equal(fcntl(fds[i], F_GETSIG), i % 3 == 0 ? 40 : 0);
	close_all(fds, 400);
}

static void a_signal_that_may_come_is_left_alone(void **state)
{
	int a[2], b[2], fds[4];

	assert_int_equal(pipe(a), 0);
	assert_int_equal(pipe(b), 0);
	assert_int_equal(fcntl(a[0], F_SETFL, O_ASYNC | O_NONBLOCK), 0);
	assert_int_equal(fcntl(b[0], F_SETFL, O_ASYNC | O_NONBLOCK), 0);
	memcpy(fds, (int[]){a[0], b[0], dup(b[0]), dup(a[0])}, sizeof(fds));
	expect(fds, 4, (size_t[]){0, 1, 1, 0});
	assert_int_equal(fcntl(a[0], F_GETFL) & (O_ASYNC | O_NONBLOCK), O_ASYNC | O_NONBLOCK);
	assert_int_equal(fcntl(a[0], F_GETSIG), 0);
	close_all(fds, 4);
	close(a[1]);
	close(b[1]);
}

static void names_alone_are_the_same_by_name(void **state)
{
	int fds[] = {open("/", O_PATH), open("/dev", O_PATH), open("/", O_PATH)};

	expect(fds, 3, (size_t[]){0, 1, 0});
	close_all(fds, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(duplicates_are_the_same_file),
		cmocka_unit_test(there_may_be_many),
		cmocka_unit_test(a_signal_that_may_come_is_left_alone),
		cmocka_unit_test(names_alone_are_the_same_by_name),
	};

	return cmocka_run_group_tests_name("same", tests, NULL, NULL);
}
