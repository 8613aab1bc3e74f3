// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * boot - the call that maps the pages, and the one that unmaps them.
 *
 * Theory of operation
 *
 * When these are made no page of ours is in the task that could put its registers back, should the
 * tracer be killed meanwhile.  But behind the end of the vDSO there is room to the end of the page,
 * which nobody uses, and what is written there is the process's own (a private copy of that page
 * stays with it).  So a tiny executor is put there for the moment:
 *
 *      syscall                 registers as the tracer loads them
 *      SYS_PODRUN_SENTINEL     the stop
 *      heal                    mask and registers from a block behind the code
 *
 * As it has no room for a stack, and can't be written to by the task, it touches neither stack nor
 * flags.  For a 32-bit task, whose calls find room only where it has some, the call is `int $0x80`.
 * Where there is no such room the call is made by a `syscall` of the task's own (area.c), and so
 * it is in a guarded task.  What was put there is wiped out when the task stands somewhere else.
 */
#include "ckpt/remote/inside.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>

#define MAX_AUXV  64
#define MAX_PHDRS 8
#define MAX_VDSO  (64 * 1024UL)
#define TRAP_FLAG 0x100UL
static_assert(REMOTE_BOOT_SIZE % 16 == 0, "as the code was aligned");

static const uint8_t int_80[] = {0xcd, 0x80};

static bool peek(pid_t tid, uint64_t at, void *data, size_t len)
{
	struct iovec local = {data, len}, there = {(void *)at, len};

	return process_vm_readv(tid, &local, 1, &there, 1, 0) == (ssize_t)len;
}

/* Where the task was told that its vDSO is. */
static uint64_t vdso_of(int proc_fd, pid_t tid)
{
	_cleanup_close_ int fd = proc_open_file(proc_fd, tid, "auxv", O_RDONLY, NULL);
	union {
		Elf64_auxv_t wide[MAX_AUXV];
		Elf32_auxv_t narrow[2 * MAX_AUXV];
	} v;
	ssize_t n = fd < 0 ? 0 : io_read_full(fd, &v, sizeof(v));

	for (ssize_t i = 0; i < n / (ssize_t)sizeof(v.wide[0]) && v.wide[i].a_type != AT_NULL; i++)
		if (v.wide[i].a_type == AT_SYSINFO_EHDR)
			return v.wide[i].a_un.a_val;
	/* A 32-bit program's has other words: none of them look like that. */
	for (ssize_t i = 0; i < n / (ssize_t)sizeof(v.narrow[0]) && v.narrow[i].a_type != AT_NULL;
		i++)
		if (v.narrow[i].a_type == AT_SYSINFO_EHDR)
			return v.narrow[i].a_un.a_val;
	return 0;
}

/* How far an ELF file reaches that is loaded as one piece; 0 for none, or not so. */
static uint64_t end_of_64(pid_t tid, uint64_t base)
{
	Elf64_Phdr ph[MAX_PHDRS];
	Elf64_Ehdr h;
	uint64_t end;

	if (!peek(tid, base, &h, sizeof(h)) || h.e_machine != EM_X86_64 ||
		h.e_phentsize != sizeof(ph[0]) || h.e_phnum > ARRAY_SIZE(ph) ||
		h.e_phoff > PAGE_SIZE || h.e_shoff > MAX_VDSO ||
		!peek(tid, base + h.e_phoff, ph, h.e_phnum * sizeof(ph[0])))
		return 0;
	end = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize;
	for (int i = 0; i < h.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_offset < MAX_VDSO &&
			ph[i].p_memsz < MAX_VDSO)
			end = MAX(end, ph[i].p_offset + ph[i].p_memsz);
	return end;
}

static uint64_t end_of_32(pid_t tid, uint64_t base)
{
	Elf32_Phdr ph[MAX_PHDRS];
	Elf32_Ehdr h;
	uint64_t end;

	if (!peek(tid, base, &h, sizeof(h)) || h.e_machine != EM_386 ||
		h.e_phentsize != sizeof(ph[0]) || h.e_phnum > ARRAY_SIZE(ph) ||
		h.e_phoff > PAGE_SIZE || h.e_shoff > MAX_VDSO ||
		!peek(tid, base + h.e_phoff, ph, h.e_phnum * sizeof(ph[0])))
		return 0;
	end = h.e_shoff + (uint64_t)h.e_shnum * h.e_shentsize;
	for (int i = 0; i < h.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_offset < MAX_VDSO &&
			ph[i].p_memsz < MAX_VDSO)
			end = MAX(end, (uint64_t)ph[i].p_offset + ph[i].p_memsz);
	return end;
}

