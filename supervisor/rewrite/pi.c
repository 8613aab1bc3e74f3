// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A call to take a mutex goes through these steps; at the end of each the word is looked at, and
 * the task gets it if it is free by then:
 *
 *      SET     the bit is set
 *      SLEEP   FUTEX_WAIT_BITSET until the word changes or somebody is woken at it
 *
 * From one to the next the task makes its call again: the instruction is two bytes long.  So does
 * one that a signal has interrupted, and its handler runs in between, as the kernel has it.
 */
#include "supervisor/rewrite/pi.h"

#include <linux/futex.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/base.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/robust.h"

#define MAX_CIRCLE	      64 /* of owners that wait for each other */
#define MAX_ERRNO	      4095
#define ERESTARTSYS	      512 /* linux/errno.h of the kernel */
#define ERESTARTNOINTR	      513
#define ERESTART_RESTARTBLOCK 516
/*
 * The bit FUTEX_WAITERS is set; whatever the word was before, nobody is woken (no number is -2048).
 */
#define SET_WAITERS                                                                                \
	((uint32_t)(FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT) << 28 | FUTEX_OP_CMP_EQ << 24 | 31 << 12 | \
		0x800)

/* task->call.extra */
enum step { STEP_DONE, STEP_SET, STEP_SLEEP, STEP_WAKE, STEP_CONDITION, STEP_REQUEUE };

static int read_word(const struct task *task, uint64_t addr, uint32_t *word)
{
	struct iovec local = {word, sizeof(*word)},
		     there = {(void *)(uintptr_t)addr, sizeof(*word)};

	if (addr % sizeof(*word))
		return -EINVAL;
	return process_vm_readv(task->host, &local, 1, &there, 1, 0) == sizeof(*word) ? 0 : -EFAULT;
}

static int write_word(const struct task *task, uint64_t addr, uint32_t word)
{
	struct iovec local = {&word, sizeof(word)}, there = {(void *)(uintptr_t)addr, sizeof(word)};

	return process_vm_writev(task->host, &local, 1, &there, 1, 0) == sizeof(word) ? 0 : -EFAULT;
}

static int command(uint64_t op)
{
	return (int)op & FUTEX_CMD_MASK;
}

/* ---- who has it ----------------------------------------------------------------------------- */

/* NULL: nobody who lives. */
static const struct task *owner_of(const struct rewrite *rw, uint32_t word)
{
	uint32_t number = word & FUTEX_TID_MASK;
	const struct task *task = number < NUMBERS_MAX ? rw->tasks.all[number] : NULL;

	return task && !task->gone && !task->ends ? task : NULL;
}

static int take(const struct task *task, uint64_t addr, uint32_t word)
{
	return write_word(
		task, addr, (uint32_t)task->number | FUTEX_WAITERS | (word & FUTEX_OWNER_DIED));
}

/* Its number, 0 if @task sleeps for nobody. */
static uint32_t sleeps_for(const struct task *task)
{
	return task->call.row ? task->call.sleeps_for : 0;
}

/* Does @owner wait for somebody who waits for ... @task? */
static bool is_circle(const struct rewrite *rw, const struct task *owner, const struct task *task)
{
	for (int i = 0; i < MAX_CIRCLE && owner; i++) {
		if (owner == task)
			return true;
		owner = owner_of(rw, sleeps_for(owner));
	}
	return false;
}

/* ---- other calls in place of these ---------------------------------------------------------- */

static int set_waiters(struct task *task, struct user_regs_struct *regs, uint64_t addr)
{
	regs->rdi = 0; /* nobody sleeps there */
	regs->rsi = FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG;
	regs->rdx = 0;
	regs->r10 = 0;
	regs->r8 = addr;
	regs->r9 = SET_WAITERS;
	task->call.extra = STEP_SET;
	return 0;
}

