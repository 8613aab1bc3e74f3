// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * map - the mappings of a record, made in a blank task.
 *
 * Theory of operation
 *
 * Every mapping is made with its final protection and place by calls in the task; the batch is run
 * whenever its table is full.  Order:
 *
 *      System V segments    shmat maps a whole segment: what the image has cut away of it is
 *                           unmapped again, before anything else may lie there
 *      all others           by address; a file is opened once for the mappings that follow each
 *                           other (the segments of a library)
 *      guards, names        which need the mappings
 *      brk, auxv, exe       PR_SET_MM_MAP
 *
 * MAP_FIXED_NOREPLACE makes a damaged image fail rather than replace the executor's pages.
 *
 * The stack of the first thread is made as large as it may become: mappings of the resumed
 * session are put where this process's (not the image's) layout wants them, which may be right
 * below the stack; untouched pages cost nothing.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/shm.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/sysv.h"
#include "ckpt/memory/memory.h"
#include "ckpt/where.h"
#include "proto/memory.pb-c.h"

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08 /* linux/mman.h, 6.11 */
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* asm-generic/mman-common.h, 6.13 */
#endif
#ifndef MLOCK_ONFAULT
#define MLOCK_ONFAULT 1
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA	     0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#define GROUP_ROOM 16 /* calls that one mapping may need */
#define MAX_AUXV   1024
#define PIECE	   ((uint64_t)1 << 30)
#define MOST_PIECES 1024

#define HAS(m, name) ((m)->flags & PB__MAPPING_FLAG__MAPPING_##name)

/* A batch in which every call must succeed, and what each is for. */
struct batch {
	struct ckpt_build *b;
	struct ckpt_build_proc *p;
	struct remote *r;
	const Pb__Mm *mm;
	size_t n, data; /* calls, and bytes of their arguments */
	struct {
		const Pb__Mapping *m; /* or NULL */
		const char *what;
		bool optional;
	} calls[REMOTE_MAX_CALLS];
	/* the file that is open in the task, by this batch */
	int open_call; /* -1: none */
	const Pb__Mapping *open_for;
};

/* ---- batches -------------------------------------------------------------------------------- */

static const char *source_name(const struct batch *t, const Pb__Mapping *m)
{
	if (m->source == PB__MAPPING_SOURCE__MAPPING_SYSV)
		return "System V shared memory";
	if (m->source == PB__MAPPING_SOURCE__MAPPING_SHARED)
		return "shared memory";
	if (m->source == PB__MAPPING_SOURCE__MAPPING_PATH && m->object < t->mm->n_files)
		return t->mm->files[m->object]->path;
	return "anonymous";
}

static int note(struct batch *t, int call, const Pb__Mapping *m, const char *what)
{
	if (call < 0 || (size_t)call >= ARRAY_SIZE(t->calls))
		return -ENOSPC;
	for (; t->n <= (size_t)call; t->n++) {
		t->calls[t->n].m = m;
		t->calls[t->n].what = what;
		t->calls[t->n].optional = false;
	}
	return call;
}

static int close_file(struct batch *t)
{
	int call;

	if (t->open_call < 0)
		return 0;
	struct remote_arg args[6] = {REMOTE_RESULT(t->open_call)};

	call = note(t, remote_add_args(t->r, SYS_close, args), NULL, "close");
	t->open_call = -1;
	t->open_for = NULL;
	return call < 0 ? call : 0;
}

static int run(struct batch *t, struct err *e)
{
	int r = close_file(t);

	if (r < 0)
		return err_errno(e, r, "too many calls in one batch");
	if (!t->n)
		return 0;
	r = remote_run(t->r, false, e);
	for (size_t i = 0; i < t->n && r >= 0; i++) {
		long result = remote_result(t->r, (int)i);
		const Pb__Mapping *m = t->calls[i].m;

		if (result >= 0 || result < -4095 || t->calls[i].optional)
			continue;
		r = err_errno(e, (int)result, "%s", t->calls[i].what);
		if (m)
			r = err_wrap(e, "cannot restore mapping %llx-%llx (%s)",
				(unsigned long long)m->start, (unsigned long long)m->end,
				source_name(t, m));
	}
	t->n = t->data = 0;
	return r;
}

