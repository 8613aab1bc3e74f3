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
#include "ckpt/remote/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define BIRTH_TIMEOUT_NS (30 * 1000000000ULL)
#define CLOSE_AT_ONCE	 32

/* ---- opening ------------------------------------------------------------------------------ */

#define INSN_LEN 2
static const uint8_t insn_64[INSN_LEN] = {0x0f, 0x05}; /* syscall */
static const uint8_t insn_32[INSN_LEN] = {0xcd, 0x80}; /* int $0x80 */

/* Any executable one will do, also one inside another instruction: it runs alone. */
static uint64_t find_syscall_in(struct remote *r, uint64_t start, uint64_t end)
{
	const uint8_t *insn = remote_runs_32(r) ? insn_32 : insn_64;
	uint8_t code[65536];

	end = MIN(end, start + (4 << 20));
	for (uint64_t at = start; at + INSN_LEN < end; at += sizeof(code) - 1) {
		size_t len = MIN(sizeof(code), end - at);
		const uint8_t *hit;

		if (remote_peek(r, at, code, len, NULL) < 0)
			return 0;
		hit = memmem(code, len, insn, INSN_LEN);
		if (hit)
			return at + (uint64_t)(hit - code);
	}
	return 0;
}

static int find_syscall(struct remote *r, uint64_t *ret, struct err *e)
{
	struct proc_maps maps;
	uint8_t here[INSN_LEN];
	int k;

	/* Most tasks wait in a call, just behind the instruction. */
	if ((long)r->regs.orig_rax >= 0 &&
		remote_peek(r, r->regs.rip - INSN_LEN, here, sizeof(here), NULL) == 0 &&
		!memcmp(here, remote_runs_32(r) ? insn_32 : insn_64, INSN_LEN)) {
		*ret = r->regs.rip - INSN_LEN;
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

/* Loads mmap(2) of the area, in the calling convention of @r's code. */
static void load_mmap(
	const struct remote *r, struct user_regs_struct *g, uint64_t hint, uint64_t flags)
{
	flags |= MAP_PRIVATE | MAP_ANONYMOUS;
	if (remote_runs_32(r)) {
		g->rax = I386_MMAP2;
		g->rbx = hint;
		g->rcx = REMOTE_AREA_SIZE;
		g->rdx = PROT_READ | PROT_EXEC;
		g->rsi = flags;
		g->rdi = UINT32_MAX;
		g->rbp = 0;
		return;
	}
	g->rax = SYS_mmap;
	g->rdi = hint;
	g->rsi = REMOTE_AREA_SIZE;
	g->rdx = PROT_READ | PROT_EXEC;
	g->r10 = flags;
	g->r8 = (unsigned long)-1;
	g->r9 = 0;
}

/*
 * Of a task that is at a limit of its own nothing can be asked: a hard one cannot be raised from
 * outside, and who has lowered a soft one alone is rare.
 */
static int cannot_map(const struct remote *r, int error, struct err *e)
{
	if (error != -ENOMEM && error != -EAGAIN)
		return err_errno(e, error, "map a page in task %d", r->tid);
	err_set(e, ERR_UNFREEZABLE, error, "there is no room for one more page in it");
	return err_hint(e, "its limit of memory is used up (ulimit -v), or that of locked memory with all "
			   "that it will map (ulimit -l, mlockall(2))");
}

/*
 * Makes the task map the area by the instruction at @insn, stops behind that.  These two steps of
 * the task (and the last one of the close) are the only ones it makes with registers that are not
 * its own and no code of ours to put them back: nothing else happens in between.
 */
static int call_mmap(struct remote *r, uint64_t insn, uint64_t hint, struct err *e)
{
	struct user_regs_struct g = r->regs;
	uint64_t flags = 0;
	int k;

	g.rip = insn;
	g.orig_rax = (unsigned long)-1;
	/* Whoever asks for a place asks for a task that is about to lose all else: where the kernel
	 * has put the stack of that by chance is no obstacle.  The instruction itself stays. */
	if (hint)
		flags = insn + VDSO_ROOM > hint && insn < hint + REMOTE_AREA_SIZE + VDSO_ROOM
				? MAP_FIXED_NOREPLACE
				: MAP_FIXED;
	load_mmap(r, &g, hint, flags);
	k = remote_set_mask(r, ALL_SIGNALS, e);
	if (k == 0)
		k = remote_set_regs(r, &g, e);
	if (k == 0)
		k = remote_go_until(r, WANT_SYSCALL_STOP, e);
	if (k == 0)
		k = remote_go_until(r, WANT_SYSCALL_STOP, e);
	if (k == 0 && ptrace(PTRACE_GETREGS, r->tid, 0, &g) < 0)
		k = remote_died(r, e);
	if (k == 0)
		k = remote_stand_in_user(r, e);
	if (k < 0)
		return k;
	if (g.rax > -4096UL)
		return cannot_map(r, (int)g.rax, e);
	r->area->addr = g.rax;
	return 0;
}

/* The same without /proc/PID/mem, which a task that is not dumpable keeps from us. */
static int poke_words(struct remote *r, uint64_t at, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i += sizeof(long)) {
		long word = 0;

		memcpy(&word, (const uint8_t *)data + i, MIN(len - i, sizeof(word)));
		if (ptrace(PTRACE_POKEDATA, r->tid, at + i, word) < 0)
			return -errno;
	}
	return 0;
}

int remote_force(struct remote *r, int mem, uint64_t at, const void *data, size_t len)
{
	return mem < 0 ? poke_words(r, at, data, len) : io_pwrite_full(mem, data, len, (off_t)at);
}

static int write_code(struct remote *r, struct err *e)
{
	/* Mostly it is open still, of the first call. */
	bool open = r->area->boot != 0;
	_cleanup_close_ int own =
		open ? -1 : proc_open_file(r->proc_fd, r->tid, "mem", O_RDWR, NULL);
	int mem = open ? r->area->mem : own;
	size_t len = (size_t)(remote_exec_end - remote_exec_begin);
	struct heal h;
	int k;

	if (mem < 0 && mem != -EACCES)
		return err_errno(e, mem, "open memory of task %d", r->tid);
	remote_fill_heal(r, &h, remote_exec_far_at(r->area->addr));
	k = remote_force(r, mem, r->area->addr + AREA_CODE, remote_exec_begin, len);
	if (k == 0)
		k = remote_force(r, mem, r->area->addr + AREA_HEAL, &h, sizeof(h));
	return k < 0 ? err_errno(e, k, "write a page of task %d", r->tid) : 0;
}

/*
 * The same from behind the vDSO (boot.c), in two steps: 1 when there is no room for that.  The task
 * stands at the sentinel there.
 */
static int start_boot_mmap(struct remote *r, struct err *e)
{
	uint64_t at = remote_boot_place(r);
	struct user_regs_struct g = r->regs;

	if (!at)
		return 1;
	if (remote_boot_put(r, at) < 0) {
		remote_boot_wipe(r);
		return 1;
	}
	load_mmap(r, &g, 0, 0);
	return remote_boot_start(r, &g, e);
}

static int have_boot_mmap(struct remote *r, struct err *e)
{
	uint64_t addr;
	int k = remote_boot_wait(r, &addr, e);

	if (k < 0)
		return k;
	if (addr > -4096UL)
		return cannot_map(r, (int)addr, e);
	r->area->addr = addr;
	return 0;
}

/*
 * The area is mapped executable, and never both writable and executable: some hosts refuse
 * that.  The executor makes all but its own page writable, and is ready.
 */
static int start_executor(struct remote *r, struct err *e)
{
	struct user_regs_struct g;
	int k = write_code(r, e);

	if (k < 0)
		return k;
	g = remote_exec_regs(r, false);
	g.rip = r->area->addr + AREA_CODE + (uint64_t)(remote_exec_single - remote_exec_begin);
	g.rax = SYS_mprotect;
	g.rdi = r->area->addr + AREA_TABLE;
	g.rsi = REMOTE_AREA_SIZE - AREA_TABLE;
	g.rdx = PROT_READ | PROT_WRITE;
	k = remote_set_regs(r, &g, e);
	if (k == 0)
		k = remote_set_mask(r, ALL_SIGNALS, e);
	return k == 0 ? remote_go(r, WANT_SENTINEL, e) : k;
}

static int have_executor(struct remote *r, struct err *e)
{
	int k = remote_go_until(r, WANT_SENTINEL, e);

	return k < 0 ? k : remote_stand(r, e);
}

static int map_area(struct remote *r, uint64_t hint, struct err *e)
{
	uint64_t insn;
	/* A task that is to be blank ends with its tracer anyway. */
	int k = hint ? 1 : start_boot_mmap(r, e);

	if (k == 0) {
		k = have_boot_mmap(r, e);
	} else if (k == 1) {
		k = find_syscall(r, &insn, e);
		if (k == 0)
			k = call_mmap(r, insn, hint, e);
	}
	if (k == 0)
		k = start_executor(r, e);
	return k == 0 ? have_executor(r, e) : k;
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
	remote_free_batch(r);
	free(r);
}

int remote_judge_code(pid_t tid, const struct user_regs_struct *regs, struct err *e)
{
	struct __ptrace_syscall_info info = {0};

	if (regs->cs == CODE_32)
		return 0;
	if (regs->cs != CODE_64)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"task %d runs in a code segment of its own", tid);
	if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof(info), &info) < 0 ||
		(long)regs->orig_rax < 0 || info.arch != AUDIT_ARCH_I386)
		return 0;
	return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
		"task %d, a 64-bit program, is in a system call of 32-bit programs (int 0x80)",
		tid);
}

