// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in clocks.h. */
#include "supervisor/rewrite/clocks.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/tasks.h"

#define MAX_VDSO  (4 * PAGE_SIZE)
#define WORD	  sizeof(long)
#define MAX_PAGES 2048 /* of arguments and environment; the kernel allows 6 MiB */

int64_t clocks_offset(const struct clocks *c, int clock)
{
	switch (clock) {
	case CLOCK_MONOTONIC:
	case CLOCK_MONOTONIC_RAW:
	case CLOCK_MONOTONIC_COARSE:
		return c->offset.monotonic_ns;
	case CLOCK_BOOTTIME:
	case CLOCK_BOOTTIME_ALARM:
		return c->offset.boottime_ns;
	default:
		return 0;
	}
}

bool clocks_find_vdso(int host, uint64_t *ret_start, uint64_t *ret_end)
{
	unsigned long start, end;
	char path[32], line[512];
	bool found = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", host);
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, " [vdso]\n") && sscanf(line, "%lx-%lx", &start, &end) == 2;
	if (f)
		fclose(f);
	if (!found)
		return false;
	*ret_start = start;
	*ret_end = end;
	return true;
}

int clocks_begin(struct clocks *c, const struct ckpt_clocks *offset)
{
	_cleanup_free_ uint8_t *own = NULL;
	uint64_t start, end;

	*c = (struct clocks){
		.offset = *offset, .carried = offset->monotonic_ns || offset->boottime_ns};
	if (!c->carried || !clocks_find_vdso(getpid(), &start, &end))
		return 0;
	c->vdso_len = end - start;
	if (c->vdso_len > MAX_VDSO)
		return -ENOSYS;
	own = malloc(c->vdso_len);
	if (!own)
		return -ENOMEM;
	memcpy(own, (const void *)(uintptr_t)start, c->vdso_len);
	return ckpt_vdso_continue(own, c->vdso_len, offset);
}

/*
 * What a program that begins finds on its stack, in words of @width: the number of its arguments,
 * pointers to them and to its environment, each with a NULL behind, and pairs (the auxiliary
 * vector).  Of the latter the address of its vDSO; 0: there is none.
 */
static uint64_t told_vdso(const struct task *task, uint64_t sp, size_t width)
{
	uint64_t skip = 0, type = AT_NULL, word;
	uint8_t page[PAGE_SIZE];
	enum { COUNT, ARGUMENTS, ENVIRONMENT, TYPE, VALUE } now = COUNT;

	for (int pages = 0; pages < MAX_PAGES; pages++) {
		size_t n = PAGE_SIZE - sp % PAGE_SIZE;

		if (task_peek(task, sp, page, n) < 0)
			return 0;
		sp += n;
		for (size_t i = 0; i < n; i += width) {
			word = 0;
			memcpy(&word, page + i, width);
			if (now == COUNT) {
				skip = word;
				now = ARGUMENTS;
			} else if (now == ARGUMENTS) {
				now = skip-- ? ARGUMENTS : ENVIRONMENT;
			} else if (now == ENVIRONMENT) {
				now = word ? ENVIRONMENT : TYPE;
			} else if (now == TYPE) {
				type = word;
				now = VALUE;
			} else {
				if (type == AT_NULL || type == AT_SYSINFO_EHDR)
					return type ? word : 0;
				now = TYPE;
			}
		}
	}
	return 0;
}

/* As long as ours is; of a 32-bit program's no more is changed than what its tables have. */
static size_t peek_vdso(const struct clocks *c, const struct task *task, uint64_t start,
	bool narrow, uint8_t ret[MAX_VDSO])
{
	size_t most = narrow ? MAX_VDSO : c->vdso_len, len = 0;

	while (len < most && task_peek(task, start + len, ret + len, PAGE_SIZE) == 0)
		len += PAGE_SIZE;
	return len;
}

void clocks_execed(const struct clocks *c, struct task *task)
{
	uint8_t was[MAX_VDSO], is[MAX_VDSO];
	struct user_regs_struct regs;
	uint64_t start, word;
	bool narrow;
	size_t len;

	task->vdso = 0;
	if (!c->carried || ptrace(PTRACE_GETREGS, task->host, 0, &regs) < 0)
		return;
	narrow = compat_is_code(&regs);
	start = told_vdso(task, regs.rsp, narrow ? 4 : 8);
	len = start ? peek_vdso(c, task, start, narrow, was) : 0;
	memcpy(is, was, len);
	if (!len || ckpt_vdso_continue(is, len, &c->offset) < 0)
		return;
	/* Word by word: this is no memory that may be written to, but by who traces. */
	for (size_t at = 0; at < len; at += WORD) {
		memcpy(&word, is + at, WORD);
		if (memcmp(is + at, was + at, WORD) != 0)
			ptrace(PTRACE_POKEDATA, task->host, start + at, word);
	}
	task->vdso = start;
}