/* Makes sure that one mapping's calls and @data bytes fit. */
static int make_room(struct batch *t, size_t data, struct err *e)
{
	int r = 0;

	if (t->n + GROUP_ROOM > REMOTE_MAX_CALLS || t->data + data > REMOTE_DATA_SIZE - PAGE_SIZE)
		r = run(t, e);
	t->data += data;
	return r;
}

static int call3(struct batch *t, const Pb__Mapping *m, const char *what, long nr, uint64_t a0,
	uint64_t a1, uint64_t a2)
{
	return note(t, remote_add(t->r, nr, a0, a1, a2, 0, 0, 0), m, what);
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool wants_write(const Pb__Mapping *m)
{
	return HAS(m, IS_SHARED) && HAS(m, MAYWRITE);
}

static int open_path(struct batch *t, const Pb__Mapping *m, struct err *e)
{
	const Pb__MappedFile *f;
	char room[PATH_MAX];
	uint64_t path;
	int r;

	if (m->object >= t->mm->n_files)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a mapping names file %llu of %zu",
			(unsigned long long)m->object, t->mm->n_files);
	f = t->mm->files[m->object];
	r = ckpt_file_recognise(t->b, f, wants_write(m), e);
	if (r == 0 && wants_write(m))
		r = ckpt_where_alone(t->b->world, "file", f->path, e);
	if (r < 0)
		return r;
	path = remote_put_str(t->r, ckpt_where_host(t->b->world, f->path, room));
	if (!path)
		return err_errno(e, -ENOSPC, "too many calls in one batch");
	return note(t,
		remote_add(t->r, SYS_openat, (uint64_t)AT_FDCWD, path,
			(wants_write(m) ? O_RDWR : O_RDONLY) | O_CLOEXEC, 0, 0, 0),
		m, "open");
}

static int lend_object(struct batch *t, const Pb__Mapping *m, struct err *e)
{
	int fd, call;
	int r = ckpt_shared_fd(t->b, m->object, wants_write(m), &fd, e);

	if (r < 0)
		return r;
	call = ckpt_build_lend(t->b, t->r, fd, e);
	if (call < 0)
		return call;
	return note(t, call, m, "pidfd_getfd");
}

/* The call of this batch that gives the descriptor for @m. */
static int file_call(struct batch *t, const Pb__Mapping *m, struct err *e)
{
	const Pb__Mapping *have = t->open_for;
	int call;

	if (t->open_call >= 0 && have->source == m->source && have->object == m->object &&
		wants_write(have) == wants_write(m))
		return t->open_call;
	if (close_file(t) < 0)
		return err_errno(e, -ENOSPC, "too many calls in one batch");
	call = m->source == PB__MAPPING_SOURCE__MAPPING_PATH ? open_path(t, m, e)
							     : lend_object(t, m, e);
	if (call >= 0) {
		t->open_call = call;
		t->open_for = m;
	}
	return call;
}

/* ---- one mapping ---------------------------------------------------------------------------- */

static const struct {
	uint32_t flag;
	int advice;
} advices[] = {
	{PB__MAPPING_FLAG__MAPPING_DONTFORK, MADV_DONTFORK},
	{PB__MAPPING_FLAG__MAPPING_WIPEONFORK, MADV_WIPEONFORK},
	{PB__MAPPING_FLAG__MAPPING_DONTDUMP, MADV_DONTDUMP},
	{PB__MAPPING_FLAG__MAPPING_HUGEPAGE, MADV_HUGEPAGE},
	{PB__MAPPING_FLAG__MAPPING_NOHUGEPAGE, MADV_NOHUGEPAGE},
	{PB__MAPPING_FLAG__MAPPING_MERGEABLE, MADV_MERGEABLE},
	{PB__MAPPING_FLAG__MAPPING_SEQUENTIAL, MADV_SEQUENTIAL},
	{PB__MAPPING_FLAG__MAPPING_RANDOM, MADV_RANDOM},
};

