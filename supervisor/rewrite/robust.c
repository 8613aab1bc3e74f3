// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whoever waits for such a mutex sets FUTEX_WAITERS in the word before it sleeps, perhaps between
 * our look and our writing.  So that bit is always set: at worst somebody is woken for nothing.
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

/* A list as the kernel finds it: what is said of 64 bits holds for 32 as well. */
struct list {
	bool narrow; /* of 32-bit code */
	uint64_t at;
	struct robust_list_head head;
};

static bool get_link(const struct task *task, const struct list *l, uint64_t at, uint64_t *ret)
{
	*ret = 0;
	return get(task, at, ret, l->narrow ? sizeof(uint32_t) : sizeof(*ret));
}

static bool get_list(const struct task *task, struct list *ret)
{
	size_t len = 0;

	*ret = (struct list){0};
	return syscall(SYS_get_robust_list, task->host, &ret->at, &len) == 0 && ret->at &&
	       get(task, ret->at, &ret->head, sizeof(ret->head));
}

/* The list that 32-bit code has said, besides the other. */
static bool get_narrow_list(const struct task *task, struct list *ret)
{
	struct compat_robust_list head;

	*ret = (struct list){.narrow = true, .at = compat_robust_list(task->host)};
	if (!ret->at || !get(task, ret->at, &head, sizeof(head)))
		return false;
	ret->head.list.next = (void *)(uintptr_t)head.next;
	ret->head.futex_offset = head.futex_offset;
	ret->head.list_op_pending = (void *)(uintptr_t)head.pending;
	return true;
}

typedef void visit_fn(const struct task *task, const struct robust_list_head *head, uint64_t entry);

/* False if there is no mutex in it. */
static bool visit(const struct task *task, const struct list *l, visit_fn *fn)
{
	uint64_t entry = (uintptr_t)l->head.list.next;

	if ((entry & ~1ULL) == l->at && !l->head.list_op_pending)
		return false;
	for (int i = 0; (entry & ~1ULL) != l->at && i < ROBUST_LIST_LIMIT; i++) {
		fn(task, &l->head, entry);
		if (!get_link(task, l, entry & ~1ULL, &entry))
			return true;
	}
	entry = (uintptr_t)l->head.list_op_pending;
	if (entry & ~1ULL)
		fn(task, &l->head, entry);
	return true;
}

/*
 * Only tasks that run 32-bit code are asked for that one: to ask takes a call of that sort, which a
 * host may not have.
 */
static bool is_narrow(const struct task *task)
{
	struct user_regs_struct regs = {0};

	regs.cs = (unsigned long long)ptrace(
		PTRACE_PEEKUSER, task->host, offsetof(struct user_regs_struct, cs), 0);
	return regs.cs != (unsigned long long)-1 && compat_is_code(&regs);
}

/* All mutexes of its lists. */
static bool visit_all(const struct task *task, visit_fn *fn)
{
	struct list l;
	bool any = get_list(task, &l) && visit(task, &l, fn);

	if (is_narrow(task) && get_narrow_list(task, &l))
		any |= visit(task, &l, fn);
	return any;
}

void robust_prepare(const struct task *task)
{
	visit_all(task, give_up);
}

/* ---- exec ----------------------------------------------------------------------------------- */

/* PI mutexes stay as they are: nobody would be told. */
static void exchange(const struct task *task, const struct robust_list_head *head, uint64_t entry,
	pid_t from, pid_t to)
{
	uint64_t addr = (entry & ~1ULL) + (uint64_t)head->futex_offset;
	uint32_t word;

	if (!(entry & 1) && addr % sizeof(word) == 0 && get(task, addr, &word, sizeof(word)) &&
		(word & FUTEX_TID_MASK) == (uint32_t)from)
		put(task, addr, (uint32_t)to | FUTEX_WAITERS | (word & FUTEX_OWNER_DIED));
}

static void to_host(const struct task *task, const struct robust_list_head *head, uint64_t entry)
{
	exchange(task, head, entry, task->number, task->host);
}

static void to_number(const struct task *task, const struct robust_list_head *head, uint64_t entry)
{
	exchange(task, head, entry, task->host, task->number);
}

bool robust_before_exec(const struct task *task)
{
	return task->host == task->tgid && task->watch != WATCH_OFF && visit_all(task, to_host);
}

void robust_no_exec(const struct task *task)
{
	visit_all(task, to_number);
}

bool robust_takes(const struct task *task, uint64_t addr)
{
	uint64_t entry;
	struct list l;

	if (task->compat.is ? !get_narrow_list(task, &l) : !get_list(task, &l))
		return false;
	entry = (uintptr_t)l.head.list_op_pending;
	return entry && (entry & ~1ULL) + (uint64_t)l.head.futex_offset == addr;
}

void robust_watch(struct task *task, bool watch)
{
	unsigned long options = REWRITER_OPTIONS;

	if (task->watch == (watch ? WATCH_ON : WATCH_OFF))
		return;
	if (!watch)
		options &= ~(unsigned long)PTRACE_O_TRACEEXIT;
	if (ptrace(PTRACE_SETOPTIONS, task->host, 0, options) == 0)
		task->watch = watch ? WATCH_ON : WATCH_OFF;
}