static int read_state(struct remote *r, struct err *e)
{
	if (ptrace(PTRACE_GETREGS, r->tid, 0, &r->regs) < 0)
		return err_errno(e, -errno, "read registers of task %d", r->tid);
	if (remote_judge_code(r->tid, &r->regs, e) < 0)
		return e->error;
	if (trace_get_mask(r->tid, &r->mask) < 0)
		return err_errno(e, -errno, "read signal mask of task %d", r->tid);
	return 0;
}

static int open_new(
	struct remote **ret, int proc_fd, pid_t tid, uint64_t hint, bool guarded, struct err *e)
{
	struct remote *r = new_remote(proc_fd, tid, NULL);
	int k;

	if (!r)
		return err_errno(e, -ENOMEM, "open task %d", tid);
	r->guarded = guarded;
	k = read_state(r, e);
	if (k == 0) {
		k = map_area(r, hint, e);
		if (k < 0)
			remote_put_back(r);
		remote_boot_wipe(r);
	}
	if (k < 0) {
		remote_forget(r);
		return k;
	}
	*ret = r;
	return 0;
}

int remote_open(struct remote **ret, int proc_fd, pid_t tid, uint64_t hint, struct err *e)
{
	return open_new(ret, proc_fd, tid, hint, false, e);
}

