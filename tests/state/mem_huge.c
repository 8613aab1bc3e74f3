// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Huge pages (MAP_HUGETLB): those in use with their contents, those not in use as they were.  Where
 * the host has none to give, only areas that reserve none.  And a memfd of them that is not mapped
 * while it is moved.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "tests/state/state.h"

#define HUGE	 (2UL << 20)
#define PAGES	 3
#define RESERVED 64

static char *map(size_t pages, int flags)
{
	return mmap(NULL, pages * HUGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (21 << MAP_HUGE_SHIFT) | flags, -1, 0);
}

/* What smaps says of the mapping at @p. */
static bool is_huge(const char *p)
{
	unsigned long start, end, kb = 0, here = (unsigned long)(uintptr_t)p;
	FILE *f = fopen("/proc/self/smaps", "r");
	bool inside = false;
	char line[512];

	STATE_CHECK(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = here >= start && here < end;
		if (inside && sscanf(line, "KernelPageSize: %lu", &kb) == 1)
			break;
	}
	fclose(f);
	return kb == HUGE / 1024;
}

static void fill(char *p, int seed)
{
	for (size_t i = 0; i < HUGE; i++)
		p[i] = (char)(i * 2654435761u >> 24) + (char)seed;
}

static void check(const char *p, int seed)
{
	for (size_t i = 0; i < HUGE; i++)
		STATE_CHECK(p[i] == (char)((char)(i * 2654435761u >> 24) + (char)seed));
}

/* The memfd's first page has something, if there are pages for it. */
static int make_memfd(bool *ret_filled)
{
	int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB | (21U << MAP_HUGE_SHIFT));
	char *p;

	STATE_CHECK(fd >= 0 || errno == EINVAL || errno == ENODEV);
	if (fd < 0)
		return fd;
	STATE_CHECK(ftruncate(fd, 2 * HUGE) == 0);
	p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	*ret_filled = p != MAP_FAILED;
	if (*ret_filled) {
		fill(p, 5);
		STATE_CHECK(munmap(p, HUGE) == 0);
	}
	return fd;
}

static void check_memfd(int fd, bool filled)
{
	struct stat st;
	char *p;

	STATE_CHECK(fstat(fd, &st) == 0 && st.st_size == 2 * HUGE && st.st_blksize == HUGE);
	if (!filled)
		return;
	p = mmap(NULL, HUGE, PROT_READ, MAP_SHARED, fd, 0);
	STATE_CHECK(p != MAP_FAILED);
	check(p, 5);
	STATE_CHECK(munmap(p, HUGE) == 0);
}

int main(int argc, char **argv)
{
	char *used = map(PAGES, 0), *spare = map(RESERVED, MAP_NORESERVE);

	bool filled = false;
	int memfd;

	STATE_CHECK(spare != MAP_FAILED || errno == EINVAL || errno == ENODEV);
	memfd = make_memfd(&filled);
	if (used != MAP_FAILED) {
		fill(used, 1);
		fill(used + 2 * HUGE, 3);
	}

	state_ready(argc, argv);

	if (memfd >= 0)
		check_memfd(memfd, filled);
	STATE_CHECK(spare == MAP_FAILED || is_huge(spare));
	if (used != MAP_FAILED) {
		STATE_CHECK(is_huge(used));
		check(used, 1);
		check(used + 2 * HUGE, 3);
		for (size_t i = 0; i < HUGE; i++)
			STATE_CHECK(used[HUGE + i] == 0);
		fill(used + HUGE, 2);
		check(used + HUGE, 2);
	}
	STATE_CHECK(spare == MAP_FAILED || munmap(spare, RESERVED * HUGE) == 0);
	return state_ok();
}
