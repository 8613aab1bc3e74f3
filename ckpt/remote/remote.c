// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The theory of operation is in remote.h.  A task with a remote stands in one of two places:
 *
 *      AT_STOP       in the PTRACE_EVENT_STOP it was given to us in, registers untouched
 *      AT_SENTINEL   in the entry of the sentinel call, after a batch
 *
 * From both, loading the executor's registers with orig_rax = -1 and PTRACE_CONT runs a batch:
 * the kernel neither restarts the interrupted call of the first nor executes that of the second.
 */
#include "ckpt/remote/remote.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/remote/layout.h"
#include "ckpt/remote/trace.h"

#define ALL_SIGNALS (~0ULL)
/* Longer than any call that is ever added takes: only a blocked one gets here. */
#define RUN_TIMEOUT_NS (30 * 1000000000ULL)

struct entry {
	int32_t nr;
	uint8_t refs;
	uint8_t twice;
	uint16_t pad;
	uint64_t args[6];
	int64_t ret;
};

struct heal {
	uint64_t mask, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15,
		rsp, rip, flags;
};

#define AT(type, member, offset) static_assert(offsetof(struct type, member) == offset, #member)
AT(entry, nr, ENTRY_NR);
AT(entry, refs, ENTRY_REFS);
AT(entry, twice, ENTRY_TWICE);
AT(entry, args, ENTRY_ARG0);
AT(entry, ret, ENTRY_RET);
AT(heal, mask, HEAL_MASK);
AT(heal, rax, HEAL_RAX);
AT(heal, r8, HEAL_R8);
AT(heal, rsp, HEAL_RSP);
AT(heal, flags, HEAL_FLAGS);
static_assert(sizeof(struct entry) == 1 << ENTRY_SHIFT, "the executor shifts by it");
static_assert(AREA_TABLE + REMOTE_MAX_CALLS * sizeof(struct entry) <= AREA_DATA, "table");
static_assert(AREA_DATA + REMOTE_DATA_SIZE + 65536 <= AREA_HEAL, "room for a signal frame");
static_assert(AREA_HEAL + sizeof(struct heal) <= REMOTE_AREA_SIZE, "area");
static_assert(EXEC_SENTINEL == SYS_PODRUN_SENTINEL, "sentinel");

/* exec_x86_64.S */
extern const uint8_t remote_exec_begin[], remote_exec_end[], remote_exec_run[];

struct remote_area {
	unsigned refs;
	uint64_t addr;
};

enum where { AT_STOP, AT_SENTINEL, GONE };

struct remote {
	pid_t tid;
	int proc_fd;
	struct remote_area *area;
	enum where where;
	bool born;	/* made by a batch: has no registers of its own yet */
	bool held_stop; /* a SIGSTOP came while a batch ran */
	struct user_regs_struct regs;
	uint64_t mask;

	struct entry *entries; /* REMOTE_MAX_CALLS, made on first use */
	int n;
	uint8_t *data; /* REMOTE_DATA_SIZE, made on first use */
	size_t used;
	bool ran;
	pid_t born_tids[REMOTE_MAX_BORN];
	int n_born;
};

static int died(struct remote *r, struct err *e)
{
	r->where = GONE;
	return err_set(e, ERR_FAILED, -ESRCH, "task %d has ended", r->tid);
}

static int set_regs(struct remote *r, const struct user_regs_struct *regs, struct err *e)
{
	if (ptrace(PTRACE_SETREGS, r->tid, 0, regs) < 0)
		return errno == ESRCH ? died(r, e)
				      : err_errno(e, -errno, "set registers of task %d", r->tid);
	return 0;
}

static int set_mask(struct remote *r, uint64_t mask, struct err *e)
{
	return trace_set_mask(r->tid, mask) < 0 ? died(r, e) : 0;
}

/* ---- letting the task go until it stands where we want it --------------------------------- */

enum want { WANT_SENTINEL, WANT_SYSCALL_STOP, WANT_EVENT_STOP };

/*
 * A seccomp stop of a call other than the sentinel comes from a filter of the session's own with
 * RET_TRACE.  Its tracer can't be there, and without one the kernel answers ENOSYS.
 */
static bool is_sentinel(struct remote *r)
{
	long nr = ptrace(PTRACE_PEEKUSER, r->tid, offsetof(struct user_regs_struct, orig_rax), 0);

	if ((int)nr == EXEC_SENTINEL)
		return true;
	ptrace(PTRACE_POKEUSER, r->tid, offsetof(struct user_regs_struct, orig_rax), -1L);
	ptrace(PTRACE_POKEUSER, r->tid, offsetof(struct user_regs_struct, rax), (long)-ENOSYS);
	return false;
}