static void advise(struct batch *t, const Pb__Mapping *m, uint64_t start)
{
	for (size_t i = 0; i < ARRAY_SIZE(advices); i++) {
		if (!(m->flags & advices[i].flag))
			continue;
		int call = call3(t, m, "madvise", SYS_madvise, start, m->end - start,
			(uint64_t)advices[i].advice);

		/* advice about speed alone may be unknown to this kernel */
		if (call >= 0)
			t->calls[call].optional = advices[i].advice != MADV_DONTFORK &&
						  advices[i].advice != MADV_WIPEONFORK;
	}
	if (*m->name) {
		uint64_t name = remote_put_str(t->r, m->name);
		int call = note(t,
			remote_add(t->r, SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, start,
				m->end - start, name, 0),
			m, "prctl");

		if (call >= 0)
			t->calls[call].optional = true;
	}
}

/* Where the stack of the first thread may grow to, with nothing of the image in between. */
static uint64_t stack_start(const Pb__Mm *mm, size_t i)
{
	const Pb__Mapping *m = mm->mappings[i];
	uint64_t room = MIN(mm->stack_limit, CKPT_STACK_ROOM), floor, start;

	if (!HAS(m, GROWSDOWN) || mm->start_stack < m->start || mm->start_stack >= m->end)
		return m->start;
	/* the kernel keeps a megabyte below a stack that may grow */
	floor = (i ? mm->mappings[i - 1]->end : 0) + (2UL << 20);
	start = ALIGN_DOWN(m->end - MIN(room, m->end), PAGE_SIZE);
	start = MAX(start, ALIGN_UP(floor, PAGE_SIZE));
	return MIN(start, m->start);
}

/*
 * Droppable memory, unknown before Linux 6.11: there, plain memory that a child doesn't see.  It is
 * made by itself, so that the one can be tried before the other.
 */
static int map_droppable(struct batch *t, const Pb__Mapping *m, struct err *e)
{
	uint64_t len = m->end - m->start, prot = ckpt_keys_prot(t->mm, m);
	uint64_t flags = MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
	long value;
	int r = run(t, e);

	if (r >= 0)
		r = remote_call(t->r, &value, e, SYS_mmap, m->start, len, prot,
			flags | MAP_DROPPABLE, (uint64_t)-1, 0);
	if (r >= 0 && value == -EINVAL) {
		r = remote_call(t->r, &value, e, SYS_mmap, m->start, len, prot,
			flags | MAP_PRIVATE | MAP_NORESERVE, (uint64_t)-1, 0);
		if (r >= 0 && value >= 0)
			r = remote_must(t->r, NULL, e, SYS_madvise, m->start, len, MADV_WIPEONFORK,
				0, 0, 0);
	}
	if (r >= 0 && value < 0 && value >= -4095)
		r = err_errno(e, (int)value, "cannot restore mapping %llx-%llx (droppable)",
			(unsigned long long)m->start, (unsigned long long)m->end);
	return r;
}

/* Huge pages, of which this host may have too few, or none of that size. */
static int map_huge(struct batch *t, const Pb__Mapping *m, struct err *e)
{
	uint64_t len = m->end - m->start, prot = ckpt_keys_prot(t->mm, m);
	uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
	long value;
	int r;

	if (m->source != PB__MAPPING_SOURCE__MAPPING_ANON || (m->huge_page & (m->huge_page - 1)))
		return err_set(e, ERR_IMAGE, -EBADMSG, "a mapping of nonsensical huge pages");
	flags |= MAP_FIXED_NOREPLACE | (HAS(m, NORESERVE) ? MAP_NORESERVE : 0);
	flags |= (uint64_t)__builtin_ctzll(m->huge_page) << MAP_HUGE_SHIFT;
	r = run(t, e);
	if (r >= 0)
		r = remote_call(
			t->r, &value, e, SYS_mmap, m->start, len, prot, flags, (uint64_t)-1, 0);
	if (r < 0)
		return r;
	if (value == -ENOMEM || value == -EINVAL || value == -ENODEV) {
		err_set(e, ERR_HOST, (int)value,
			"this host has not enough huge pages for %llu MiB in pages of %llu MiB",
			(unsigned long long)len >> 20, (unsigned long long)m->huge_page >> 20);
		return err_hint(e, "sysctl vm.nr_hugepages");
	}
	if (value < 0 && value >= -4095)
		return err_errno(e, (int)value, "cannot restore mapping %llx-%llx (huge pages)",
			(unsigned long long)m->start, (unsigned long long)m->end);
	advise(t, m, m->start);
	return 0;
}

