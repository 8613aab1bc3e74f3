// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in reserve.h. */
#include "ckpt/memory/reserve.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"

#define PART	 4 /* of what can be spared */
#define MORE	 8 /* a part of what was counted that may have been added since */
#define MAX_FILE (64 * 1024)
#define GROUPS	 "/sys/fs/cgroup"
#define AT_ONCE	 (64UL << 20)
#define PIECE	 (64 * 1024) /* not so much that malloc(3) maps it by itself */
#define MAX_PIECES 64
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* asm-generic/mman-common.h, 5.14 */
#endif

/* ---- how much ------------------------------------------------------------------------------ */

/* The number in a file, behind @word if that is given; UINT64_MAX if there is none ("max"). */
static uint64_t read_number(const char *path, const char *word)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *at;
	uint64_t n;

	if (io_read_file(AT_FDCWD, path, MAX_FILE, &text) < 0 || !buf_cstr(&text))
		return UINT64_MAX;
	at = word ? strstr(buf_cstr(&text), word) : buf_cstr(&text);
	if (!at || sscanf(at + (word ? strlen(word) : 0), "%" SCNu64, &n) != 1)
		return UINT64_MAX;
	return n;
}

/* Where a version of control groups tells of memory. */
struct groups {
	const char *line; /* of /proc/self/cgroup: what stands in front of the path */
	const char *top, *max, *now;
};

static const struct groups versions[] = {
	{"0::", GROUPS, "memory.max", "memory.current"},
	{":memory:", GROUPS "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"},
};

/* What the control group @path and those it is in can spare. */
static uint64_t spared_by_groups(const struct groups *g, char *path)
{
	uint64_t least = UINT64_MAX;

	for (char *end = path + strlen(path); end; end = strrchr(path, '/')) {
		char file[PATH_MAX];
		uint64_t max, now;

		*end = '\0';
		snprintf(file, sizeof(file), "%s%s/%s", g->top, path, g->max);
		max = read_number(file, NULL);
		snprintf(file, sizeof(file), "%s%s/%s", g->top, path, g->now);
		now = read_number(file, NULL);
		if (max == UINT64_MAX || now == UINT64_MAX)
			continue;
		max -= MIN(max, now);
		least = MIN(least, max);
	}
	return least;
}

/* How many bytes may be put aside now. */
static uint64_t find_room(void)
{
	uint64_t kb = read_number("/proc/meminfo", "MemAvailable:"), least;

	if (kb == UINT64_MAX)
		return 0;
	least = kb * 1024;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		uint64_t spared;
		char *own;

		if (io_read_file(AT_FDCWD, "/proc/self/cgroup", MAX_FILE, &text) < 0 ||
			!buf_cstr(&text))
			continue;
		own = strstr(buf_cstr(&text), versions[i].line);
		if (!own)
			continue;
		own += strlen(versions[i].line);
		own[strcspn(own, "\n")] = '\0';
		spared = spared_by_groups(&versions[i], own);
		least = MIN(least, spared);
	}
	return least / PART;
}

/* ---- the reserve --------------------------------------------------------------------------- */

static uint8_t *map(size_t size)
{
	uint8_t *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, size, MADV_HUGEPAGE);
	/* The freeze forks now and then, and who is born then has no use for it. */
	madvise(p, size, MADV_DONTFORK);
	return p;
}

static void touch(uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size; at += AT_ONCE)
		if (madvise(data + at, MIN(AT_ONCE, size - at), MADV_POPULATE_WRITE) < 0)
			break;
}

void ckpt_reserve_make(struct ckpt_reserve *ret, uint64_t bytes)
{
	uint64_t room = find_room();
	size_t size = ALIGN_DOWN(MIN(bytes + bytes / MORE, room), PAGE_SIZE);

	ret->data = size ? map(size) : NULL;
	ret->size = ret->data ? size : 0;
	ret->more = room - ret->size;
	touch(ret->data, ret->size);
}

void *ckpt_reserve_map(size_t size, size_t touched)
{
	uint8_t *data = map(size);

	touched = ALIGN_UP(MIN(size, touched), PAGE_SIZE);
	if (data && touched <= find_room())
		touch(data, touched);
	return data;
}

/* malloc(3) asks the kernel for PIECE bytes and @bytes more as soon as it has not got PIECE. */
void ckpt_reserve_heap(size_t bytes)
{
	uint8_t *pieces[MAX_PIECES], *end = sbrk(0), *from;
	size_t n = 0;

	if (bytes > INT_MAX / 2 || bytes > find_room())
		return;
	mallopt(M_TOP_PAD, (int)bytes);
	mallopt(M_TRIM_THRESHOLD, 2 * (int)bytes);
	while (n < MAX_PIECES && sbrk(0) == end && (pieces[n] = malloc(PIECE)))
		n++;
	if (sbrk(0) > (void *)end && n) {
		from = (uint8_t *)ALIGN_DOWN((uintptr_t)pieces[n - 1], PAGE_SIZE);
		touch(from, (size_t)((uint8_t *)sbrk(0) - from));
	}
	while (n)
		free(pieces[--n]);
	mallopt(M_TOP_PAD, PIECE);
}

void ckpt_reserve_fini(struct ckpt_reserve *r)
{
	if (r->data)
		munmap(r->data, r->size);
	*r = (struct ckpt_reserve){0};
}

uint8_t *ckpt_reserve_draw(struct ckpt_reserve *r, size_t size)
{
	uint8_t *data = r->data;

	if (size <= r->size) {
		r->size -= size;
		r->data = r->size ? r->data + size : NULL;
		return data;
	}
	if (size > r->more)
		return NULL;
	r->more -= size;
	return map(size);
}