/* The time that FUTEX_LOCK_PI is given is by the real clock; the others say by which. */
static int sleep_at(struct rewrite *rw, struct task *task, struct user_regs_struct *regs,
	uint64_t addr, uint32_t word)
{
	uint64_t flags = regs->rsi & (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);

	if (command(regs->rsi) == FUTEX_LOCK_PI)
		flags |= FUTEX_CLOCK_REALTIME;
	regs->rdi = addr;
	regs->rsi = FUTEX_WAIT_BITSET | flags;
	regs->rdx = word;
	regs->r9 = FUTEX_BITSET_MATCH_ANY;
	task->call.extra = STEP_SLEEP;
	task->call.sleeps_for = word & FUTEX_TID_MASK;
	rw->pi_sleepers++;
	return 0;
}

static int wake_at(
	struct task *task, struct user_regs_struct *regs, uint64_t addr, uint64_t n, enum step step)
{
	regs->rdi = addr;
	regs->rsi = FUTEX_WAKE | (regs->rsi & FUTEX_PRIVATE_FLAG);
	regs->rdx = n;
	task->call.extra = step;
	return 0;
}

/* It has happened: no call is made. */
static int done(struct task *task, struct user_regs_struct *regs)
{
	regs->orig_rax = (unsigned long long)-1;
	regs->rax = 0;
	task->call.extra = STEP_DONE;
	return 0;
}

/* ---- entries -------------------------------------------------------------------------------- */

static int enter_lock(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	bool try = command(regs->rsi) == FUTEX_TRYLOCK_PI;
	uint64_t addr = regs->rdi;
	const struct task *owner;
	uint32_t word;
	int r = read_word(task, addr, &word);

	if (r < 0)
		return r;
	owner = owner_of(rw, word);
	if (owner == task || (!try && is_circle(rw, owner, task)))
		return -EDEADLK;
	if (!(word & FUTEX_WAITERS))
		return set_waiters(task, regs, addr);
	if (!(word & FUTEX_TID_MASK))
		return take(task, addr, word) < 0 ? -EFAULT : done(task, regs);
	/* Who is killed a second time just before its end is not asked what it leaves. */
	if (!owner && robust_takes(task, addr))
		return take(task, addr, FUTEX_OWNER_DIED) < 0 ? -EFAULT : done(task, regs);
	if (!owner)
		return -ESRCH;
	if (try)
		return -EAGAIN;
	return sleep_at(rw, task, regs, addr, word);
}

/* Nobody but the owner changes the number, and nobody else the rest where the bit is set. */
static int enter_unlock(struct task *task, struct user_regs_struct *regs)
{
	uint64_t addr = regs->rdi;
	uint32_t word;
	int r = read_word(task, addr, &word);

	if (r < 0)
		return r;
	if ((word & FUTEX_TID_MASK) != (uint32_t)task->number)
		return -EPERM;
	if (write_word(task, addr, word & FUTEX_WAITERS) < 0)
		return -EFAULT;
	return word & FUTEX_WAITERS ? wake_at(task, regs, addr, 1, STEP_WAKE) : done(task, regs);
}

/* A condition variable's: sleeps at one word, and wants the mutex at the other when it wakes. */
static int enter_condition(struct task *task, struct user_regs_struct *regs)
{
	regs->rsi = FUTEX_WAIT_BITSET | (regs->rsi & (FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME));
	regs->r9 = FUTEX_BITSET_MATCH_ANY;
	task->call.extra = STEP_CONDITION;
	return 0;
}

/* The kernel would let them wait for the mutex without waking them. */
static int enter_requeue(struct task *task, struct user_regs_struct *regs)
{
	uint32_t word;
	int r = read_word(task, regs->rdi, &word);

	if (r < 0)
		return r;
	if (word != (uint32_t)regs->r9)
		return -EAGAIN;
	if ((int)regs->rdx != 1 || (int)regs->r10 < 0)
		return -EINVAL;
	return wake_at(
		task, regs, regs->rdi, MIN(1 + (uint64_t)(int)regs->r10, INT32_MAX), STEP_REQUEUE);
}

int pi_enter(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	switch (command(regs->rsi)) {
	case FUTEX_UNLOCK_PI:
		return enter_unlock(task, regs);
	case FUTEX_WAIT_REQUEUE_PI:
		return enter_condition(task, regs);
	case FUTEX_CMP_REQUEUE_PI:
		return enter_requeue(task, regs);
	default:
		return enter_lock(rw, task, regs);
	}
}