/* Bytes of arguments that @m may need. */
static size_t names_len(const struct batch *t, const Pb__Mapping *m)
{
	size_t len = strlen(m->name) + 16;

	if (m->source == PB__MAPPING_SOURCE__MAPPING_PATH && m->object < t->mm->n_files)
		len += strlen(t->mm->files[m->object]->path) + 16;
	return len + 64; /* what lending takes */
}

/*
 * How much of what is left, @len bytes, one call maps.  The kernel refuses a call for more than all
 * of its memory (vm.overcommit_memory of 0) and nothing else; what a program has mapped by and by
 * may be one mapping of far more, hardly touched.  Neighbours become one again.
 */
static uint64_t piece_of(const Pb__Mapping *m, uint64_t len)
{
	bool counts = m->source == PB__MAPPING_SOURCE__MAPPING_ANON && (m->prot & PROT_WRITE) &&
		      !HAS(m, IS_SHARED) && !HAS(m, NORESERVE) && !HAS(m, GROWSDOWN);
	uint64_t piece = ALIGN_UP((m->end - m->start) / MOST_PIECES, PIECE);

	piece = MAX(piece, PIECE);
	return counts ? MIN(len, piece) : len;
}

/* The part of @m from @start on that one call maps. */
static int map_from(struct batch *t, const Pb__Mapping *m, uint64_t start, struct err *e)
{
	uint64_t flags = MAP_FIXED_NOREPLACE;
	struct remote_arg args[6] = {REMOTE_ARG(start), REMOTE_ARG(piece_of(m, m->end - start)),
		REMOTE_ARG(ckpt_keys_prot(t->mm, m)), REMOTE_ARG(0), REMOTE_ARG(-1),
		REMOTE_ARG(m->offset)};
	int r, file;

	r = make_room(t, names_len(t, m), e);
	if (r < 0)
		return r;
	flags |= HAS(m, IS_SHARED) ? MAP_SHARED : MAP_PRIVATE;
	flags |= HAS(m, GROWSDOWN) ? MAP_GROWSDOWN : 0;
	flags |= HAS(m, NORESERVE) ? MAP_NORESERVE : 0;
	if (m->source == PB__MAPPING_SOURCE__MAPPING_ANON) {
		flags |= MAP_ANONYMOUS;
		args[5] = REMOTE_ARG(0);
	} else {
		file = file_call(t, m, e);
		if (file < 0)
			return file;
		args[4] = REMOTE_RESULT(file);
	}
	args[3] = REMOTE_ARG(flags);
	if (note(t, remote_add_args(t->r, SYS_mmap, args), m, "mmap") < 0)
		return err_errno(e, -ENOSPC, "too many calls in one batch");
	return 0;
}

static int map_one(struct batch *t, size_t i, struct err *e)
{
	const Pb__Mapping *m = t->mm->mappings[i];
	uint64_t start = stack_start(t->mm, i);
	int r = 0;

	if (HAS(m, DROPPABLE) && m->source == PB__MAPPING_SOURCE__MAPPING_ANON)
		return map_droppable(t, m, e);
	if (m->huge_page)
		return map_huge(t, m, e);
	for (uint64_t at = start; r == 0 && at < m->end; at += piece_of(m, m->end - at))
		r = map_from(t, m, at, e);
	if (r == 0)
		advise(t, m, start);
	return r;
}