/* A signal was about to be delivered although all are blocked: what is it?  0 to go on. */
static int judge_signal(struct remote *r, int sig, struct err *e)
{
	siginfo_t si = {0};

	if (sig == SIGSTOP) {
		r->held_stop = true;
		return 0;
	}
	if (ptrace(PTRACE_GETSIGINFO, r->tid, 0, &si) < 0)
		return died(r, e);
	if (sig == SIGSYS && si.si_code == 1 /* SYS_SECCOMP */) {
		ptrace(PTRACE_POKEUSER, r->tid, offsetof(struct user_regs_struct, rax),
			(long)-ENOSYS);
		return 0;
	}
	if (si.si_code > 0)
		return err_set(e, ERR_FAILED, -EFAULT, "a call in task %d raised signal %d",
			r->tid, sig);
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

/* 1: it stands as wanted, 0: let it go on. */
static int judge_stop(struct remote *r, int status, enum want want, struct err *e)
{
	switch (trace_event(status)) {
	case 0:
		if (WSTOPSIG(status) != (SIGTRAP | 0x80))
			return judge_signal(r, WSTOPSIG(status), e);
		return want == WANT_SYSCALL_STOP;
	case PTRACE_EVENT_SECCOMP:
		return is_sentinel(r) && want == WANT_SENTINEL;
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

static int go_until(struct remote *r, enum want want, struct err *e)
{
	int request = want == WANT_SYSCALL_STOP ? PTRACE_SYSCALL : PTRACE_CONT;
	uint64_t deadline = io_now_ns() + RUN_TIMEOUT_NS;

	for (;;) {
		int status, k;

		if (ptrace(request, r->tid, 0, 0) < 0)
			return died(r, e);
		k = trace_wait(r->proc_fd, r->tid, deadline, &status);
		if (k == -ESRCH)
			return died(r, e);
		if (k < 0) {
			r->where = GONE;
			return err_set(e, ERR_FAILED, k, "task %d does not come back from a call",
				r->tid);
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
		*ret_nr = SYS_restart_syscall;
		return true;
	default:
		return false;
	}
}

/* What healing loads in user space, where nobody restarts a call. */
static void fill_heal(const struct remote *r, struct heal *h)
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
}

static struct user_regs_struct exec_regs(const struct remote *r, bool stop_on_error)
{
	struct user_regs_struct g = r->regs;
	uint64_t table = r->area->addr + AREA_TABLE;

	g.orig_rax = (unsigned long)-1;
	g.rip = r->area->addr + AREA_CODE + (uint64_t)(remote_exec_run - remote_exec_begin);
	g.rbx = table;
	g.rbp = table + (uint64_t)r->n * sizeof(struct entry);
	g.r12 = table;
	g.r13 = stop_on_error;
	g.r14 = r->born;
	g.eflags &= ~0x500UL; /* trap flag, direction flag */
	return g;
}

/* After a batch, at the sentinel: the task's own registers and mask (see "between batches"). */
static int stand(struct remote *r, struct err *e)
{
	struct user_regs_struct g = r->regs;
	long nr;
	int k;

	r->where = AT_SENTINEL;
	if (r->born)
		return 0;
	g.orig_rax = interrupted(&r->regs, &nr) ? (unsigned long)nr : (unsigned long)-1;
	k = set_mask(r, r->mask, e);
	return k < 0 ? k : set_regs(r, &g, e);
}

/* ---- opening ------------------------------------------------------------------------------ */

/* Any executable 0f 05 will do, also one inside another instruction: it runs alone. */
static uint64_t find_syscall_in(struct remote *r, uint64_t start, uint64_t end)
{
	static const uint8_t insn[] = {0x0f, 0x05};
	uint8_t code[65536];

	end = MIN(end, start + (4 << 20));
	for (uint64_t at = start; at + sizeof(insn) < end; at += sizeof(code) - 1) {
		size_t len = MIN(sizeof(code), end - at);
		const uint8_t *hit;

		if (remote_peek(r, at, code, len, NULL) < 0)
			return 0;
		hit = memmem(code, len, insn, sizeof(insn));
		if (hit)
			return at + (uint64_t)(hit - code);
	}
	return 0;
}

static int find_syscall(struct remote *r, uint64_t *ret, struct err *e)
{
	struct proc_maps maps;
	uint8_t here[2];
	int k;

	/* Most tasks wait in a call, just behind the instruction. */
	if ((long)r->regs.orig_rax >= 0 &&
		remote_peek(r, r->regs.rip - 2, here, sizeof(here), NULL) == 0 &&
		here[0] == 0x0f && here[1] == 0x05) {
		*ret = r->regs.rip - 2;
		return 0;
	}
	k = proc_read_maps(r->proc_fd, r->tid, false, &maps, e);
	if (k < 0)
		return k;
	*ret = 0;
	for (int pass = 0; pass < 2 && !*ret; pass++) {
		for (size_t i = 0; i < maps.n && !*ret; i++) {
			const struct proc_vma *v = &maps.vmas[i];

			if ((v->prot & PROT_EXEC) && (v->prot & PROT_READ) &&
				(pass || !strcmp(v->path, "[vdso]")))
				*ret = find_syscall_in(r, v->start, v->end);
		}
	}
	proc_maps_fini(&maps);
	return *ret ? 0
		    : err_set(e, ERR_UNFREEZABLE, -ENOEXEC,
			      "task %d has no instruction to make a system call with", r->tid);
}

/* Makes the task execute the `syscall` at @insn; stops in the entry of the call. */
static int enter_call(struct remote *r, uint64_t insn, long nr, uint64_t a0, uint64_t a1,
	uint64_t a2, uint64_t a3, struct user_regs_struct *ret_regs, struct err *e)
{
	struct user_regs_struct g = r->regs;
	int k;

	g.rip = insn;
	g.rax = (unsigned long)nr;
	g.orig_rax = (unsigned long)-1;
	g.rdi = a0;
	g.rsi = a1;
	g.rdx = a2;
	g.r10 = a3;
	g.r8 = (unsigned long)-1;
	g.r9 = 0;
	k = set_regs(r, &g, e);
	if (k == 0)
		k = go_until(r, WANT_SYSCALL_STOP, e);
	g.orig_rax = (unsigned long)nr;
	g.rip = insn + 2;
	*ret_regs = g;
	return k;
}

static int write_code(struct remote *r, struct err *e)
{
	return remote_poke(r, r->area->addr + AREA_CODE, remote_exec_begin,
		(size_t)(remote_exec_end - remote_exec_begin), e);
}

static int write_heal(struct remote *r, struct err *e)
{
	struct heal h;

	fill_heal(r, &h);
	return remote_poke(r, r->area->addr + AREA_HEAL, &h, sizeof(h), e);
}

/* mmap, then mprotect of the code page, which returns straight into the executor. */
static int map_area(struct remote *r, uint64_t hint, struct err *e)
{
	unsigned long flags = MAP_PRIVATE | MAP_ANONYMOUS | (hint ? MAP_FIXED_NOREPLACE : 0);
	struct user_regs_struct g;
	uint64_t insn;
	int k = find_syscall(r, &insn, e);

	if (k < 0)
		return k;
	k = enter_call(r, insn, SYS_mmap, hint, REMOTE_AREA_SIZE, PROT_READ | PROT_WRITE, flags, &g,
		e);
	if (k == 0)
		k = go_until(r, WANT_SYSCALL_STOP, e);
	if (k < 0)
		return k;
	if (ptrace(PTRACE_GETREGS, r->tid, 0, &g) < 0)
		return died(r, e);
	if (g.rax > -4096UL)
		return err_errno(e, (int)g.rax, "map a page in task %d", r->tid);
	r->area->addr = g.rax;

	k = write_code(r, e);
	if (k == 0)
		k = write_heal(r, e);
	if (k == 0)
		k = enter_call(r, insn, SYS_mprotect, r->area->addr, PAGE_SIZE,
			PROT_READ | PROT_EXEC, 0, &g, e);
	if (k < 0)
		return k;
	g = exec_regs(r, false);
	g.orig_rax = SYS_mprotect;
	g.rdi = r->area->addr;
	g.rsi = PAGE_SIZE;
	g.rdx = PROT_READ | PROT_EXEC;
	k = set_regs(r, &g, e);
	if (k == 0)
		k = go_until(r, WANT_SENTINEL, e);
	return k < 0 ? k : stand(r, e);
}

static struct remote *new_remote(int proc_fd, pid_t tid, struct remote_area *area)
{
	struct remote *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->tid = tid;
	r->proc_fd = proc_fd;
	r->area = area;
	if (area) {
		area->refs++;
		return r;
	}
	r->area = calloc(1, sizeof(*r->area));
	if (!r->area) {
		free(r);
		return NULL;
	}
	r->area->refs = 1;
	return r;
}

void remote_forget(struct remote *r)
{
	if (!r)
		return;
	if (--r->area->refs == 0)
		free(r->area);
	free(r->entries);
	free(r->data);
	free(r);
}

static int read_state(struct remote *r, struct err *e)
{
	if (ptrace(PTRACE_GETREGS, r->tid, 0, &r->regs) < 0)
		return err_errno(e, -errno, "read registers of task %d", r->tid);
	if (r->regs.cs != 0x33)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "task %d is a 32-bit program",
			r->tid);
	if (trace_get_mask(r->tid, &r->mask) < 0)
		return err_errno(e, -errno, "read signal mask of task %d", r->tid);
	return 0;
}

/* From wherever it stands to a PTRACE_EVENT_STOP, by way of the call in orig_rax of @via. */
static int to_event_stop(struct remote *r, const struct user_regs_struct *via, struct err *e)
{
	int k = set_regs(r, via, e);

	if (k < 0)
		return k;
	if (ptrace(PTRACE_INTERRUPT, r->tid, 0, 0) < 0)
		return died(r, e);
	return go_until(r, WANT_EVENT_STOP, e);
}

/* Leaves the task as it was, for failures after it has been moved. */
static void put_back(struct remote *r)
{
	struct user_regs_struct g = r->regs;
	struct err ignored;

	if (r->where == GONE)
		return;
	g.orig_rax = (unsigned long)-1;
	if (to_event_stop(r, &g, &ignored) == 0 && set_regs(r, &r->regs, &ignored) == 0)
		set_mask(r, r->mask, &ignored);
}

int remote_open(struct remote **ret, int proc_fd, pid_t tid, uint64_t hint, struct err *e)
{
	struct remote *r = new_remote(proc_fd, tid, NULL);
	int k;

	if (!r)
		return err_errno(e, -ENOMEM, "open task %d", tid);
	k = read_state(r, e);
	if (k == 0)
		k = set_mask(r, ALL_SIGNALS, e);
	if (k == 0) {
		k = map_area(r, hint, e);
		if (k < 0)
			put_back(r);
	}
	if (k < 0) {
		remote_forget(r);
		return k;
	}
	*ret = r;
	return 0;
}

/* A new task's first stop may still have to come, or to be taken note of. */
static int await_birth(struct remote *r, struct err *e)
{
	uint64_t deadline = io_now_ns() + RUN_TIMEOUT_NS;
	struct user_regs_struct probe;
	int status, k;

	if (waitpid(r->tid, &status, __WALL | WNOHANG) == r->tid)
		return WIFSTOPPED(status) ? 0 : died(r, e);
	if (!ptrace(PTRACE_GETREGS, r->tid, 0, &probe))
		return 0;
	k = trace_wait(r->proc_fd, r->tid, deadline, &status);
	return k < 0 ? err_errno(e, k, "wait for new task %d", r->tid) : 0;
}

/* In the executor's pages, behind a clone: nothing else puts a task there. */
static bool just_born(const struct remote *r)
{
	uint64_t code = r->area->addr + AREA_CODE;

	return r->regs.rip >= code && r->regs.rip < code + PAGE_SIZE;
}

static int open_with(struct remote *r, struct remote **ret, struct err *e)
{
	int k = await_birth(r, e);

	if (k == 0)
		k = read_state(r, e);
	if (k < 0) {
		remote_forget(r);
		return k;
	}
	r->born = just_born(r);
	*ret = r;
	return 0;
}

int remote_open_thread(struct remote **ret, pid_t tid, struct remote *sibling, struct err *e)
{
	struct remote *r = new_remote(sibling->proc_fd, tid, sibling->area);

	return r ? open_with(r, ret, e) : err_errno(e, -ENOMEM, "open task %d", tid);
}

int remote_open_child(struct remote **ret, pid_t tid, struct remote *parent, struct err *e)
{
	struct remote *r = new_remote(parent->proc_fd, tid, NULL);

	if (!r)
		return err_errno(e, -ENOMEM, "open task %d", tid);
	r->area->addr = parent->area->addr;
	return open_with(r, ret, e);
}

/* ---- preparing a batch -------------------------------------------------------------------- */

uint64_t remote_address(const struct remote *r)
{
	return r->area->addr;
}

pid_t remote_tid(const struct remote *r)
{
	return r->tid;
}

struct user_regs_struct *remote_regs(struct remote *r)
{
	return &r->regs;
}

uint64_t *remote_sigmask(struct remote *r)
{
	return &r->mask;
}

pid_t remote_born(const struct remote *r, int i)
{
	return i >= 0 && i < r->n_born ? r->born_tids[i] : 0;
}

static void begin_batch(struct remote *r)
{
	if (!r->ran)
		return;
	r->ran = false;
	r->n = 0;
	r->used = 0;
	r->n_born = 0;
}

int remote_add_args(struct remote *r, long nr, const struct remote_arg args[6])
{
	struct entry *t;

	begin_batch(r);
	if (!r->entries)
		r->entries = calloc(REMOTE_MAX_CALLS, sizeof(*r->entries));
	if (!r->entries || r->n == REMOTE_MAX_CALLS)
		return -ENOSPC;
	t = &r->entries[r->n];
	*t = (struct entry){
		.nr = (int32_t)nr,
		.twice = nr == SYS_clone || nr == SYS_clone3 || nr == SYS_fork,
		.ret = -ECANCELED,
	};
	for (int i = 0; i < 6; i++) {
		assert(!args[i].ref || args[i].value < (uint64_t)r->n);
		t->args[i] = args[i].value;
		t->refs |= (uint8_t)(args[i].ref << i);
	}
	return r->n++;
}

int remote_add(struct remote *r, long nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
	uint64_t a4, uint64_t a5)
{
	return remote_add_args(r, nr,
		(const struct remote_arg[6]){{a0, 0}, {a1, 0}, {a2, 0}, {a3, 0}, {a4, 0}, {a5, 0}});
}

void *remote_data(struct remote *r, size_t len, uint64_t *ret_addr)
{
	size_t room = ALIGN_UP(len, 8);
	uint8_t *p;

	begin_batch(r);
	if (!r->data)
		r->data = malloc(REMOTE_DATA_SIZE);
	if (!r->data || room < len || room > REMOTE_DATA_SIZE - r->used)
		return NULL;
	p = r->data + r->used;
	memset(p, 0, room);
	*ret_addr = r->area->addr + AREA_DATA + r->used;
	r->used += room;
	return p;
}

uint64_t remote_put(struct remote *r, const void *data, size_t len)
{
	uint64_t addr;
	void *p = remote_data(r, len, &addr);

	if (!p)
		return 0;
	memcpy(p, data, len);
	return addr;
}

uint64_t remote_put_str(struct remote *r, const char *s)
{
	return remote_put(r, s, strlen(s) + 1);
}

/* ---- running ------------------------------------------------------------------------------ */

struct part {
	void *local;
	uint64_t offset;
	size_t len;
};

/* Copies parts of the area to or from the task in one call. */
static int copy_parts(struct remote *r, const struct part *parts, size_t n, bool out,
	struct err *e)
{
	struct iovec local[3], there[3];
	size_t total = 0;
	ssize_t k;

	for (size_t i = 0; i < n; i++) {
		local[i] = (struct iovec){parts[i].local, parts[i].len};
		there[i] = (struct iovec){(void *)(r->area->addr + parts[i].offset), parts[i].len};
		total += parts[i].len;
	}
	k = out ? process_vm_writev(r->tid, local, n, there, n, 0)
		: process_vm_readv(r->tid, local, n, there, n, 0);
	if (k < 0 && errno == ESRCH)
		return died(r, e);
	if (k < 0 || (size_t)k != total)
		return err_errno(e, k < 0 ? -errno : -EFAULT, "copy a batch of task %d", r->tid);
	return 0;
}

int remote_run(struct remote *r, bool stop_on_error, struct err *e)
{
	struct user_regs_struct g;
	struct heal heal;
	struct part parts[] = {
		{r->entries, AREA_TABLE, (size_t)r->n * sizeof(struct entry)},
		{r->data, AREA_DATA, r->used},
		{&heal, AREA_HEAL, sizeof(heal)},
	};
	int k;

	if (r->where == GONE)
		return died(r, e);
	assert(!r->ran || r->n == 0);
	r->ran = true;
	r->n_born = 0;
	fill_heal(r, &heal);
	k = copy_parts(r, parts, 3, true, e);
	if (k < 0)
		return k;
	/* Registers first: whatever runs from now on heals, with any mask. */
	g = exec_regs(r, stop_on_error);
	k = set_regs(r, &g, e);
	if (k == 0)
		k = set_mask(r, ALL_SIGNALS, e);
	if (k == 0)
		k = go_until(r, WANT_SENTINEL, e);
	if (k == 0)
		k = copy_parts(r, parts, 2, false, e);
	if (k == 0)
		return stand(r, e);
	if (r->where != GONE) {
		put_back(r);
		r->where = r->where == GONE ? GONE : AT_STOP;
	}
	return k;
}

long remote_result(const struct remote *r, int i)
{
	return r->ran && i >= 0 && i < r->n ? r->entries[i].ret : -ECANCELED;
}

int remote_call(struct remote *r, long *ret_value, struct err *e, long nr, uint64_t a0, uint64_t a1,
	uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	int k;

	begin_batch(r);
	assert(r->n == 0);
	k = remote_add(r, nr, a0, a1, a2, a3, a4, a5);
	if (k < 0)
		return err_errno(e, -ENOMEM, "call in task %d", r->tid);
	k = remote_run(r, false, e);
	if (k < 0)
		return k;
	*ret_value = remote_result(r, 0);
	return 0;
}

int remote_must(struct remote *r, long *ret_value, struct err *e, long nr, uint64_t a0, uint64_t a1,
	uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	long value;
	int k = remote_call(r, &value, e, nr, a0, a1, a2, a3, a4, a5);

	if (k < 0)
		return k;
	if (value < 0 && value >= -4095)
		return err_errno(e, (int)value, "system call %ld in task %d", nr, r->tid);
	if (ret_value)
		*ret_value = value;
	return 0;
}

/* ---- memory ------------------------------------------------------------------------------- */

int remote_peek(struct remote *r, uint64_t addr, void *data, size_t len, struct err *e)
{
	struct iovec local = {data, len}, there = {(void *)addr, len};
	ssize_t n = process_vm_readv(r->tid, &local, 1, &there, 1, 0);

	if (n < 0 || (size_t)n != len)
		return err_errno(e, n < 0 ? -errno : -EFAULT, "read memory of task %d", r->tid);
	return 0;
}

int remote_poke(struct remote *r, uint64_t addr, const void *data, size_t len, struct err *e)
{
	struct iovec local = {(void *)data, len}, there = {(void *)addr, len};
	ssize_t n = process_vm_writev(r->tid, &local, 1, &there, 1, 0);

	if (n < 0 || (size_t)n != len)
		return err_errno(e, n < 0 ? -errno : -EFAULT, "write memory of task %d", r->tid);
	return 0;
}

/* ---- closing ------------------------------------------------------------------------------ */

/* From the sentinel stop; its call becomes munmap for the last remote of the area. */
static int leave(struct remote *r, bool last, struct err *e)
{
	struct user_regs_struct g = r->regs;
	int k;

	g.orig_rax = (unsigned long)-1;
	if (last) {
		g.orig_rax = SYS_munmap;
		g.rdi = r->area->addr;
		g.rsi = REMOTE_AREA_SIZE;
	}
	k = to_event_stop(r, &g, e);
	if (k < 0 || !last)
		return k;
	if (ptrace(PTRACE_GETREGS, r->tid, 0, &g) < 0)
		return died(r, e);
	if ((long)g.rax < 0)
		log_warn("the executor's pages stay in task %d: %s", r->tid,
			strerror((int)-(long)g.rax));
	return 0;
}

static int close_it(struct remote *r, struct err *e)
{
	bool last = r->area->refs == 1;
	int k = 0;

	if (r->where == GONE)
		return died(r, e);
	/* It opened its sibling's area and never ran a batch: now it must, to get rid of it. */
	if (last && r->where == AT_STOP) {
		begin_batch(r);
		r->n = 0;
		r->used = 0;
		k = remote_run(r, false, e);
	}
	if (k == 0 && r->where == AT_SENTINEL)
		k = leave(r, last, e);
	if (k == 0)
		k = set_regs(r, &r->regs, e);
	if (k == 0)
		k = set_mask(r, r->mask, e);
	if (k == 0 && r->held_stop)
		syscall(SYS_tkill, r->tid, SIGSTOP);
	return k;
}

int remote_close(struct remote *r, struct err *e)
{
	int k;

	if (!r)
		return 0;
	k = close_it(r, e);
	remote_forget(r);
	return k;
}