/* ---- exits ---------------------------------------------------------------------------------- */

static void again(const struct task *task, struct user_regs_struct *regs)
{
	regs->rip -= 2;
	regs->rax = (unsigned long long)compat_number(&task->compat, SYS_futex);
}

static bool interrupted(const struct user_regs_struct *regs)
{
	long long r = (long long)regs->rax;

	return r == -ERESTARTSYS || r == -ERESTARTNOINTR || r == -ERESTART_RESTARTBLOCK;
}

/* Back from SET or SLEEP. */
static void leave_lock(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	bool slept = sleeps_for(task) != 0;
	uint64_t addr = task->call.args[0];
	uint32_t word;
	int r = read_word(task, addr, &word);

	if (r < 0) {
		regs->rax = (unsigned long long)r;
		return;
	}
	if ((word & FUTEX_WAITERS) && (word & FUTEX_TID_MASK) && slept && !owner_of(rw, word))
		word = FUTEX_WAITERS | FUTEX_OWNER_DIED;
	if ((word & FUTEX_WAITERS) && !(word & FUTEX_TID_MASK)) {
		regs->rax = take(task, addr, word) < 0 ? (unsigned long long)-EFAULT : 0;
	} else if (interrupted(regs)) {
		regs->rax = (unsigned long long)-ERESTARTNOINTR;
	} else if (regs->rax <= -(unsigned long long)(MAX_ERRNO + 1) ||
		   regs->rax == (unsigned long long)-EAGAIN) {
		again(task, regs);
	}
}

/* Nobody was asleep, so nobody has to be asked next time. */
static void leave_unlock(struct task *task, struct user_regs_struct *regs)
{
	uint64_t addr = task->call.args[0];
	uint32_t word;

	if (regs->rax == 0 && read_word(task, addr, &word) == 0 && word == FUTEX_WAITERS)
		write_word(task, addr, 0);
	regs->rax = 0;
}

/*
 * Where the mutex can't be had at once the kernel, too, may say EAGAIN: the caller takes it
 * himself.
 */
static void leave_condition(struct task *task, struct user_regs_struct *regs)
{
	uint64_t addr = task->call.args[4];
	uint32_t word;

	if (interrupted(regs)) {
		regs->rax = (unsigned long long)-ERESTARTNOINTR;
	} else if (regs->rax == 0) {
		bool free = read_word(task, addr, &word) == 0 && (word & FUTEX_WAITERS) &&
			    !(word & FUTEX_TID_MASK);

		if (!free || take(task, addr, word) < 0)
			regs->rax = (unsigned long long)-EAGAIN;
	}
}

void pi_leave(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	switch ((enum step)task->call.extra) {
	case STEP_SET:
	case STEP_SLEEP:
		leave_lock(rw, task, regs);
		break;
	case STEP_WAKE:
		leave_unlock(task, regs);
		break;
	case STEP_CONDITION:
		leave_condition(task, regs);
		break;
	case STEP_DONE:
	case STEP_REQUEUE:
		break;
	}
}

/* ---- ends ----------------------------------------------------------------------------------- */

/*
 * Who is told comes out of its sleep and looks again.  Somebody else may have been woken for
 * nothing: so are all others, if it is one of those who sleep that ends.
 */
void pi_ended(struct rewrite *rw, struct task *task)
{
	bool slept = sleeps_for(task) != 0;
	size_t n = 0;

	task->ends = true;
	task->call.sleeps_for = 0;
	for (int i = 1; rw->pi_sleepers && i < NUMBERS_MAX; i++) {
		const struct task *one = rw->tasks.all[i];
		uint32_t owner = one && !one->gone ? sleeps_for(one) : 0;

		n += owner != 0;
		if (owner && (slept || owner == (uint32_t)task->number))
			ptrace(PTRACE_INTERRUPT, one->host, 0, 0);
	}
	rw->pi_sleepers = n;
}
