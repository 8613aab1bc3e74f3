// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static void err_gathers_context(void **state)
{
	struct err e = {0};

	assert_int_equal(err_set(&e, ERR_UNFREEZABLE, -EOPNOTSUPP, "io_uring is not supported"),
		-EOPNOTSUPP);
	err_wrap(&e, "task %d (%s) fd %d", 12, "mysqld", 7);
	assert_string_equal(e.msg, "task 12 (mysqld) fd 7: io_uring is not supported");
	assert_int_equal(err_class_info(e.class)->exit_code, 3);
}

static void err_long_context_keeps_cause(void **state)
{
	struct err e = {0};
	char ctx[600];

	memset(ctx, 'x', sizeof(ctx) - 1);
	ctx[sizeof(ctx) - 1] = '\0';
	err_set(&e, ERR_FAILED, -EIO, "the cause");
	err_wrap(&e, "%s", ctx);
	assert_non_null(strstr(e.msg, ": the cause"));
	assert_true(strlen(e.msg) < sizeof(e.msg));
}

static void writes_into_a_dead_task_end(void **state)
{
	pid_t child = fork();
	char path[32], page[64] = "";
	int mem;

	if (child == 0) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", child);
	mem = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(mem >= 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(io_pwrite_full(mem, page, sizeof(page), (off_t)(uintptr_t)page), -EIO);
	close(mem);
}

static void err_of_an_image_is_blamed(void **state)
{
	struct err e = {0};

	err_errno(&e, -EINVAL, "a timer of clock 77");
	assert_int_equal(err_blame_image(&e), -EINVAL);
	assert_int_equal(e.class, ERR_IMAGE);
	err_errno(&e, -EPERM, "more than this host allows");
	err_blame_image(&e);
	assert_int_equal(e.class, ERR_HOST);
	err_errno(&e, -ENOMEM, "nobody's fault");
	err_blame_image(&e);
	assert_int_equal(e.class, ERR_FAILED);
	err_set(&e, ERR_STATE, -EINVAL, "has a class");
	err_blame_image(&e);
	assert_int_equal(e.class, ERR_STATE);
}

static void text_is_harmless(void **state)
{
	char buf[64] = "";
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	assert_non_null(out);
	text_put(out, "a\nb\033[31m\302\233\377\303\244");
	fclose(out);
	assert_string_equal(buf, "a?b?[31m??\303\244");
}

static void text_is_made_utf8(void **state)
{
	_cleanup_free_ char *copy = text_utf8("\303\244\377b\346\227\n");
	char buf[64] = "";
	FILE *out = fmemopen(buf, sizeof(buf), "w");

	assert_string_equal(copy, "\303\244\357\277\275b\357\277\275\357\277\275\n");
	assert_non_null(out);
	text_put_json_document(out, "{\n\"\303\244\302\233\177\":1}");
	fclose(out);
	assert_string_equal(buf, "{\n\"\303\244\\u009b\\u007f\":1}");
}

static void text_is_cut_between_characters(void **state)
{
	static const struct {
		const char *text, *cut;
	} all[] = {
		{"", ""},
		{"abc", "abc"},
		{"a\303\244\346\227\245\360\237\230\200z", "a\303\244\346\227\245"},
		{"\n\302\233\377b", "???"},
		{"\342\200\256\346\227", "???"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		char text[32];

		snprintf(text, sizeof(text), "%s", all[i].text);
		text_tame(text, 3);
		assert_string_equal(text, all[i].cut);
	}
}

static void cursor_stops_at_its_end(void **state)
{
	uint8_t bytes[5] = {1, 0, 0, 0, 9};
	struct cursor c = cursor_of(bytes, sizeof(bytes));

	assert_int_equal(cursor_u32(&c), 1);
	assert_false(c.bad);
	assert_int_equal(cursor_u32(&c), 0);
	assert_true(c.bad);
	assert_int_equal(cursor_u8(&c), 0);
}

static void buf_grows_and_consumes(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	for (int i = 0; i < 1000; i++)
		buf_printf(&b, "%d,", i);
	assert_int_equal(buf_error(&b), 0);
	buf_consume(&b, 2);
	assert_int_equal(strncmp(buf_cstr(&b), "1,2,", 4), 0);
}

static void buf_gives_back_what_it_does_not_need(void **state)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	buf_trim(&b);
	assert_int_equal(b.cap, 0);
	buf_put_str(&b, "abc");
	buf_trim(&b);
	assert_int_equal(b.cap, 3);
	buf_trim(&b);
	buf_put_str(&b, "def");
	assert_string_equal(buf_cstr(&b), "abcdef");
	buf_clear(&b);
	buf_trim(&b);
	assert_int_equal(b.cap, 0);
	buf_put_str(&b, "g");
	assert_string_equal(buf_cstr(&b), "g");
}

static void rm_rf_leaves_nothing(void **state)
{
	char dir[] = "/tmp/podrun-test-XXXXXX";
	char path[64];

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a/b/c", dir);
	assert_int_equal(io_mkdir_p(AT_FDCWD, path, 0700), 0);
	chmod(path, 0);
	assert_int_equal(io_rm_rf(AT_FDCWD, dir), 0);
	assert_int_equal(access(dir, F_OK), -1);
}

struct tally {
	atomic_uint seen[1000];
	size_t bad; /* and all above it fail */
};

static int count(void *ctx, size_t i, struct err *e)
{
	struct tally *t = ctx;

	atomic_fetch_add(&t->seen[i], 1);
	return i < t->bad ? 0 : err_set(e, ERR_FAILED, -EIO, "item %zu", i);
}

static long table_size(void)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	const char *line;

	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/status", 1 << 16, &b), 0);
	line = strstr(buf_cstr(&b), "\nFDSize:");
	return line ? strtol(line + 8, NULL, 10) : -1;
}