/* ---- System V segments ---------------------------------------------------------------------- */

static bool is_sysv(const Pb__Mapping *m)
{
	return m->source == PB__MAPPING_SOURCE__MAPPING_SYSV;
}

/* Unmaps what of the segment, mapped at @base, the image doesn't have; what lies before @i has
 * been done. */
static int cut_segment(struct batch *t, size_t i, uint64_t base, uint64_t size, struct err *e)
{
	const Pb__Mm *mm = t->mm;
	uint64_t at = base, end = base + ALIGN_UP(size, PAGE_SIZE);

	for (; at < end && i <= mm->n_mappings; i++) {
		const Pb__Mapping *m = i < mm->n_mappings ? mm->mappings[i] : NULL;
		uint64_t next = m ? MIN(m->start, end) : end;
		int r = make_room(t, 0, e);

		if (r < 0)
			return r;
		if (m && m->start < end && (!is_sysv(m) || m->start - m->offset != base))
			continue; /* another mapping in the gap: it is unmapped with it */
		if (next > at && call3(t, NULL, "munmap", SYS_munmap, at, next - at, 0) < 0)
			return err_errno(e, -ENOSPC, "too many calls in one batch");
		if (!m || m->start >= end)
			break;
		if (call3(t, m, "mprotect", SYS_mprotect, m->start, m->end - m->start,
			    ckpt_keys_prot(mm, m)) < 0)
			return err_errno(e, -ENOSPC, "too many calls in one batch");
		advise(t, m, m->start);
		at = m->end;
	}
	return run(t, e);
}

static int attach_segment(struct batch *t, size_t i, struct err *e)
{
	const Pb__Mapping *m = t->mm->mappings[i];
	uint64_t base = m->start - m->offset, info;
	struct shmid_ds *ds;
	bool exec = false, write = false;
	uint64_t end = 0;
	int host = m->object > INT_MAX ? -1 : sysv_host(t->b->world, CKPT_IPC_SHM, (int)m->object);
	long value;
	int r;

	for (size_t k = i; k < t->mm->n_mappings; k++) {
		const Pb__Mapping *other = t->mm->mappings[k];

		if (!is_sysv(other) || other->start - other->offset != base)
			continue;
		exec = exec || (other->prot & PROT_EXEC);
		write = write || HAS(other, MAYWRITE);
		end = MAX(end, other->end - base);
	}
	if (host < 0)
		return err_set(e, ERR_IMAGE, -EBADMSG, "mapping of no shared memory");
	ds = remote_data(t->r, sizeof(*ds), &info);
	if (!ds)
		return err_errno(e, -ENOSPC, "too many calls in one batch");
	if (call3(t, m, "shmctl", SYS_shmctl, (uint64_t)host, IPC_STAT, info) < 0 ||
		call3(t, m, "shmat", SYS_shmat, (uint64_t)host, base,
			(uint64_t)((write ? 0 : SHM_RDONLY) | (exec ? SHM_EXEC : 0))) < 0)
		return err_errno(e, -ENOSPC, "too many calls in one batch");
	r = run(t, e);
	if (r < 0)
		return r;
	value = remote_result(t->r, 1);
	if ((uint64_t)value != base)
		return err_set(e, ERR_FAILED, -EEXIST, "shared memory %llu could not be placed",
			(unsigned long long)m->object);
	if (end > ALIGN_UP((uint64_t)ds->shm_segsz, PAGE_SIZE))
		return err_set(e, ERR_IMAGE, -EBADMSG, "a mapping beyond its shared memory");
	return cut_segment(t, i, base, ds->shm_segsz, e);
}