int remote_open_guarded(struct remote **ret, int proc_fd, pid_t tid, uint64_t hint, struct err *e)
{
	return open_new(ret, proc_fd, tid, hint, true, e);
}

/*
 * What a step of one of many has come to: unless that is 0 it is no more among them, and the task
 * as it was.
 */
static void judge_step(struct remote **r, int k)
{
	if (k < 0) {
		remote_put_back(*r);
		remote_boot_wipe(*r);
	}
	if (k != 0)
		remote_forget(take_ptr(*r));
}

/* All who are still there are let go, and then waited for. */
static void open_step(struct remote **list, size_t n, int (*start)(struct remote *r, struct err *e),
	int (*have)(struct remote *r, struct err *e))
{
	for (size_t i = 0; i < n; i++)
		if (list[i])
			judge_step(&list[i], start(list[i], NULL));
	for (size_t i = 0; i < n; i++)
		if (list[i])
			judge_step(&list[i], have(list[i], NULL));
}

void remote_open_many(struct remote **ret, int proc_fd, const pid_t *tids, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		ret[i] = new_remote(proc_fd, tids[i], NULL);
		if (ret[i] && read_state(ret[i], NULL) < 0)
			remote_forget(take_ptr(ret[i]));
	}
	open_step(ret, n, start_boot_mmap, have_boot_mmap);
	open_step(ret, n, start_executor, have_executor);
	for (size_t i = 0; i < n; i++)
		if (ret[i])
			remote_boot_wipe(ret[i]);
}

