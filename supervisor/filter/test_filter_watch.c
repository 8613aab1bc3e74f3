// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The kernel itself says what the program does: it runs in a child, before one that allows all;
 * what it notifies is ENOSYS there, for nobody listens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "supervisor/filter/filter_watch.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#define MARK 0x12345677u
#define GIB  (1UL << 30)

static const struct ckpt_mapped mapped = {
	.cookie = MARK,
	.n = 3,
	.ranges = {{5 * GIB - 0x3000, 5 * GIB + 0x2000}, {9 * GIB + 0x5000, 9 * GIB + 0x9000},
		{0x7f0000000000, 0x7f8000000000}},
};

/* In the child: true if the call was notified. */
static bool notified(long nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a5)
{
	return syscall(nr, a0, a1, a2, a3, 0, a5) < 0 && errno == ENOSYS;
}

static bool touches(uint64_t start, uint64_t end)
{
	for (size_t i = 0; i < mapped.n; i++)
		if (start < mapped.ranges[i].end && end > mapped.ranges[i].start)
			return true;
	return false;
}

/* Every pair of places near an edge of a range, or of 32 bits. */
static int try_ranges(void)
{
	static const uint64_t lens[] = {
		0x1000, 0x2000, 0x5000, 0x123, GIB, 4 * GIB, 5 * GIB, 0x7f0000000000};

	for (size_t i = 0; i < mapped.n; i++)
		for (int edge = 0; edge < 3; edge++)
			for (int off = -8; off <= 8; off++)
				for (size_t k = 0; k < ARRAY_SIZE(lens); k++) {
					const struct ckpt_range *r = &mapped.ranges[i];
					uint64_t at = (edge == 0	  ? r->start
							      : edge == 1 ? r->end
									  : 8 * GIB) +
						      (uint64_t)off * 0x1000;
					bool is = notified(SYS_madvise, at, lens[k], 9999, 0, 0);

					if (is != touches(at, at + ALIGN_UP(lens[k], 4096)))
						return 1;
				}
	return 0;
}

static int try_others(void)
{
	uint64_t in = mapped.ranges[1].start, out = in - 0x1000;
	uint64_t mark = (uint64_t)MARK << 32;

	if (notified(SYS_madvise, in, 4096, 9999, 0, MARK) ||
		!notified(SYS_mremap, in, 4096, 4096, 0, 0) ||
		notified(SYS_mremap, out, 4096, 4096, 0, 0) ||
		notified(SYS_mremap, in, 4096, 4096, 0, MARK))
		return 2;
	if (!notified(SYS_mlock, in, 4096, 0, 0, 0) || notified(SYS_mlock, out, 4096, 0, 0, 0))
		return 3;
	if (!notified(SYS_mincore, in, 4096, 0, 0, 0) || notified(SYS_mincore, out, 4096, 0, 0, 0) ||
		!notified(SYS_pkey_mprotect, in, 4096, PROT_READ, 0, 0) ||
		!notified(SYS_move_pages, 1, 0, 0, 0, 0))
		return 7;
	if (!notified(SYS_setrlimit, RLIMIT_AS, 1, 0, 0, 0) ||
		!notified(SYS_setrlimit, RLIMIT_DATA, 1, 0, 0, 0) ||
		notified(SYS_setrlimit, RLIMIT_NOFILE, 1, 0, 0, 0) ||
		!notified(SYS_prlimit64, 1, RLIMIT_AS, 1, 0, 0) ||
		!notified(SYS_prlimit64, 1, RLIMIT_DATA, GIB << 2, 0, 0) ||
		notified(SYS_prlimit64, 1, RLIMIT_AS, 0, 1, 0) ||
		notified(SYS_prlimit64, 1, RLIMIT_CORE, 1, 0, 0))
		return 8;
	if (!notified(SYS_mprotect, in, 4096, PROT_READ | PROT_EXEC, 0, 0) ||
		notified(SYS_mprotect, in, 4096, PROT_READ | PROT_WRITE, 0, 0) ||
		notified(SYS_mprotect, out, 4096, PROT_READ | PROT_EXEC, 0, 0))
		return 4;
	if (!notified(SYS_prctl, PR_SET_VMA, 0, in, 4096, 0) ||
		notified(SYS_prctl, PR_SET_VMA, 0, out, 4096, 0) ||
		!notified(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0) ||
		notified(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0))
		return 5;
	if (!notified(SYS_ptrace, 9999, 0, 0, 0, 0) || !notified(SYS_mlockall, 0, 0, 0, 0, 0) ||
		!notified(SYS_process_vm_readv, 1, 0, 0, 0, 0) ||
		notified(SYS_process_vm_readv, mark | 1, 0, 0, 0, 0) ||
		notified(SYS_getpid, 0, 0, 0, 0, 0) || notified(SYS_munmap, in, 0, 0, 0, 0))
		return 6;
	return 0;
}

static int try_all(const struct buf *code)
{
	struct sock_fprog p = {(unsigned short)(code->len / sizeof(struct sock_filter)),
		(struct sock_filter *)code->data};
	int r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &p) < 0)
		return 9;
	r = try_ranges();
	return r ? r : try_others();
}

static void watched_calls_are_notified(void **state)
{
	static const struct sock_filter allow = {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
	_cleanup_buf_ struct buf code = BUF_INIT;
	int status;
	pid_t pid;

	filter_watch(&code, &mapped);
	buf_put(&code, &allow, sizeof(allow));
	assert_int_equal(buf_error(&code), 0);
	pid = fork();
	if (pid == 0)
		_exit(try_all(&code));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void the_range_of_a_call_is_found(void **state)
{
	struct seccomp_data d = {.nr = SYS_madvise, .args = {0x5000, 0x1800}};
	uint64_t start = 0, end = 0;

	assert_true(filter_watched_range(&d, &start, &end));
	assert_int_equal(start, 0x5000);
	assert_int_equal(end, 0x7000);
	d = (struct seccomp_data){.nr = SYS_prctl, .args = {PR_SET_VMA, 0, 0x9000, 0x1000}};
	assert_true(filter_watched_range(&d, &start, &end));
	assert_int_equal(start, 0x9000);
	d.args[0] = PR_SET_DUMPABLE;
	assert_false(filter_watched_range(&d, &start, &end));
	d.nr = SYS_ptrace;
	assert_false(filter_watched_range(&d, &start, &end));
	assert_true(filter_watches(SYS_mremap));
	assert_false(filter_watches(SYS_munmap));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(watched_calls_are_notified),
		cmocka_unit_test(the_range_of_a_call_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
