// SPDX-License-Identifier: GPL-2.0-or-later
/* The memory of old.c: of its own, shared, of files, of memfds, and what may not be read. */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>

#include "call.h"

#define PAGE 4096
#define GUARD_INSTALL 102 /* MADV_GUARD_INSTALL, Linux 6.13 */
#define SET_VMA 0x53564d41 /* PR_SET_VMA */

static char own[3 * PAGE] __attribute__((aligned(PAGE)));
static char *shared, *of_file, *whole_file, *of_memfd, *read_only, *guarded, *heap;
static int memfd;

static char *map(long size, int protection, int flags, int fd)
{
#ifdef __x86_64__
	long r = call6(SYS_mmap, 0, size, protection, flags, fd, 0);
#else
	long r = call6(SYS_mmap2, 0, size, protection, flags, fd, 0);
#endif

	check((unsigned long)r < -4096UL, "mmap");
	return (char *)r;
}

static int full(int fd)
{
	check(call(SYS_write, fd, (long)pattern, sizeof(pattern), 0) == sizeof(pattern), "write");
	return fd;
}

static void set_up(void)
{
	const int rw = PROT_READ | PROT_WRITE;

	for (unsigned i = 0; i < sizeof(own); i += PAGE)
		own[i] = (char)('a' + i / PAGE);
	shared = map(2 * PAGE, rw, MAP_SHARED | MAP_ANONYMOUS, -1);
	shared[PAGE] = 's';
	of_file = map(PAGE, rw, MAP_PRIVATE, full(open_at("/tmp/private", O_RDWR | O_CREAT)));
	of_file[0] = 'A';
	whole_file = map(PAGE, rw, MAP_SHARED, full(open_at("/tmp/shared", O_RDWR | O_CREAT)));
	whole_file[0] = 'A';
	memfd = full((int)call(SYS_memfd_create, (long)"memfd", MFD_ALLOW_SEALING, 0, 0));
	of_memfd = map(PAGE, rw, MAP_SHARED, memfd);
	of_memfd[1] = 'N';
	check(call(SYS_fcntl, memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL, 0) == 0, "seals");
	read_only = map(PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	read_only[9] = 'r';
	call(SYS_mprotect, (long)read_only, PAGE, PROT_READ, 0);
	guarded = map(3 * PAGE, rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	guarded[0] = guarded[2 * PAGE] = 'g';
	if (call(SYS_madvise, (long)guarded + PAGE, PAGE, GUARD_INSTALL, 0) != 0)
		call(SYS_mprotect, (long)guarded + PAGE, PAGE, PROT_NONE, 0);
	call6(SYS_prctl, SET_VMA, 0, (long)guarded, 3 * PAGE, (long)"guarded", 0);
	heap = (char *)call(SYS_brk, 0, 0, 0, 0);
	check(call(SYS_brk, (long)heap + PAGE, 0, 0, 0) == (long)heap + PAGE, "brk");
	heap[0] = 'h';
}

static void look(void)
{
	int null = open_at("/dev/null", O_RDWR), pipe[2];

	for (unsigned i = 0; i < sizeof(own); i++)
		check(own[i] == (i % PAGE ? 0 : (char)('a' + i / PAGE)), "memory");
	check(same(pattern, PATTERN, sizeof(pattern)), "data");
	check(shared[PAGE] == 's' && shared[0] == 0, "shared memory");
	check(of_file[0] == 'A' && same(of_file + 1, PATTERN + 1, sizeof(PATTERN) - 1),
		"private mapping");
	check(begins(open_at("/tmp/private", O_RDONLY), PATTERN, sizeof(PATTERN)), "its file");
	check(whole_file[0] == 'A' && same(whole_file + 1, PATTERN + 1, sizeof(PATTERN) - 1),
		"shared mapping");
	whole_file[1] = 'N';
	check(begins(open_at("/tmp/shared", O_RDONLY), "AN old", 6), "its file");
	of_memfd[0] = 'A';
	check(begins(memfd, "AN old", 6), "memfd");
	check(call(SYS_fcntl, memfd, F_GET_SEALS, 0, 0) == (F_SEAL_SHRINK | F_SEAL_SEAL), "seals");
	check(read_only[9] == 'r', "read-only memory");
	/* The kernel reads for us, so that nothing has to be caught. */
	check(call(SYS_pipe, (long)pipe, 0, 0, 0) == 0 && null >= 0, "pipe");
	check(call(SYS_read, open_at("/proc/self/exe", O_RDONLY), (long)read_only, 1, 0) == -EFAULT,
		"read-only memory");
	check(call(SYS_write, pipe[1], (long)guarded + PAGE, 1, 0) == -EFAULT, "guard");
	check(guarded[0] == 'g' && guarded[2 * PAGE] == 'g', "beside the guard");
	check(heap[0] == 'h' && call(SYS_brk, 0, 0, 0, 0) == (long)heap + PAGE, "heap");
}

const struct part part_memory = {set_up, look};