void remote_set_guarded(struct remote *r)
{
	r->guarded = true;
}

struct remote *remote_observe(int proc_fd, pid_t tid, uint64_t area, struct err *e)
{
	struct remote *r = new_remote(proc_fd, tid, NULL);

	if (!r || read_state(r, e) < 0) {
		if (!r)
			err_errno(e, -ENOMEM, "open task %d", tid);
		remote_forget(r);
		return NULL;
	}
	r->area->addr = area;
	return r;
}

/* In the pages, or with its stack there as the last step of healing has. */
static bool is_inside(pid_t tid, uint64_t area)
{
	struct user_regs_struct g;

	if (ptrace(PTRACE_GETREGS, tid, 0, &g) < 0)
		return false;
	return g.rip - area < REMOTE_AREA_SIZE || g.rsp - area < REMOTE_AREA_SIZE;
}

static bool has_code(struct remote *r)
{
	uint8_t code[PAGE_SIZE];
	size_t len = (size_t)(remote_exec_end - remote_exec_begin);

	return remote_peek(r, r->area->addr + AREA_CODE, code, len, NULL) == 0 &&
	       !memcmp(code, remote_exec_begin, len);
}

int remote_open_left(struct remote **ret, int proc_fd, pid_t tid, uint64_t address,
	const pid_t *others, size_t n_others, struct err *e)
{
	struct remote *r;
	bool inside = is_inside(tid, address);

	for (size_t i = 0; i < n_others; i++)
		inside |= is_inside(others[i], address);
	if (inside)
		return err_set(e, ERR_FAILED, -EAGAIN, "task %d has not healed yet", tid);
	r = remote_observe(proc_fd, tid, address, e);
	if (!r)
		return e->error;
	if (!has_code(r)) {
		remote_forget(r);
		return err_set(e, ERR_FAILED, -ENOENT, "task %d has no pages of ours", tid);
	}
	r->area->left = true;
	*ret = r;
	return 0;
}

void remote_leave(struct remote *r, bool leave)
{
	r->area->left = leave;
}

/* A new task's first stop may still have to come, or to be taken note of. */
static int await_birth(struct remote *r, struct err *e)
{
	uint64_t deadline = io_now_ns() + BIRTH_TIMEOUT_NS;
	struct user_regs_struct probe;
	int status, k;

	if (waitpid(r->tid, &status, __WALL | WNOHANG) == r->tid)
		return WIFSTOPPED(status) ? 0 : remote_died(r, e);
	/* It has been taken note of, or has come since: then that is nobody else's to find. */
	if (!ptrace(PTRACE_GETREGS, r->tid, 0, &probe)) {
		waitpid(r->tid, &status, __WALL | WNOHANG);
		return 0;
	}
	k = trace_wait(r->proc_fd, r->tid, deadline, &status);
	return k < 0 ? err_errno(e, k, "wait for new task %d", r->tid) : 0;
}

/* In the executor's pages or the door, behind a clone: nothing else puts a task there. */
static bool just_born(const struct remote *r)
{
	uint64_t code = r->area->addr + AREA_CODE;

	if (r->regs.rip == PODRUN_DOOR)
		return true;
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

	if (!r)
		return err_errno(e, -ENOMEM, "open task %d", tid);
	r->guarded = sibling->guarded;
	return open_with(r, ret, e);
}