static void descriptors_have_room_at_once(void **state)
{
	const struct rlimit few = {100, 3000};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		long before = table_size();

		alarm(10);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
		io_make_fd_room(-1, 1);
		io_make_fd_room(1, 0);
		assert_int_equal(table_size(), before);
		io_make_fd_room(1, 5000);
		assert_in_range(table_size(), 100, 1024);
		assert_int_equal(io_allow_fds(), 3000);
		io_make_fd_room(1, 5000);
		assert_in_range(table_size(), 3000, 4999);
		/* and none of it is taken */
		assert_int_equal(fcntl(1, F_DUPFD_CLOEXEC, 99), 99);
		assert_int_equal(fcntl(1, F_DUPFD_CLOEXEC, 2999), 2999);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void par_does_each_once(void **state)
{
	static struct tally t = {.bad = SIZE_MAX};
	struct err e = {0};

	assert_int_equal(par_each(ARRAY_SIZE(t.seen), count, &t, &e), 0);
	for (size_t i = 0; i < ARRAY_SIZE(t.seen); i++)
		assert_int_equal(t.seen[i], 1);
	assert_int_equal(par_each(0, count, &t, &e), 0);
}

static void a_crew_does_each_once_again_and_again(void **state)
{
	static struct tally t = {.bad = SIZE_MAX}, bad = {.bad = 1};
	struct par_crew *crew = par_crew_new();
	struct err e = {0};
	int status;
	pid_t pid;

	assert_int_equal(par_crew_each(crew, 10, count, &t, &e), 0); /* not started: alone */
	par_crew_start(crew);
	for (unsigned round = 1; round < 100; round++)
		assert_int_equal(par_crew_each(crew, 10 + round, count, &t, &e), 0);
	for (size_t i = 0; i < 10; i++)
		assert_int_equal(t.seen[i], 100);
	for (size_t i = 10; i < 109; i++)
		assert_int_equal(t.seen[i], 109 - i);
	assert_int_equal(t.seen[109], 0);
	assert_int_equal(par_crew_each(crew, ARRAY_SIZE(bad.seen), count, &bad, &e), -EIO);
	assert_string_equal(e.msg, "item 1");
	/* it waits, and holds nothing */
	pid = fork();
	if (pid == 0)
		_exit(malloc(100) ? 7 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 7);
	par_crew_free(crew);
	assert_int_equal(par_crew_each(NULL, 10, count, &t, &e), 0);
	par_crew_start(NULL);
	par_crew_free(NULL);
}

static void par_tells_the_first_failure(void **state)
{
	static struct tally t = {.bad = 1};
	struct err e = {0};

	assert_int_equal(par_each(ARRAY_SIZE(t.seen), count, &t, &e), -EIO);
	assert_string_equal(e.msg, "item 1");
	assert_int_equal(t.seen[ARRAY_SIZE(t.seen) - 1], 0);
}

/* Of libm: it is there, and nothing here is linked to it. */
double cos(double x);
int no_such_function(void);

static void late_libraries_are_whole_or_not_there(void **state)
{
	struct {
		typeof(&cos) cos;
		typeof(&no_such_function) no_such_function;
	} lib = {0};
	const struct late_symbol symbols[] = {LATE(lib, cos), LATE(lib, no_such_function)};
	struct err e = {0};

	assert_int_equal(late_load("libno-such-library.so.1", symbols, 1, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "libno-such-library.so.1"));
	assert_int_equal(late_load("libm.so.6", symbols, 2, &e), -ENOENT);
	assert_non_null(strstr(e.msg, "no_such_function"));
	assert_null(lib.cos);
	for (int i = 0; i < 2; i++)
		assert_int_equal(late_load("libm.so.6", symbols, 1, &e), 0);
	assert_true(lib.cos(0) > 0.999);
}

/* 0 and what is left behind the number, or how it failed. */
static int skipped(const char *data, size_t n, uint8_t number[PREFACE_NUMBER], char *ret_left, size_t room)
{
	int ends[2], r;
	ssize_t left;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(io_write_full(ends[1], data, n), 0);
	close(ends[1]);
	r = preface_skip(ends[0], number);
	left = io_read_full(ends[0], ret_left, room - 1);
	ret_left[left > 0 ? left : 0] = '\0';
	close(ends[0]);
	return r;
}

static void a_preface_is_skipped(void **state)
{
	static const char plain[] = "\1\0\0\0rest", said[] = "Welcome\r\n\33]0;x\7\4\0\0\0rest",
			  one[] = "\1\1\0\0\0rest", nothing[] = "This account is not available\n";
	uint8_t number[PREFACE_NUMBER];
	char left[16];

	assert_int_equal(skipped(plain, sizeof(plain) - 1, number, left, sizeof(left)), 0);
	assert_string_equal(left, "rest");
	assert_int_equal(skipped(said, sizeof(said) - 1, number, left, sizeof(left)), 0);
	assert_string_equal(left, "rest");
	assert_memory_equal(number, "\4\0\0\0", PREFACE_NUMBER);
	assert_int_equal(skipped(one, sizeof(one) - 1, number, left, sizeof(left)), 0);
	assert_string_equal(left, "rest");
	assert_int_equal(skipped(nothing, sizeof(nothing) - 1, number, left, sizeof(left)), -ECONNRESET);
	assert_int_equal(skipped("", 0, number, left, sizeof(left)), -ECONNRESET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_gathers_context),
		cmocka_unit_test(err_long_context_keeps_cause),
		cmocka_unit_test(err_of_an_image_is_blamed),
		cmocka_unit_test(writes_into_a_dead_task_end),
		cmocka_unit_test(text_is_harmless),
		cmocka_unit_test(text_is_made_utf8),
		cmocka_unit_test(text_is_cut_between_characters),
		cmocka_unit_test(cursor_stops_at_its_end),
		cmocka_unit_test(buf_grows_and_consumes),
		cmocka_unit_test(buf_gives_back_what_it_does_not_need),
		cmocka_unit_test(rm_rf_leaves_nothing),
		cmocka_unit_test(a_preface_is_skipped),
		cmocka_unit_test(descriptors_have_room_at_once),
		cmocka_unit_test(par_does_each_once),
		cmocka_unit_test(par_tells_the_first_failure),
		cmocka_unit_test(a_crew_does_each_once_again_and_again),
		cmocka_unit_test(late_libraries_are_whole_or_not_there),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
