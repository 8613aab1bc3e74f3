// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The theory of operation is in confine.h.
 *
 * Strict mode can't be had by a task that has a filter already, which all of a session have; so a
 * filter takes its place that says the same (ckpt_filters_strict), as under kernel names.
 *
 * By a call of i386 a task installs filters itself, as they are, and the table is foreign from then
 * on.  Strict mode is installed from its own stack: who changed it there meanwhile would only be
 * less confined by what is its own.
 */
#include "supervisor/rewrite/confine.h"

#include <assert.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/pi.h"
#include "supervisor/rewrite/rewrite.h"

struct installing {
	struct rewrite *rw;
	uint32_t flags;
	const struct sock_filter *code;
	size_t n;
};

int confine_begin(struct rewrite *rw)
{
	rw->filters = ckpt_filters_new();
	if (!rw->filters)
		return -ENOMEM;
	ckpt_filters_set_untraced(rw->filters);
	return 0;
}

static uint32_t number(void *ctx, uint32_t parent)
{
	const struct installing *i = ctx;

	return ckpt_filters_add(i->rw->filters, parent, i->flags, i->code, i->n);
}

static pid_t thread(void *ctx, pid_t host)
{
	return numbers_virtual(((struct installing *)ctx)->rw->tasks.numbers, host);
}

/* Has it ended, and been waited for?  Then nobody will tell of it. */
static bool is_over(const struct task *task)
{
	siginfo_t info;

	return waitid(P_PID, (id_t)task->host, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0;
}

static bool stands_in_exec(const struct task *task)
{
	siginfo_t info;

	return ptrace(PTRACE_GETSIGINFO, task->host, 0, &info) == 0 &&
	       info.si_code == (SIGTRAP | PTRACE_EVENT_EXEC << 8);
}

static int install(struct rewrite *rw, struct task *task, uint32_t flags,
	const struct sock_filter *code, size_t n, bool strict)
{
	struct installing i = {rw, flags, code, n};
	const struct ckpt_install what = {.tid = task->host,
		.init_pid = numbers_host(rw->tasks.numbers, 1),
		.flags = flags,
		.code = code,
		.n = n,
		.strict = strict,
		.number = number,
		.thread = thread,
		.ctx = &i};
	struct err e = {0};
	int r;

	/* Calls are answered meanwhile.  Nobody but this thread forgets a task. */
	pthread_mutex_unlock(&rw->lock);
	r = ckpt_install_traced(&what, &task->stop_signal, &e);
	pthread_mutex_lock(&rw->lock);
	if (r == -ENOMEM)
		return r;
	rw->confined = true;
	if (r == -ETIMEDOUT)
		log_warn("%s", e.msg);
	if (is_over(task)) {
		pi_ended(rw, task);
		tasks_end(&rw->tasks, task);
		return CALL_GONE;
	}
	if (r == -ESRCH && stands_in_exec(task))
		return CALL_EXECED;
	return r == 0 ? CALL_LEFT : CALL_GONE;
}

/*
 * A copy of the program at @addr: what we can't read or understand the kernel refuses with these errors.
 * -E2BIG: it has no room for a door.
 */
static int copy_program(
	const struct task *task, uint64_t addr, struct sock_filter **ret, size_t *ret_n)
{
	_cleanup_free_ struct sock_filter *code = NULL;
	struct sock_fprog program;
	int r;

	if (task_peek(task, addr, &program, sizeof(program)) < 0)
		return -EFAULT;
	if (!program.filter || !program.len || program.len > BPF_MAXINSNS)
		return -EINVAL;
	code = calloc(program.len, sizeof(*code));
	if (!code)
		return -ENOMEM;
	r = task_peek(task, (uintptr_t)program.filter, code, program.len * sizeof(*code));
	if (r == 0)
		r = ckpt_filters_try(code, program.len);
	if (r < 0)
		return r;
	*ret = take_ptr(code);
	*ret_n = program.len;
	return 0;
}

/* ---- calls of i386 -------------------------------------------------------------------------- */

#define RED_ZONE 128 /* below the stack's end, a function's own: x86-64 psABI */
#define MAX_CODE 32

/* prctl(2) becomes seccomp(2). */
static int install_itself(struct rewrite *rw, struct user_regs_struct *regs, uint64_t program)
{
	ckpt_filters_set_foreign(rw->filters);
	regs->orig_rax = SYS_seccomp;
	regs->rdi = SECCOMP_SET_MODE_FILTER;
	regs->rdx = program;
	return 0;
}

static int be_strict_itself(
	struct rewrite *rw, const struct task *task, struct user_regs_struct *regs)
{
	struct {
		struct {
			uint16_t len;
			uint32_t filter;
		} program; /* struct sock_fprog */
		struct sock_filter code[MAX_CODE];
	} there = {0};
	uint64_t at = (regs->rsp - RED_ZONE - sizeof(there)) & ~(uint64_t)15;
	size_t n;
	const struct sock_filter *code = ckpt_filters_strict(&n);

	assert(n <= MAX_CODE);
	memcpy(there.code, code, n * sizeof(*code));
	there.program.len = (uint16_t)n;
	there.program.filter = (uint32_t)(at + sizeof(there.program));
	if (task_poke(task, at, &there, sizeof(there)) < 0)
		return -EFAULT;
	regs->rsi = 0;
	return install_itself(rw, regs, at);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static int be_confined(struct rewrite *rw, struct task *task, struct user_regs_struct *regs,
	uint64_t addr, uint32_t flags)
{
	_cleanup_free_ struct sock_filter *code = NULL;
	size_t n;
	int r;

	/* How libseccomp asks which flags there are. */
	if (!addr)
		return 1;
	if (task->compat.is) {
		regs->rsi = flags;
		return install_itself(rw, regs, addr);
	}
	r = copy_program(task, addr, &code, &n);
	if (r == 0)
		return install(rw, task, flags, code, n, false);
	if (r == -E2BIG) {
		ckpt_filters_set_foreign(rw->filters);
		r = 0;
	}
	return r;
}

static int be_strict(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	size_t n;
	const struct sock_filter *code = ckpt_filters_strict(&n);

	if (task->compat.is)
		return be_strict_itself(rw, task, regs);
	return install(rw, task, 0, code, n, true);
}

/* PR_SET_SECCOMP */
static int enter_prctl(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	switch ((int)regs->rsi) {
	case SECCOMP_MODE_STRICT:
		return be_strict(rw, task, regs);
	case SECCOMP_MODE_FILTER:
		return be_confined(rw, task, regs, regs->rdx, 0);
	default:
		return -EINVAL;
	}
}

/* There can be only one listener on a task, which is ours: the kernel says EBUSY to a second. */
static int enter_seccomp(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (regs->rsi & SECCOMP_FILTER_FLAG_NEW_LISTENER)
		return 1;
	if ((uint32_t)regs->rdi == SECCOMP_SET_MODE_FILTER)
		return be_confined(rw, task, regs, regs->rdx, (uint32_t)regs->rsi);
	return (uint32_t)regs->rsi || regs->rdx ? -EINVAL : be_strict(rw, task, regs);
}

const struct rewrite_call confine_calls[] = {
	{SYS_prctl, .enter = enter_prctl},
	{SYS_seccomp, .result = true, .enter = enter_seccomp},
};
const size_t confine_n_calls = ARRAY_SIZE(confine_calls);