static int map_sysv(struct batch *t, struct err *e)
{
	for (size_t i = 0; i < t->mm->n_mappings; i++) {
		const Pb__Mapping *m = t->mm->mappings[i];
		bool first = is_sysv(m);
		int r;

		for (size_t k = 0; first && k < i; k++) {
			const Pb__Mapping *before = t->mm->mappings[k];

			first = !is_sysv(before) ||
				before->start - before->offset != m->start - m->offset;
		}
		if (!first)
			continue;
		r = attach_segment(t, i, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the rest of a memory space ------------------------------------------------------------- */

/* The descriptor in the task of its program, for a moment; -1 if there is none to be said. */
static int open_program(struct batch *t, bool last, long *ret_fd, struct err *e)
{
	const Pb__Mm *m = t->mm;
	const struct ckpt_build_file *f;
	int r, call;

	*ret_fd = -1;
	/* Who has no capability has no say in which program this is. */
	if (t->b->world->names)
		return 0;
	if (!m->program || !last) {
		uint64_t path = m->exe && !m->program ? remote_put_str(t->r, m->exe->path) : 0;

		if (!path)
			return 0;
		r = remote_call(t->r, ret_fd, e, SYS_openat, (uint64_t)AT_FDCWD, path,
			O_RDONLY | O_CLOEXEC, 0, 0, 0);
		return r < 0 || *ret_fd >= 0
			       ? r
			       : err_errno(e, (int)*ret_fd, "the program %s", m->exe->path);
	}
	f = ckpt_build_file(t->b, m->program);
	call = f && f->fd >= 0 ? ckpt_build_lend(t->b, t->r, f->fd, e)
			       : err_set(e, ERR_IMAGE, -EBADMSG, "a program that is not there");
	r = call < 0 ? call : remote_run(t->r, true, e);
	if (r >= 0)
		*ret_fd = remote_result(t->r, call);
	return r < 0 || *ret_fd >= 0
		       ? r
		       : err_errno(e, (int)*ret_fd, "the program, which has been deleted");
}

/* @last: programs that have no path are there. */
static int set_layout(struct batch *t, bool last, struct err *e)
{
	const Pb__Mm *m = t->mm;
	struct prctl_mm_map map = {
		.start_code = m->start_code,
		.end_code = m->end_code,
		.start_data = m->start_data,
		.end_data = m->end_data,
		.start_brk = m->start_brk,
		.brk = m->brk,
		.start_stack = m->start_stack,
		.arg_start = m->arg_start,
		.arg_end = m->arg_end,
		.env_start = m->env_start,
		.env_end = m->env_end,
		.exe_fd = (uint32_t)-1,
	};
	size_t auxv_len = MIN(m->auxv.len, (size_t)MAX_AUXV);
	uint64_t addr;
	long value, exe;
	int r;

	r = open_program(t, last, &exe, e);
	if (r < 0)
		return r;
	map.exe_fd = (uint32_t)exe;
	/* the kernel's own vector may be shorter than that of the image's: only zeros behind */
	while (auxv_len > 16 && !memcmp(m->auxv.data + auxv_len - 16, (uint8_t[16]){0}, 16))
		auxv_len -= 16;
	auxv_len = MIN(auxv_len + 16, m->auxv.len);
	map.auxv = auxv_len ? (void *)(uintptr_t)remote_put(t->r, m->auxv.data, auxv_len) : NULL;
	map.auxv_size = (uint32_t)auxv_len;
	addr = remote_put(t->r, &map, sizeof(map));
	r = remote_call(
		t->r, &value, e, SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, addr, sizeof(map), 0, 0);
	if (r >= 0 && exe >= 0) {
		long closed;

		r = remote_call(t->r, &closed, e, SYS_close, (uint64_t)exe, 0, 0, 0, 0, 0);
	}
	if (r >= 0 && value < 0)
		r = err_errno(e, (int)value, "cannot set the memory layout (PR_SET_MM_MAP)");
	return r;
}

/*
 * Before Linux 6.13 there are no guard pages: pages that nobody may touch are what comes closest.
 * A program that takes a guard back there finds that the kernel does not know how.
 */
static int add_guards(struct batch *t, struct err *e)
{
	int advice = MADV_GUARD_INSTALL, r = 0;

	for (size_t i = 0; i < t->mm->n_guards && r >= 0; i++) {
		const Pb__Range *g = t->mm->guards[i];
		uint64_t len = g->end - g->start;
		long value = -EINVAL;

		if (advice)
			r = remote_call(t->r, &value, e, SYS_madvise, g->start, len,
				(uint64_t)advice, 0, 0, 0);
		if (r >= 0 && value == -EINVAL) {
			advice = 0;
			r = remote_call(
				t->r, &value, e, SYS_mprotect, g->start, len, PROT_NONE, 0, 0, 0);
		}
		if (r >= 0 && value < 0)
			r = err_set(e, value == -EAGAIN ? ERR_FAILED : ERR_IMAGE, (int)value,
				"guard pages at %llx", (unsigned long long)g->start);
	}
	return r;
}

static void batch_init(
	struct batch *t, struct ckpt_build *b, struct ckpt_build_proc *p, const Pb__Mm *m)
{
	memset(t, 0, sizeof(*t));
	t->b = b;
	t->p = p;
	t->r = p->threads[0].remote;
	t->mm = m;
	t->open_call = -1;
}

int ckpt_map(struct ckpt_build *b, struct ckpt_build_proc *p, const Pb__Mm *m, struct err *e)
{
	struct batch t;
	int r;

	batch_init(&t, b, p, m);
	r = map_sysv(&t, e);
	for (size_t i = 0; r >= 0 && i < m->n_mappings; i++)
		if (m->mappings[i]->source <= PB__MAPPING_SOURCE__MAPPING_SHARED)
			r = map_one(&t, i, e);
	if (r >= 0)
		r = run(&t, e);
	if (r >= 0)
		r = add_guards(&t, e);
	if (r >= 0)
		r = set_layout(&t, false, e);
	return r;
}

static bool is_last(const Pb__Mapping *m)
{
	return HAS(m, LOCKED) || HAS(m, SEALED);
}

bool ckpt_map_has_finish(const struct ckpt_build *b, const Pb__Mm *mm)
{
	bool has = (mm->program && !b->world->names) || ckpt_keys_used(mm);

	for (size_t i = 0; i < mm->n_mappings && !has; i++)
		has = is_last(mm->mappings[i]);
	return has;
}

/*
 * mlock(2) marks a mapping as locked and then has its pages come, which fails where none can: what
 * mlockall(2) locks has pages that nobody may touch.  So first only the mark is made, which is all that can
 * fail for want of a right or of room.
 */
static void lock(struct batch *t, const Pb__Mapping *m)
{
	const uint64_t len = m->end - m->start;
	int call;

	call3(t, m, "mlock", SYS_mlock2, m->start, len, MLOCK_ONFAULT);
	if (HAS(m, LOCKONFAULT))
		return;
	call = call3(t, m, "mlock", SYS_mlock2, m->start, len, 0);
	if (call >= 0)
		t->calls[call].optional = true;
}

int ckpt_map_finish(
	struct ckpt_build *b, struct ckpt_build_proc *p, const Pb__Mm *mm, struct err *e)
{
	struct batch t;
	int r = 0;

	batch_init(&t, b, p, mm);
	if (ckpt_keys_used(mm)) {
		r = ckpt_keys_restore(t.r, mm, e);
		/* with its key a mapping gets its protection anew, which may be all that a guard is */
		r = r < 0 ? r : add_guards(&t, e);
	}
	for (size_t i = 0; i < mm->n_mappings && r >= 0; i++) {
		const Pb__Mapping *m = mm->mappings[i];

		if (!is_last(m))
			continue;
		r = make_room(&t, 0, e);
		if (r >= 0 && HAS(m, LOCKED))
			lock(&t, m);
		if (r >= 0 && HAS(m, SEALED))
			call3(&t, m, "mseal", SYS_mseal, m->start, m->end - m->start, 0);
	}
	r = r < 0 ? r : run(&t, e);
	if (r == -ENOMEM && e && e->class == ERR_FAILED) {
		e->class = ERR_HOST;
		err_hint(e, "it has more memory locked than it may have here (ulimit -l)");
	}
	if (r >= 0 && mm->program && !b->world->names)
		r = set_layout(&t, true, e);
	return r;
}