/* The room at the end of the last page of what is an ELF file at @base; 0 if there is none. */
static uint64_t room_behind(pid_t tid, uint64_t base)
{
	uint8_t ident[EI_NIDENT];
	uint64_t end, room;

	if (!base || base % PAGE_SIZE || !peek(tid, base, ident, sizeof(ident)) ||
		memcmp(ident, ELFMAG, SELFMAG))
		return 0;
	end = ident[EI_CLASS] == ELFCLASS64 ? end_of_64(tid, base) : end_of_32(tid, base);
	if (!end)
		return 0;
	room = ALIGN_UP(end, PAGE_SIZE) - REMOTE_BOOT_SIZE;
	return end <= MAX_VDSO && room >= end ? base + room : 0;
}

uint64_t remote_boot_place(struct remote *r)
{
	uint8_t now[REMOTE_BOOT_SIZE], none[REMOTE_BOOT_SIZE] = {0};
	uint64_t at;

	if (r->guarded || r->born || r->regs.eflags & TRAP_FLAG)
		return 0;
	at = r->area->room;
	if (!at)
		at = r->area->room = room_behind(r->tid, vdso_of(r->proc_fd, r->tid));
	return at && peek(r->tid, at, now, sizeof(now)) && !memcmp(now, none, sizeof(now)) ? at : 0;
}

int remote_boot_put(struct remote *r, uint64_t at)
{
	size_t len = (size_t)(remote_boot_heal - remote_boot_begin);
	uint8_t all[REMOTE_BOOT_SIZE] = {0};
	struct heal h;

	if (len + sizeof(h) > sizeof(all))
		return -ENOSPC;
	remote_fill_heal(r, &h, at + (uint64_t)(remote_boot_far - remote_boot_begin));
	memcpy(all, remote_boot_begin, len);
	if (remote_runs_32(r))
		memcpy(all, int_80, sizeof(int_80));
	memcpy(all + len, &h, sizeof(h));
	/* Where it is closed to us words are poked one by one. */
	r->area->mem = proc_open_file(r->proc_fd, r->tid, "mem", O_RDWR, NULL);
	r->area->boot = at;
	return remote_force(r, r->area->mem, at, all, sizeof(all));
}

void remote_boot_wipe(struct remote *r)
{
	static const uint8_t none[REMOTE_BOOT_SIZE];

	if (!r->area->boot)
		return;
	if (r->where != GONE &&
		remote_force(r, r->area->mem, r->area->boot, none, sizeof(none)) < 0)
		log_debug("task %d keeps what was behind its vDSO", r->tid);
	close_fd(r->area->mem);
	r->area->boot = 0;
}

int remote_boot_start(struct remote *r, const struct user_regs_struct *call, struct err *e)
{
	struct user_regs_struct g = *call;
	int k;

	g.orig_rax = (unsigned long)-1;
	g.cs = CODE_64;
	g.rip = r->area->boot;
	/* Registers first: whatever runs from now on heals, with any mask. */
	k = remote_set_regs(r, &g, e);
	if (k == 0)
		k = remote_set_mask(r, ALL_SIGNALS, e);
	return k == 0 ? remote_go(r, WANT_SENTINEL, e) : k;
}

int remote_boot_wait(struct remote *r, uint64_t *ret, struct err *e)
{
	struct user_regs_struct g;
	int k = remote_go_until(r, WANT_SENTINEL, e);

	if (k == 0 && ptrace(PTRACE_GETREGS, r->tid, 0, &g) < 0)
		k = remote_died(r, e);
	if (k == 0)
		*ret = g.rbx;
	return k;
}

/* ---- the tracer was killed ---------------------------------------------------------------- */

uint64_t remote_boot_left(int proc_fd, pid_t tid)
{
	size_t len = (size_t)(remote_boot_heal - remote_boot_begin);
	uint64_t at = room_behind(tid, vdso_of(proc_fd, tid));
	uint8_t now[REMOTE_BOOT_SIZE];

	/* But for the first instruction, of which there are two (remote_boot_put). */
	return at && peek(tid, at, now, sizeof(now)) &&
			       !memcmp(now + sizeof(int_80), remote_boot_begin + sizeof(int_80),
				       len - sizeof(int_80))
		       ? at
		       : 0;
}

void remote_boot_remove(int proc_fd, pid_t tid, uint64_t at)
{
	struct remote_area area = {
		.boot = at, .mem = proc_open_file(proc_fd, tid, "mem", O_RDWR, NULL)};
	struct remote r = {.tid = tid, .proc_fd = proc_fd, .area = &area};

	remote_boot_wipe(&r);
}