int remote_open_child(struct remote **ret, pid_t tid, struct remote *parent, struct err *e)
{
	struct remote *r = new_remote(parent->proc_fd, tid, NULL);

	if (!r)
		return err_errno(e, -ENOMEM, "open task %d", tid);
	r->area->addr = parent->area->addr;
	r->guarded = parent->guarded;
	return open_with(r, ret, e);
}
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

int remote_note(struct remote *r, uint64_t note, struct err *e)
{
	return remote_poke(r, r->area->addr + AREA_NOTE, &note, sizeof(note), e);
}

uint64_t remote_left_note(pid_t tid, uint64_t area)
{
	uint64_t note = 0;
	struct iovec local = {&note, sizeof(note)},
		     there = {(void *)(area + AREA_NOTE), sizeof(note)};

	return process_vm_readv(tid, &local, 1, &there, 1, 0) == sizeof(note) ? note : 0;
}

int remote_note_child(struct remote *r, long child, struct err *e)
{
	int64_t note = child;

	return remote_poke(r, r->area->addr + AREA_CHILD, &note, sizeof(note), e);
}

long remote_left_child(pid_t tid, uint64_t area)
{
	struct entry first = {0};
	int64_t note = 0;
	struct iovec local[] = {{&first, sizeof(first)}, {&note, sizeof(note)}},
		     there[] = {{(void *)(area + AREA_TABLE), sizeof(first)},
			     {(void *)(area + AREA_CHILD), sizeof(note)}};

	if (process_vm_readv(tid, local, 2, there, 2, 0) != sizeof(first) + sizeof(note))
		return 0;
	if (note > 0)
		return (long)note;
	if (first.nr != SYS_clone || first.args[5] != REMOTE_CHILD)
		return 0;
	return MAX((long)first.ret, 0);
}

bool remote_is_left(pid_t tid, const struct proc_vma *vma)
{
	size_t len = (size_t)(remote_exec_end - remote_exec_begin);
	_cleanup_free_ uint8_t *code = malloc(len);
	struct iovec local = {code, len}, there = {(void *)vma->start, len};

	return code && !vma->shared && !vma->ino && vma->prot == (PROT_READ | PROT_EXEC) &&
	       process_vm_readv(tid, &local, 1, &there, 1, 0) == (ssize_t)len &&
	       memcmp(code, remote_exec_begin, len) == 0;
}

/* ---- closing ------------------------------------------------------------------------------ */

/* The pages go, in two steps: 1 when not this way. */
static int start_boot_munmap(struct remote *r, struct err *e)
{
	uint64_t at = remote_boot_place(r);
	struct user_regs_struct g = r->regs;

	if (!at || remote_boot_put(r, at) < 0)
		return 1;
	if (remote_runs_32(r)) {
		g.rax = I386_MUNMAP;
		g.rbx = r->area->addr;
		g.rcx = REMOTE_AREA_SIZE;
	} else {
		g.rax = SYS_munmap;
		g.rdi = r->area->addr;
		g.rsi = REMOTE_AREA_SIZE;
	}
	return remote_boot_start(r, &g, e);
}

/* The task stands at a sentinel as before. */
static int have_boot_munmap(struct remote *r, struct err *e)
{
	uint64_t ignored;
	int k = remote_boot_wait(r, &ignored, e);

	return k == 0 ? remote_stand(r, e) : k;
}

/*
 * From the sentinel stop to a PTRACE_EVENT_STOP.  For the last remote of the area the sentinel
 * becomes munmap; should that fail the pages stay, and nobody is the worse for it.
 */
