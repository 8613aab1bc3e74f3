// SPDX-License-Identifier: GPL-2.0-or-later
/* Pages into another process, by several threads; what they can't write is tried once more,
 * and told in order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/memory/fillers.h"

#define PIECES 3000u /* more than wait at a time */
#define LEN    (PIECES * PAGE_SIZE)

struct fixture {
	struct ckpt_fillers *f;
	pid_t pid;
	int proc, mem;
	uint8_t *there; /* in the other process, and ours before it was made */
	uint8_t *data;
};

static int setup(void **state)
{
	struct fixture *x = calloc(1, sizeof(*x));

	x->there = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	x->data = malloc(LEN);
	for (size_t i = 0; i < LEN; i++)
		x->data[i] = (uint8_t)(i / PAGE_SIZE * 7 + i);
	x->mem = -1;
	x->proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* the tenth page may only be read there, the last two are not there */
	mprotect(x->there + 9 * PAGE_SIZE, PAGE_SIZE, PROT_READ);
	munmap(x->there + LEN - 2 * PAGE_SIZE, 2 * PAGE_SIZE);
	x->pid = fork();
	if (x->pid == 0)
		for (;;)
			pause();
	x->f = ckpt_fillers_new();
	ckpt_fillers_start(x->f);
	*state = x;
	return x->pid < 0 || x->proc < 0;
}

static int teardown(void **state)
{
	struct fixture *x = *state;

	ckpt_fillers_free(x->f);
	kill(x->pid, SIGKILL);
	waitpid(x->pid, NULL, 0);
	munmap(x->there, LEN);
	free(x->data);
	close_fd(x->mem);
	close_fd(x->proc);
	free(x);
	return 0;
}

static int add(struct fixture *x, size_t page, bool writable, struct err *e)
{
	const struct ckpt_filling w = {
		.pid = x->pid,
		.vpid = x->pid,
		.proc_fd = x->proc,
		.mem = &x->mem,
		.writable = writable,
		.addr = (uint64_t)(uintptr_t)x->there + page * PAGE_SIZE,
		.data = x->data + page * PAGE_SIZE,
		.len = PAGE_SIZE,
	};

	return ckpt_fillers_add(x->f, &w, e);
}

static void check(struct fixture *x, size_t from, size_t pages)
{
	size_t len = pages * PAGE_SIZE;
	uint8_t *have = malloc(len);
	struct iovec local = {have, len}, remote = {x->there + from * PAGE_SIZE, len};

	assert_int_equal(process_vm_readv(x->pid, &local, 1, &remote, 1, 0), len);
	assert_memory_equal(have, x->data + from * PAGE_SIZE, len);
	free(have);
}

static void all_is_written(void **state)
{
	struct fixture *x = *state;
	struct err e = {0};

	x->mem = proc_open_file(x->proc, x->pid, "mem", O_RDWR, &e);
	assert_true(x->mem >= 0);
	for (size_t i = 0; i < PIECES - 2; i++)
		assert_int_equal(add(x, i, i != 9, &e), 0);
	assert_int_equal(ckpt_fillers_wait(x->f, &e), 0);
	check(x, 0, PIECES - 2);
}

/* What no filler can write: without the file it would have to be opened. */
static void tried_once_more(void **state)
{
	struct fixture *x = *state;
	struct err e = {0};

	for (size_t i = 0; i < 20; i++)
		assert_int_equal(add(x, i, i != 12, &e), 0);
	assert_int_equal(ckpt_fillers_wait(x->f, &e), 0);
	check(x, 0, 20);
	assert_true(x->mem >= 0);
}

static void first_failure_is_told(void **state)
{
	struct fixture *x = *state;
	struct err e = {0};
	char where[32];
	int r = 0;

	for (size_t i = PIECES - 40; r == 0 && i < PIECES; i++)
		r = add(x, i, true, &e);
	for (size_t i = 0; r == 0 && i < 2; i++)
		r = add(x, PIECES - 1, true, &e);
	if (r == 0)
		r = ckpt_fillers_wait(x->f, &e);
	assert_int_equal(r, -EIO);
	snprintf(where, sizeof(where), "%llx",
		(unsigned long long)(uintptr_t)(x->there + LEN - 2 * PAGE_SIZE));
	assert_non_null(strstr(e.msg, where));
	check(x, PIECES - 40, 38);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_is_written, setup, teardown),
		cmocka_unit_test_setup_teardown(tried_once_more, setup, teardown),
		cmocka_unit_test_setup_teardown(first_failure_is_told, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
