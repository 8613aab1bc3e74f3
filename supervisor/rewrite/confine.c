// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * confine - a program that gives itself seccomp filters.
 *
 * A list of its own stands on top of the session's filter: the kernel asks both, and what is
 * stricter counts. Strict mode can't be had by a task that has a filter already, which all of a
 * session have; so a filter takes its place that says the same (ckpt_filters_strict), as under
 * kernel names.  The task installs it itself, from its own stack: who changed it there meanwhile
 * would only be less confined by what is its own. prctl(2) becomes seccomp(2), so that one call
 * alone installs filters.
 */
#include <assert.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/rewrite.h"

#define RED_ZONE 128 /* below the stack's end, a function's own: x86-64 psABI */
#define MAX_CODE 32

static int install(struct user_regs_struct *regs, uint64_t program)
{
	regs->orig_rax = SYS_seccomp;
	regs->rdi = SECCOMP_SET_MODE_FILTER;
	regs->rsi = 0;
	regs->rdx = program;
	return 0;
}

/* struct sock_fprog of 32-bit programs, in the room of the other one. */
static void narrow(struct sock_fprog *program, uint64_t filter)
{
	struct {
		uint16_t len;
		uint32_t filter;
	} p = {program->len, (uint32_t)filter};

	memcpy(program, &p, sizeof(p));
}

static int be_strict(const struct task *task, struct user_regs_struct *regs)
{
	struct {
		struct sock_fprog program;
		struct sock_filter code[MAX_CODE];
	} there = {0};
	uint64_t at = (regs->rsp - RED_ZONE - sizeof(there)) & ~(uint64_t)15;
	size_t n;
	const struct sock_filter *code = ckpt_filters_strict(&n);

	assert(n <= MAX_CODE);
	memcpy(there.code, code, n * sizeof(*code));
	there.program.len = (unsigned short)n;
	there.program.filter = (struct sock_filter *)(uintptr_t)(at + sizeof(there.program));
	if (task->compat.is)
		narrow(&there.program, at + sizeof(there.program));
	return task_poke(task, at, &there, sizeof(there)) < 0 ? -EFAULT : install(regs, at);
}

/* PR_SET_SECCOMP */
static int enter_prctl(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	switch ((int)regs->rsi) {
	case SECCOMP_MODE_STRICT:
		return be_strict(task, regs);
	case SECCOMP_MODE_FILTER:
		return install(regs, regs->rdx);
	default:
		return -EINVAL;
	}
}

/*
 * SECCOMP_SET_MODE_STRICT; and SECCOMP_FILTER_FLAG_TSYNC, for the result may be a thread that is
 * unlike the others.
 */
static int enter_seccomp(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if ((int)regs->rdi != SECCOMP_SET_MODE_STRICT)
		return 0;
	return regs->rsi || regs->rdx ? -EINVAL : be_strict(task, regs);
}

const struct rewrite_call confine_calls[] = {
	{SYS_prctl, .enter = enter_prctl},
	{SYS_seccomp, .result = true, .enter = enter_seccomp},
};
const size_t confine_n_calls = ARRAY_SIZE(confine_calls);
