// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The owner is told to stop and looked at until it has, or sleeps in the kernel: either way it makes
 * no step of its own before the rewriter has seen its stop, which is after this.
 */
#include "supervisor/rewrite/pi.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/base.h"
#include "supervisor/rewrite/rewrite.h"

#define LOOKS 10000

static bool read_word(const struct task *task, uint64_t addr, uint32_t *word)
{
	struct iovec local = {word, sizeof(*word)},
		     there = {(void *)(uintptr_t)addr, sizeof(*word)};

	return addr % sizeof(*word) == 0 &&
	       process_vm_readv(task->host, &local, 1, &there, 1, 0) == sizeof(*word);
}

static void write_word(const struct task *task, uint64_t addr, uint32_t word)
{
	struct iovec local = {&word, sizeof(word)}, there = {(void *)(uintptr_t)addr, sizeof(word)};

	process_vm_writev(task->host, &local, 1, &there, 1, 0);
}

static bool runs(pid_t host)
{
	pid_t parent;
	char state;

	return tasks_look(host, &state, &parent) && state == 'R';
}

static void keep_from_running(pid_t host)
{
	ptrace(PTRACE_INTERRUPT, host, 0, 0);
	for (int i = 0; i < LOOKS; i++) {
		siginfo_t info = {0};

		/* The status stays for the rewriter. */
		if (waitid(P_PID, (id_t)host, &info,
			    WSTOPPED | WEXITED | WNOHANG | WNOWAIT | __WALL) < 0 ||
			info.si_pid || !runs(host))
			return;
		sched_yield();
	}
}

/*
 * Whose number is in @word.  One that is both the host's for one task and the session's for another is
 * taken for the latter where nobody waits yet.
 */
static const struct task *owner_of(const struct tasks *t, uint32_t word, bool *ret_shown)
{
	pid_t number = (pid_t)(word & FUTEX_TID_MASK);
	const struct task *shown = tasks_find(t, number);
	const struct task *named = number > 0 && number < NUMBERS_MAX ? t->all[number] : NULL;

	*ret_shown = shown && !shown->gone && (!named || word & FUTEX_WAITERS);
	return *ret_shown ? shown : named && !named->gone ? named : NULL;
}

/* Somebody begins to wait for the mutex at @addr, or its owner asks the kernel to give it up. */
static void show_owner(const struct tasks *t, const struct task *task, uint64_t addr)
{
	const struct task *owner;
	uint32_t word, now;
	bool shown;

	for (int i = 0; i < LOOKS && read_word(task, addr, &word); i++) {
		owner = owner_of(t, word, &shown);
		if (!owner || shown)
			return;
		if (owner != task)
			keep_from_running(owner->host);
		if (!read_word(task, addr, &now))
			return;
		if (now != word)
			continue;
		write_word(task, addr,
			(uint32_t)owner->host | FUTEX_WAITERS | (word & FUTEX_OWNER_DIED));
		return;
	}
}

int pi_enter(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	switch ((int)regs->rsi & FUTEX_CMD_MASK) {
	case FUTEX_WAIT_REQUEUE_PI:
	case FUTEX_CMP_REQUEUE_PI:
		show_owner(&rw->tasks, task, regs->r8);
		break;
	default:
		show_owner(&rw->tasks, task, regs->rdi);
	}
	return 0;
}

/*
 * Between our look and the kernel's somebody may have taken a mutex that was free, with a number which
 * the kernel does not know.  Then the call is made again: the instruction is two bytes long.
 */
static bool again(const struct tasks *t, const struct task *task, uint64_t addr,
	struct user_regs_struct *regs)
{
	uint32_t word;
	bool shown;

	if (regs->rax != (unsigned long long)-ESRCH || !read_word(task, addr, &word) ||
		((word & FUTEX_TID_MASK) && !owner_of(t, word, &shown)))
		return false;
	regs->rip -= 2;
	regs->rax = SYS_futex;
	return true;
}

/* Who got it without waiting has the host's number there, and nothing that says so. */
void pi_leave(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	int op = (int)task->call.args[1] & FUTEX_CMD_MASK;
	uint64_t addr = task->call.args[op == FUTEX_WAIT_REQUEUE_PI ? 4 : 0];
	uint32_t word;

	if (op == FUTEX_UNLOCK_PI || op == FUTEX_CMP_REQUEUE_PI)
		return;
	if (again(&rw->tasks, task, addr, regs) || regs->rax != 0)
		return;
	if (read_word(task, addr, &word) && (word & FUTEX_TID_MASK) == (uint32_t)task->host)
		write_word(task, addr, word | FUTEX_WAITERS);
}
