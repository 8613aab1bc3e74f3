// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whoever waits for such a mutex sets FUTEX_WAITERS in the word before it sleeps, perhaps between our
 * look and our writing.  So that bit is always set: at worst somebody is woken for nothing.
 */
#include "supervisor/rewrite/robust.h"

#include <linux/futex.h>
#include <sys/uio.h>

#include "base/base.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/tasks.h"

static bool get(const struct task *task, uint64_t addr, void *data, size_t len)
{
	struct iovec local = {data, len}, there = {(void *)(uintptr_t)addr, len};

	return process_vm_readv(task->host, &local, 1, &there, 1, 0) == (ssize_t)len;
}

static void put(const struct task *task, uint64_t addr, uint32_t word)
{
	struct iovec local = {&word, sizeof(word)}, there = {(void *)(uintptr_t)addr, sizeof(word)};

	process_vm_writev(task->host, &local, 1, &there, 1, 0);
}

/* The lowest bit says that it is a PI mutex: of those the kernel is to know nothing (pi.h). */
static void give_up(const struct task *task, const struct robust_list_head *head, uint64_t entry)
{
	uint64_t addr = (entry & ~1ULL) + (uint64_t)head->futex_offset;
	uint32_t word;

	if (addr % sizeof(word) || !get(task, addr, &word, sizeof(word)) ||
		(word & FUTEX_TID_MASK) != (uint32_t)task->number)
		return;
	if (entry & 1)
		put(task, addr, FUTEX_WAITERS | FUTEX_OWNER_DIED);
	else
		put(task, addr, (uint32_t)task->host | FUTEX_WAITERS | (word & FUTEX_OWNER_DIED));
}

static bool get_head(const struct task *task, uint64_t *ret_at, struct robust_list_head *ret)
{
	size_t len = 0;

	*ret_at = 0;
	return syscall(SYS_get_robust_list, task->host, ret_at, &len) == 0 && *ret_at &&
	       get(task, *ret_at, ret, sizeof(*ret));
}

void robust_prepare(const struct task *task)
{
	struct robust_list_head head;
	uint64_t at, entry;

	if (!get_head(task, &at, &head))
		return;
	entry = (uintptr_t)head.list.next;
	for (int i = 0; (entry & ~1ULL) != at && i < ROBUST_LIST_LIMIT; i++) {
		give_up(task, &head, entry);
		if (!get(task, entry & ~1ULL, &entry, sizeof(entry)))
			return;
	}
	entry = (uintptr_t)head.list_op_pending;
	if (entry & ~1ULL)
		give_up(task, &head, entry);
}

bool robust_takes(const struct task *task, uint64_t addr)
{
	struct robust_list_head head;
	uint64_t at, entry;

	if (!get_head(task, &at, &head))
		return false;
	entry = (uintptr_t)head.list_op_pending;
	return entry && (entry & ~1ULL) + (uint64_t)head.futex_offset == addr;
}

void robust_watch(const struct task *task, bool watch)
{
	unsigned long options = REWRITER_OPTIONS;

	if (!watch)
		options &= ~(unsigned long)PTRACE_O_TRACEEXIT;
	ptrace(PTRACE_SETOPTIONS, task->host, 0, options);
}
