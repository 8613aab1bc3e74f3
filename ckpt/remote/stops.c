// SPDX-License-Identifier: GPL-2.0-or-later
/* Where a task stands, and what it does between two such places. */
#include "ckpt/remote/inside.h"

#include <errno.h>
#include <stddef.h>
#include <sys/wait.h>

/* Longer than any call that is ever added takes: only a blocked one gets here. */
#define RUN_TIMEOUT_NS (30 * 1000000000ULL)

int remote_died(struct remote *r, struct err *e)
{
	r->where = GONE;
	return err_set(e, ERR_FAILED, -ESRCH, "task %d has ended", r->tid);
}

int remote_set_regs(struct remote *r, const struct user_regs_struct *regs, struct err *e)
{
	if (ptrace(PTRACE_SETREGS, r->tid, 0, regs) < 0)
		return errno == ESRCH ? remote_died(r, e)
				      : err_errno(e, -errno, "set registers of task %d", r->tid);
	return 0;
}

int remote_set_mask(struct remote *r, uint64_t mask, struct err *e)
{
	return trace_set_mask(r->tid, mask) < 0 ? remote_died(r, e) : 0;
}

/* ---- letting the task go until it stands where we want it --------------------------------- */

static bool pass_traced;

void remote_pass_traced(bool on)
{
	pass_traced = on;
}

/*
 * A seccomp stop of a call other than the sentinel comes from a filter of the session's own with
 * RET_TRACE.  Its tracer can't be there, and without one the kernel answers ENOSYS.  Where names
 * are rewritten it comes from podrun's filter, whose tracer we are: our calls mean what they say.
 */
static bool is_sentinel(struct remote *r)
{
	long nr = ptrace(PTRACE_PEEKUSER, r->tid, offsetof(struct user_regs_struct, orig_rax), 0);
	long arg = ptrace(PTRACE_PEEKUSER, r->tid, offsetof(struct user_regs_struct, rdi), 0);

	if ((int)nr == EXEC_SENTINEL && (int)arg == EXEC_SENTINEL_ARG)
		return true;
	if (pass_traced)
		return false;
	ptrace(PTRACE_POKEUSER, r->tid, offsetof(struct user_regs_struct, orig_rax), -1L);
	ptrace(PTRACE_POKEUSER, r->tid, offsetof(struct user_regs_struct, rax), (long)-ENOSYS);
	return false;
}

/*
 * A signal was about to be delivered although all are blocked: what is it?  0 to go on.
 *
 * SIGSTOP can't be blocked.  It is let through: the process is stopped, which it shows once we are
 * gone, however we go, and runs until then as we let it run.  Where names are rewritten who lets it
 * go on must know of that, and ends with the session: there it is kept for then.
 */
static int judge_signal(struct remote *r, int sig, struct err *e)
{
	siginfo_t si = {0};

	if (sig == SIGSTOP) {
		r->held_stop |= pass_traced;
		r->deliver = pass_traced ? 0 : sig;
		return 0;
	}
	if (ptrace(PTRACE_GETSIGINFO, r->tid, 0, &si) < 0)
		return remote_died(r, e);
	if (sig == SIGSYS && si.si_code == 1 /* SYS_SECCOMP */) {
		ptrace(PTRACE_POKEUSER, r->tid, offsetof(struct user_regs_struct, rax),
			(long)-ENOSYS);
		return 0;
	}
	if (si.si_code > 0)
		return err_set(
			e, ERR_FAILED, -EFAULT, "a call in task %d raised signal %d", r->tid, sig);
	/* Taken from the queue before the mask was set: back to where it came from. */
	syscall(SYS_tkill, r->tid, sig);
	return 0;
}

static void note_born(struct remote *r)
{
	unsigned long tid = 0;

	if (r->n_born < REMOTE_MAX_BORN && !ptrace(PTRACE_GETEVENTMSG, r->tid, 0, &tid))
		r->born_tids[r->n_born++] = (pid_t)tid;
}

/* A guarded task enters a call, or leaves it: see "door" in remote.h. */
static int pass_door(struct remote *r, struct err *e)
{
	const size_t rip = offsetof(struct user_regs_struct, rip);
	struct __ptrace_syscall_info info = {0};
	uint64_t to = r->behind;

	if (ptrace(PTRACE_GET_SYSCALL_INFO, r->tid, sizeof(info), &info) < 0)
		return remote_died(r, e);
	if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
		r->behind = info.instruction_pointer;
		to = PODRUN_DOOR;
	} else {
		r->behind = 0;
	}
	if (to && ptrace(PTRACE_POKEUSER, r->tid, rip, to) < 0)
		return remote_died(r, e);
	return 0;
}

/* 1: it stands as wanted, 0: let it go on. */
static int judge_stop(struct remote *r, int status, enum want want, struct err *e)
{
	int k;

	switch (trace_event(status)) {
	case 0:
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			return judge_signal(r, WSTOPSIG(status), e);
		k = r->guarded ? pass_door(r, e) : 0;
		return k < 0 ? k : want == WANT_SYSCALL_STOP;
	case PTRACE_EVENT_SECCOMP:
		return is_sentinel(r) && (want == WANT_SENTINEL || want == WANT_EXEC);
	case PTRACE_EVENT_EXEC:
		r->execed = true;
		/*
		 * Another thread's, which has taken the number: that one is somebody else's to deal
		 * with.
		 */
		return want == WANT_EXEC ? 1 : remote_died(r, e);
	case PTRACE_EVENT_STOP:
		return want == WANT_EVENT_STOP;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		note_born(r);
		return 0;
	default:
		return 0;
	}
}

