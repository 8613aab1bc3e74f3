// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whoever waits for such a mutex sets FUTEX_WAITERS in the word before it sleeps, perhaps between our
 * look and our writing.  So that bit is always set: at worst somebody is woken for nothing.
 */
#include "supervisor/rewrite/robust.h"

#include <linux/futex.h>
#include <sys/uio.h>

#include "base/base.h"
#include "supervisor/rewrite/pi.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/tasks.h"

static bool get(const struct task *task, uint64_t addr, void *data, size_t len)
{
	struct iovec local = {data, len}, there = {(void *)(uintptr_t)addr, len};

	return process_vm_readv(task->host, &local, 1, &there, 1, 0) == (ssize_t)len;
}

static void rename_owner(const struct task *task, uint64_t addr)
{
	struct iovec local, there;
	uint32_t word;

	if (addr % sizeof(word) || !get(task, addr, &word, sizeof(word)) ||
		(word & FUTEX_TID_MASK) != (uint32_t)task->number)
		return;
	word = (uint32_t)task->host | FUTEX_WAITERS | (word & FUTEX_OWNER_DIED);
	local = (struct iovec){&word, sizeof(word)};
	there = (struct iovec){(void *)(uintptr_t)addr, sizeof(word)};
	process_vm_writev(task->host, &local, 1, &there, 1, 0);
}

/* The lowest bit says that it is a PI mutex. */
static void give_up(const struct task *task, const struct robust_list_head *head, uint64_t entry)
{
	uint64_t addr = (entry & ~1ULL) + (uint64_t)head->futex_offset;

	if (entry & 1)
		pi_give_up(task, addr);
	else
		rename_owner(task, addr);
}

void robust_prepare(const struct task *task)
{
	struct robust_list_head head;
	uint64_t at = 0, entry;
	size_t len = 0;

	if (syscall(SYS_get_robust_list, task->host, &at, &len) < 0 || !at ||
		!get(task, at, &head, sizeof(head)))
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

void robust_watch(const struct task *task, bool watch)
{
	unsigned long options = REWRITER_OPTIONS;

	if (!watch)
		options &= ~(unsigned long)PTRACE_O_TRACEEXIT;
	ptrace(PTRACE_SETOPTIONS, task->host, 0, options);
}