static int start_leaving(struct remote *r, bool last, struct err *e)
{
	struct user_regs_struct g = remote_user_regs(r);

	if (last) {
		g.orig_rax = SYS_munmap;
		/* What munmap returns is no number of a call. */
		g.rip = r->guarded ? PODRUN_DOOR : r->regs.rip;
		g.rdi = r->area->addr;
		g.rsi = REMOTE_AREA_SIZE;
	}
	return remote_go_to_event_stop(r, &g, e);
}

/* It stands in a PTRACE_EVENT_STOP. */
static int be_as_before(struct remote *r, struct err *e)
{
	int k = remote_set_regs(r, &r->regs, e);

	if (k == 0)
		k = remote_set_mask(r, r->mask, e);
	if (k == 0 && r->held_stop)
		syscall(SYS_tkill, r->tid, SIGSTOP);
	return k;
}

/* One of those that are closed together. */
struct closing {
	struct remote *r;
	bool last, boot; /* unmaps the pages; and does so from behind the vDSO */
	int k;
	struct err e;
};

static void close_begin(struct closing *c)
{
	struct remote *r = c->r;

	c->k = r->where == GONE ? remote_died(r, &c->e) : 0;
	/* It opened its sibling's area and never ran a batch: now it must, to get rid of it. */
	if (c->k == 0 && c->last && r->where == AT_STOP) {
		remote_clear_batch(r);
		c->k = remote_run(r, false, &c->e);
	}
	if (c->k < 0 || !c->last || r->where != AT_SENTINEL)
		return;
	c->k = start_boot_munmap(r, &c->e);
	c->boot = c->k == 0;
	if (c->k < 0)
		remote_put_back(r);
	c->k = MIN(c->k, 0);
}

static void close_leave(struct closing *c)
{
	if (c->boot) {
		c->k = have_boot_munmap(c->r, &c->e);
		if (c->k < 0)
			remote_put_back(c->r);
	}
	if (c->k == 0 && c->r->where == AT_SENTINEL)
		c->k = start_leaving(c->r, c->last && !c->boot, &c->e);
}

static void close_end(struct closing *c)
{
	if (c->k == 0 && c->r->going)
		c->k = remote_go_until(c->r, WANT_EVENT_STOP, &c->e);
	if (c->k == 0)
		c->k = be_as_before(c->r, &c->e);
	remote_boot_wipe(c->r);
	remote_forget(c->r);
}

static void close_some(struct closing *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		close_begin(&c[i]);
	for (size_t i = 0; i < n; i++)
		close_leave(&c[i]);
	for (size_t i = 0; i < n; i++)
		close_end(&c[i]);
}

int remote_close(struct remote *r, struct err *e)
{
	struct closing c = {.r = r};

	if (!r)
		return 0;
	c.last = r->area->refs == 1 && !r->area->left;
	close_some(&c, 1);
	if (c.k < 0 && e)
		*e = c.e;
	return c.k;
}

/*
 * Some of @list from *at on: all, or such that each leaves its pages to another.  Returns how many.
 */
static size_t pick(struct remote **list, size_t n, size_t *at, bool all, struct closing *c)
{
	size_t k = 0;

	for (; *at < n && k < CLOSE_AT_ONCE; ++*at) {
		struct remote_area *area = list[*at] ? list[*at]->area : NULL;

		if (!area || (!all && area->refs - area->leaving == 1))
			continue;
		c[k] = (struct closing){.r = take_ptr(list[*at])};
		if (all)
			c[k].last = area->refs == 1 && !area->left;
		else
			area->leaving++;
		k++;
	}
	return k;
}

/* First those who are not the last of their memory. */
void remote_close_all(struct remote **list, size_t n)
{
	for (int all = 0; all < 2; all++) {
		for (size_t at = 0; at < n;) {
			struct closing c[CLOSE_AT_ONCE];
			size_t k = pick(list, n, &at, all, c);

			for (size_t i = 0; i < k && !all; i++)
				c[i].r->area->leaving--;
			close_some(c, k);
			for (size_t i = 0; i < k; i++)
				if (c[i].k < 0)
					log_info("thaw: %s", c[i].e.msg);
		}
	}
}