int remote_go(struct remote *r, enum want want, struct err *e)
{
	bool calls = want == WANT_SYSCALL_STOP || (r->guarded && want == WANT_SENTINEL);

	if (ptrace(calls ? PTRACE_SYSCALL : PTRACE_CONT, r->tid, 0, (long)r->deliver) < 0)
		return remote_died(r, e);
	r->deliver = 0;
	r->going = true;
	return 0;
}

int remote_go_until(struct remote *r, enum want want, struct err *e)
{
	uint64_t deadline = io_now_ns() + RUN_TIMEOUT_NS;

	for (;;) {
		int status, k;

		if (!r->going && remote_go(r, want, e) < 0)
			return -ESRCH;
		r->going = false;
		k = trace_wait(r->proc_fd, r->tid, deadline, &status);
		if (k == -ESRCH)
			return remote_died(r, e);
		if (k < 0) {
			r->where = GONE;
			return err_set(
				e, ERR_FAILED, k, "task %d does not come back from a call", r->tid);
		}
		k = judge_stop(r, status, want, e);
		if (k)
			return MIN(k, 0);
	}
}
/* ---- registers for every occasion --------------------------------------------------------- */

/* -512 to -514: the kernel would do the call again; -516: it would call restart_syscall. */
static bool interrupted(const struct user_regs_struct *regs, long *ret_nr)
{
	if ((long)regs->orig_rax < 0)
		return false;
	switch ((long)regs->rax) {
	case -512:
	case -513:
	case -514:
		*ret_nr = (long)regs->orig_rax;
		return true;
	case -516:
		*ret_nr = i386_runs(regs) ? I386_RESTART_SYSCALL : SYS_restart_syscall;
		return true;
	default:
		return false;
	}
}

uint64_t remote_exec_far_at(uint64_t area)
{
	return area + AREA_CODE + (uint64_t)(remote_exec_far - remote_exec_begin);
}

void remote_fill_heal(const struct remote *r, struct heal *h, uint64_t far)
{
	const struct user_regs_struct *g = &r->regs;
	long nr;

	*h = (struct heal){
		.mask = r->mask,
		.rax = g->rax,
		.rbx = g->rbx,
		.rcx = g->rcx,
		.rdx = g->rdx,
		.rsi = g->rsi,
		.rdi = g->rdi,
		.rbp = g->rbp,
		.r8 = g->r8,
		.r9 = g->r9,
		.r10 = g->r10,
		.r11 = g->r11,
		.r12 = g->r12,
		.r13 = g->r13,
		.r14 = g->r14,
		.r15 = g->r15,
		.rsp = g->rsp,
		.rip = g->rip,
		.flags = g->eflags,
	};
	if (interrupted(g, &nr)) {
		h->rax = (uint64_t)nr;
		h->rip -= 2;
	}
	if (remote_runs_32(r)) {
		h->far_rip = (uint32_t)h->rip;
		h->far_cs = CODE_32;
		h->rip = far;
	}
}

struct user_regs_struct remote_exec_regs(const struct remote *r, bool stop_on_error)
{
	struct user_regs_struct g = r->regs;
	uint64_t table = r->area->addr + AREA_TABLE;

	g.orig_rax = (unsigned long)-1;
	g.cs = CODE_64;
	g.rip = r->area->addr + AREA_CODE + (uint64_t)(remote_exec_run - remote_exec_begin);
	g.rbx = table;
	g.rbp = table + (uint64_t)r->n * sizeof(struct entry);
	g.r12 = table;
	g.r13 = stop_on_error;
	g.r14 = r->born;
	g.eflags &= ~0x500UL; /* trap flag, direction flag */
	return g;
}

int remote_stand(struct remote *r, struct err *e)
{
	struct user_regs_struct g = r->regs;
	long nr;
	int k;

	r->where = AT_SENTINEL;
	r->behind = 0;
	if (r->born)
		return 0;
	/* A call of i386 can't be made here, but in user space. */
	if (remote_runs_32(r))
		g = remote_user_regs(r);
	else
		g.orig_rax = interrupted(&r->regs, &nr) ? (unsigned long)nr : (unsigned long)-1;
	k = remote_set_mask(r, r->mask, e);
	return k < 0 ? k : remote_set_regs(r, &g, e);
}

struct user_regs_struct remote_user_regs(const struct remote *r)
{
	struct user_regs_struct g = r->regs;
	long nr;

	if (interrupted(&r->regs, &nr)) {
		g.rax = (unsigned long)nr;
		g.rip -= 2;
	}
	g.orig_rax = (unsigned long)-1;
	return g;
}

int remote_stand_in_user(struct remote *r, struct err *e)
{
	struct user_regs_struct g = remote_user_regs(r);
	int k = remote_set_regs(r, &g, e);

	return k < 0 ? k : remote_set_mask(r, r->mask, e);
}

int remote_go_to_event_stop(struct remote *r, const struct user_regs_struct *via, struct err *e)
{
	int k;

	if (ptrace(PTRACE_INTERRUPT, r->tid, 0, 0) < 0)
		return remote_died(r, e);
	k = remote_set_regs(r, via, e);
	return k < 0 ? k : remote_go(r, WANT_EVENT_STOP, e);
}

int remote_to_event_stop(struct remote *r, const struct user_regs_struct *via, struct err *e)
{
	int k = remote_go_to_event_stop(r, via, e);

	return k < 0 ? k : remote_go_until(r, WANT_EVENT_STOP, e);
}

void remote_put_back(struct remote *r)
{
	struct user_regs_struct g = remote_user_regs(r);
	struct err ignored;

	if (r->where == GONE)
		return;
	if (remote_to_event_stop(r, &g, &ignored) == 0 &&
		remote_set_regs(r, &r->regs, &ignored) == 0)
		remote_set_mask(r, r->mask, &ignored);
}
