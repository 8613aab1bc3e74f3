// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of i386 that 64-bit code makes: only the lower halves of its registers count, and all are
 * kept.
 */
#include "tests/rows/rows.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define UPPER 0x1234567800000000ULL

/* The five registers afterwards are looked at, too. */
static long interrupt(long nr, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e)
{
	uint64_t is[5] = {a | UPPER, b | UPPER, c | UPPER, d | UPPER, e | UPPER};
	uint64_t was[5];
	long r;

	memcpy(was, is, sizeof(was));
	__asm__ volatile("int $0x80"
			 : "=a"(r), "+b"(is[0]), "+c"(is[1]), "+d"(is[2]), "+S"(is[3]), "+D"(is[4])
			 : "a"(nr)
			 : "memory", "r8", "r9", "r10", "r11");
	ROW_CHECK(memcmp(was, is, sizeof(was)) == 0);
	return r;
}

static void by_interrupt(void)
{
	char *low = mmap(
		NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	int status;
	long pid;

	ROW_CHECK(low != MAP_FAILED);
	ROW_CHECK(interrupt(20 /* getpid */, 0, 0, 0, 0, 0) == row_self);
	ROW_CHECK(interrupt(64 /* getppid */, 0, 0, 0, 0, 0) == getppid());
	ROW_CHECK(interrupt(37 /* kill */, (uint32_t)row_child, 0, 0, 0, 0) == 0);
	ROW_CHECK(interrupt(37, ROW_NOBODY, 0, 0, 0, 0) == -ESRCH);
	ROW_CHECK(interrupt(57 /* setpgid */, (uint32_t)row_child, (uint32_t)row_child, 0, 0, 0) ==
		  0);
	ROW_CHECK(interrupt(132 /* getpgid */, (uint32_t)row_child, 0, 0, 0, 0) == row_child);
	ROW_CHECK(interrupt(57, ROW_NOBODY, 0, 0, 0, 0) == -ESRCH);
	pid = interrupt(2 /* fork */, 0, 0, 0, 0, 0);
	if (pid == 0)
		_exit(getpid() == row_child + 1 ? 6 : 7);
	ROW_CHECK(pid == row_child + 1);
	ROW_CHECK(interrupt(7 /* waitpid */, (uint32_t)pid, (uintptr_t)low, 0, 0, 0) == pid);
	memcpy(&status, low, sizeof(status));
	ROW_CHECK(WEXITSTATUS(status) == 6);
	/* A path that is only looked at is found; its host's name would be out of reach. */
	ROW_CHECK(close(open("/tmp/interrupt", O_CREAT | O_RDWR, 0600)) == 0);
	strcpy(low, "/tmp/interrupt");
	ROW_CHECK(interrupt(33 /* access */, (uintptr_t)low, R_OK, 0, 0, 0) == 0);
	ROW_CHECK(interrupt(5 /* open */, (uintptr_t)low, O_RDWR, 0, 0, 0) >= 0);
	ROW_CHECK(interrupt(10 /* unlink */, (uintptr_t)low, 0, 0, 0, 0) == -ENOMEM);
	ROW_CHECK(unlink("/tmp/interrupt") == 0);
	ROW_CHECK(interrupt(26 /* ptrace */, 0, 0, 0, 0, 0) == -EPERM);
}

const struct row other_rows[] = {
	{SYS_getpid, 0x80, by_interrupt}, {SYS_getpid, 0x50f, row_registers}};
const size_t n_other_rows = N(other_rows);
