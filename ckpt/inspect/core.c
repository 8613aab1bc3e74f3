// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * core - ELF core files of an image's processes, for gdb.
 *
 * Theory of operation
 *
 * One file per process, as the kernel would have written it (fs/binfmt_elf.c, core(5)):
 *
 *      ELF header | program headers | notes | pages
 *
 * Notes are those a debugger reads: NT_PRSTATUS, NT_FPREGSET and NT_X86_XSTATE of each thread, of
 * the process NT_PRPSINFO, NT_SIGINFO, NT_AUXV, NT_FILE.  Each mapping is one PT_LOAD or several:
 * memory that is zero is a hole of the file, pages of files that nobody has changed are left out
 * (p_filesz 0) and found by the debugger in the files themselves, but for the first page of an ELF
 * file, by which build-ids are found.
 *
 * The extended state in a core has a layout that depends on the CPU and that a reader has to
 * guess from its size.  All know Intel's with AVX-512 and protection keys; the components of the
 * image (ckpt/xstate.h) are put into that.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/inspect/inspect.h"
#include "proto/memory.pb-c.h"
#include "proto/tasks.pb-c.h"

#define GAP_MAX	  (16u << 20) /* zeros up to here are a hole between two runs, not a new segment */
#define WHOLE_MAX (1ull << 30) /* anonymous memory up to here is one segment with holes */
#define CHUNK	  (1u << 20)
#define PSARGS	  80

/* ---- notes ----------------------------------------------------------------------------------- */

static void put_note(struct buf *b, const char *name, uint32_t type, const void *data, size_t len)
{
	static const uint8_t zero[4];
	Elf64_Nhdr h = {.n_namesz = (uint32_t)strlen(name) + 1, .n_descsz = (uint32_t)len, .n_type = type};

	buf_put(b, &h, sizeof(h));
	buf_put(b, name, h.n_namesz);
	buf_put(b, zero, ALIGN_UP(h.n_namesz, 4) - h.n_namesz);
	buf_put(b, data, len);
	buf_put(b, zero, ALIGN_UP(len, 4) - len);
}

/* Intel SDM volume 1, 13.4.2 and 13.5: where the standard layout has the components. */
static const struct {
	uint32_t number, offset, size;
} places[] = {
	{2, 576, 256},	 /* AVX */
	{5, 1088, 64},	 /* AVX-512: opmask */
	{6, 1152, 512},	 /* ZMM_Hi256 */
	{7, 1664, 1024}, /* Hi16_ZMM */
	{9, 2688, 8},	 /* PKRU */
};

#define XSAVE_AVX    832
#define XSAVE_AVX512 2688
#define XSAVE_PKRU   2696
#define XSAVE_AT_XCR0 464 /* in the words left to software: what Linux has enabled */
#define XSAVE_AT_BV   512

static void put_xstate(struct buf *b, const Pb__Thread *t)
{
	uint8_t area[XSAVE_PKRU] = {0};
	uint64_t have = 3, xcr0 = 7;
	size_t len = XSAVE_AVX;

	memcpy(area, t->fxsave.data, XSAVE_AT_XCR0);
	for (size_t i = 0; i < t->n_xstate; i++) {
		const Pb__XstateComponent *c = t->xstate[i];

		for (size_t k = 0; k < ARRAY_SIZE(places); k++) {
			if (places[k].number != c->number || c->data.len > places[k].size)
				continue;
			memcpy(area + places[k].offset, c->data.data, c->data.len);
			have |= 1ull << c->number;
			len = MAX(len, c->number == 9 ? (size_t)XSAVE_PKRU
					: c->number > 2 ? (size_t)XSAVE_AVX512
							: (size_t)XSAVE_AVX);
		}
	}
	if (len > XSAVE_AVX)
		xcr0 |= 0xe0;
	if (len > XSAVE_AVX512)
		xcr0 |= 0x200;
	have &= t->xstate_bv;
	memcpy(area + XSAVE_AT_XCR0, &xcr0, sizeof(xcr0));
	memcpy(area + XSAVE_AT_BV, &have, sizeof(have));
	put_note(b, "LINUX", NT_X86_XSTATE, area, len);
}

static int put_thread(struct buf *b, struct ckpt_inspect *in, const Pb__Task *task, pid_t vpid,
	pid_t vtid, struct err *e)
{
	const struct ckpt_record *r = ckpt_build_record(&in->b, PROTO_KIND_THREAD, (uint64_t)vtid);
	Pb__Thread *t = r ? pb__thread__unpack(NULL, r->len, r->body) : NULL;
	struct elf_prstatus s = {.pr_pid = vtid, .pr_ppid = task->ppid, .pr_pgrp = task->pgid,
		.pr_sid = task->sid, .pr_fpvalid = 1};

	if (!t || t->regs.len != sizeof(s.pr_reg) || t->fxsave.len != sizeof(elf_fpregset_t)) {
		pb__thread__free_unpacked(t, NULL);
		return err_set(e, ERR_IMAGE, -EBADMSG, "thread %d has no registers", vtid);
	}
	memcpy(&s.pr_reg, t->regs.data, sizeof(s.pr_reg));
	s.pr_sighold = t->sigmask;
	s.pr_cursig = (short)task->stop_signal;
	s.pr_info.si_signo = task->stop_signal;
	put_note(b, "CORE", NT_PRSTATUS, &s, sizeof(s));
	put_note(b, "CORE", NT_FPREGSET, t->fxsave.data, t->fxsave.len);
	put_xstate(b, t);
	pb__thread__free_unpacked(t, NULL);
	return 0;
}

static void put_psinfo(struct buf *b, struct ckpt_space *s, const Pb__Task *task, pid_t vpid)
{
	struct elf_prpsinfo p = {.pr_sname = task->state == PB__TASK_STATE__TASK_STOPPED ? 'T' : 'S',
		.pr_pid = vpid, .pr_ppid = task->ppid, .pr_pgrp = task->pgid, .pr_sid = task->sid};
	size_t len = (size_t)MIN(s->mm->arg_end - s->mm->arg_start, (uint64_t)PSARGS - 1);

	strncpy(p.pr_fname, task->name, sizeof(p.pr_fname) - 1);
	if (s->mm->arg_end > s->mm->arg_start &&
		ckpt_space_read(s, s->mm->arg_start, p.pr_psargs, len) == 0) {
		while (len && p.pr_psargs[len - 1] == '\0')
			len--;
		for (size_t i = 0; i < len; i++)
			if (p.pr_psargs[i] == '\0')
				p.pr_psargs[i] = ' ';
	}
	put_note(b, "CORE", NT_PRPSINFO, &p, sizeof(p));
}

/* count, page size; start, end, page of each; names. */
static void put_files(struct buf *b, const Pb__Mm *mm)
{
	_cleanup_buf_ struct buf list = BUF_INIT, names = BUF_INIT, note = BUF_INIT;
	uint64_t n = 0;

	for (size_t i = 0; i < mm->n_mappings; i++) {
		const Pb__Mapping *m = mm->mappings[i];

		if (m->source != PB__MAPPING_SOURCE__MAPPING_PATH || m->object >= mm->n_files)
			continue;
		buf_put_u64(&list, m->start);
		buf_put_u64(&list, m->end);
		buf_put_u64(&list, m->offset / PAGE_SIZE);
		buf_put(&names, mm->files[m->object]->path, strlen(mm->files[m->object]->path) + 1);
		n++;
	}
	buf_put_u64(&note, n);
	buf_put_u64(&note, PAGE_SIZE);
	buf_put(&note, list.data, list.len);
	buf_put(&note, names.data, names.len);
	b->failed |= list.failed || names.failed || note.failed;
	if (n && !b->failed)
		put_note(b, "CORE", NT_FILE, note.data, note.len);
}

static int put_notes(struct buf *b, struct ckpt_space *s, const struct ckpt_build_proc *p,
	struct err *e)
{
	Pb__Task *task = pb__task__unpack(NULL, p->record->len, p->record->body);
	siginfo_t info = {0};
	int r = 0;

	if (!task)
		return err_set(e, ERR_IMAGE, -EBADMSG, "task %d", p->vpid);
	info.si_signo = task->stop_signal;
	/* A debugger takes what comes behind the first NT_PRSTATUS as that of the process. */
	for (size_t i = p->headless; i < p->n_threads && r == 0; i++) {
		r = put_thread(b, s->in, task, p->vpid, p->threads[i].vtid, e);
		if (i > p->headless)
			continue;
		put_psinfo(b, s, task, p->vpid);
		put_note(b, "CORE", NT_SIGINFO, &info, sizeof(info));
		put_note(b, "CORE", NT_AUXV, s->mm->auxv.data, s->mm->auxv.len);
		put_files(b, s->mm);
	}
	pb__task__free_unpacked(task, NULL);
	return r < 0 ? r : buf_error(b) < 0 ? err_errno(e, -ENOMEM, "notes") : 0;
}

/* ---- segments -------------------------------------------------------------------------------- */

struct segment {
	uint64_t start, end;
	uint32_t flags;
	bool present; /* in the file */
};

static void put_segment(struct buf *b, const Pb__Mapping *m, uint64_t start, uint64_t end,
	bool present)
{
	struct segment s = {.start = start, .end = end, .present = present,
		.flags = (m->prot & PROT_READ ? PF_R : 0) | (m->prot & PROT_WRITE ? PF_W : 0) |
			 (m->prot & PROT_EXEC ? PF_X : 0)};

	if (end > start)
		buf_put(b, &s, sizeof(s));
}

/* Does mapping @i begin with the head of an ELF file that is not stored but can be read? */
static bool begins_elf(struct ckpt_space *s, size_t i, uint64_t stored)
{
	const Pb__Mapping *m = s->mm->mappings[i];
	char magic[SELFMAG];

	return m->source == PB__MAPPING_SOURCE__MAPPING_PATH && m->offset == 0 &&
	       stored >= m->start + PAGE_SIZE &&
	       ckpt_space_read(s, m->start, magic, sizeof(magic)) == 0 &&
	       memcmp(magic, ELFMAG, SELFMAG) == 0;
}

/* The runs of mapping @i that are stored, with gaps up to @gap, and what is between them. */
static void put_runs(struct buf *b, struct ckpt_space *s, size_t i, uint64_t gap)
{
	const Pb__Mapping *m = s->mm->mappings[i];
	uint64_t at = m->start, start, end, next, more;

	if (!ckpt_space_stored(s, i, at, &start, &end))
		start = end = m->end;
	if (begins_elf(s, i, start)) {
		put_segment(b, m, at, at + PAGE_SIZE, true);
		at += PAGE_SIZE;
	}
	while (start < m->end) {
		while (ckpt_space_stored(s, i, end, &next, &more) && next - end <= gap)
			end = more;
		start = ALIGN_DOWN(start, PAGE_SIZE);
		end = MIN(ALIGN_UP(end, PAGE_SIZE), m->end);
		put_segment(b, m, at, start, false);
		put_segment(b, m, start, end, true);
		at = end;
		if (!ckpt_space_stored(s, i, at, &start, &end))
			break;
	}
	put_segment(b, m, at, m->end, false);
}

static void put_mapping(struct buf *b, struct ckpt_space *s, size_t i)
{
	const Pb__Mapping *m = s->mm->mappings[i];
	uint64_t start, end;

	switch (m->source) {
	case PB__MAPPING_SOURCE__MAPPING_VDSO:
		put_segment(b, m, m->start, m->end, m->end - m->start <= s->mm->vdso.len);
		return;
	case PB__MAPPING_SOURCE__MAPPING_PATH:
		put_runs(b, s, i, 0);
		return;
	case PB__MAPPING_SOURCE__MAPPING_ANON:
	case PB__MAPPING_SOURCE__MAPPING_SHARED:
	case PB__MAPPING_SOURCE__MAPPING_SYSV:
		if (m->end - m->start > WHOLE_MAX)
			put_runs(b, s, i, GAP_MAX);
		else
			put_segment(b, m, m->start, m->end,
				m->prot || ckpt_space_stored(s, i, m->start, &start, &end));
		return;
	default:
		put_segment(b, m, m->start, m->end, false);
	}
}

/* ---- the file -------------------------------------------------------------------------------- */

struct layout {
	struct buf notes, segments, head;
	size_t n; /* segments */
	uint64_t pages; /* where they begin */
	uint64_t end;
};

static void layout_fini(struct layout *l)
{
	buf_fini(&l->notes);
	buf_fini(&l->segments);
	buf_fini(&l->head);
}

static int lay_out(struct layout *l, struct err *e)
{
	const struct segment *s = (const struct segment *)l->segments.data;
	bool many = l->n + 1 >= PN_XNUM; /* then the number stands in a section header */
	size_t table = (l->n + 1) * sizeof(Elf64_Phdr);
	uint64_t notes = sizeof(Elf64_Ehdr) + (many ? sizeof(Elf64_Shdr) : 0) + table;
	uint64_t at = ALIGN_UP(notes + l->notes.len, PAGE_SIZE);
	Elf64_Ehdr eh = {.e_type = ET_CORE, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_phoff = notes - table, .e_ehsize = sizeof(eh), .e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = many ? PN_XNUM : (uint16_t)(l->n + 1)};
	Elf64_Phdr ph = {.p_type = PT_NOTE, .p_offset = notes, .p_filesz = l->notes.len};

	memcpy(eh.e_ident, ELFMAG, SELFMAG);
	eh.e_ident[EI_CLASS] = ELFCLASS64;
	eh.e_ident[EI_DATA] = ELFDATA2LSB;
	eh.e_ident[EI_VERSION] = EV_CURRENT;
	if (many) {
		eh.e_shoff = sizeof(eh);
		eh.e_shnum = 1;
		eh.e_shentsize = sizeof(Elf64_Shdr);
	}
	buf_put(&l->head, &eh, sizeof(eh));
	if (many) {
		Elf64_Shdr sh = {.sh_size = 1, .sh_info = (uint32_t)(l->n + 1)};

		buf_put(&l->head, &sh, sizeof(sh));
	}
	buf_put(&l->head, &ph, sizeof(ph));
	l->pages = at;
	for (size_t i = 0; i < l->n; i++) {
		Elf64_Phdr p = {.p_type = PT_LOAD, .p_flags = s[i].flags, .p_offset = at,
			.p_vaddr = s[i].start, .p_memsz = s[i].end - s[i].start, .p_align = PAGE_SIZE};

		p.p_filesz = s[i].present ? p.p_memsz : 0;
		at += p.p_filesz;
		buf_put(&l->head, &p, sizeof(p));
	}
	l->end = at;
	buf_put(&l->head, l->notes.data, l->notes.len);
	return buf_error(&l->head) < 0 ? err_errno(e, -ENOMEM, "core file") : 0;
}

static int copy(struct ckpt_space *s, int fd, uint64_t start, uint64_t end, uint64_t at,
	uint8_t *chunk, struct err *e)
{
	while (start < end) {
		size_t n = MIN(end - start, (uint64_t)CHUNK);
		int r = ckpt_space_read(s, start, chunk, n);

		if (r < 0)
			return err_errno(e, r, "memory at %llx", (unsigned long long)start);
		r = io_pwrite_full(fd, chunk, n, (off_t)at);
		if (r < 0)
			return err_errno(e, r, "write");
		start += n;
		at += n;
	}
	return 0;
}

/*
 * A segment that is in the file: what is stored, and of files and the vDSO what is between it.  A
 * segment has whole pages; what is stored, a liar says: where a file is not to be had for the rest
 * of a page there are zeros.
 */
static int copy_segment(struct ckpt_space *s, const struct segment *g, int fd, uint64_t at,
	uint8_t *chunk, struct err *e)
{
	size_t i = (size_t)ckpt_space_find(s, g->start);
	uint32_t source = s->mm->mappings[i]->source;
	bool between = source == PB__MAPPING_SOURCE__MAPPING_PATH ||
		       source == PB__MAPPING_SOURCE__MAPPING_VDSO;
	uint64_t from = g->start, start, end;
	int r = 0;

	while (r == 0 && from < g->end) {
		if (!ckpt_space_stored(s, i, from, &start, &end) || start > g->end)
			start = end = g->end;
		end = MIN(end, g->end);
		if (between)
			r = copy(s, fd, from, start, at + (from - g->start), chunk, e);
		if (r == 0 || r == -EFAULT)
			r = copy(s, fd, start, end, at + (start - g->start), chunk, e);
		from = end;
	}
	return r;
}

static int write_core(struct ckpt_space *s, const struct layout *l, int fd, struct err *e)
{
	_cleanup_free_ uint8_t *chunk = malloc(CHUNK);
	const struct segment *g = (const struct segment *)l->segments.data;
	uint64_t at = l->pages;
	int r;

	if (!chunk)
		return err_errno(e, -ENOMEM, "core file");
	r = io_write_full(fd, l->head.data, l->head.len);
	if (r < 0)
		return err_errno(e, r, "write");
	if (ftruncate(fd, (off_t)l->end) < 0)
		return err_errno(e, -errno, "write");
	for (size_t i = 0; i < l->n && r == 0; i++) {
		if (!g[i].present)
			continue;
		r = copy_segment(s, &g[i], fd, at, chunk, e);
		at += g[i].end - g[i].start;
	}
	return r;
}

static int make_core(struct ckpt_inspect *in, const struct ckpt_build_proc *p, int fd,
	struct err *e)
{
	_cleanup_(layout_fini) struct layout l = {0};
	struct ckpt_space s;
	int r = ckpt_space_open(&s, in, p, e);

	if (r < 0)
		return r;
	if (s.mm->i386)
		r = err_set(e, ERR_HOST, -EOPNOTSUPP, "no core can be made of a 32-bit program");
	else
		r = put_notes(&l.notes, &s, p, e);
	for (size_t i = 0; r == 0 && i < s.mm->n_mappings; i++)
		put_mapping(&l.segments, &s, i);
	l.n = l.segments.len / sizeof(struct segment);
	if (r == 0 && buf_error(&l.segments) < 0)
		r = err_errno(e, -ENOMEM, "core file");
	if (r == 0)
		r = lay_out(&l, e);
	if (r == 0)
		r = write_core(&s, &l, fd, e);
	ckpt_space_close(&s);
	return r;
}

/* Under a name of its own first: an older core stays if this one fails. */
static int core_of(struct ckpt_inspect *in, const struct ckpt_build_proc *p, const char *path,
	struct err *e)
{
	_cleanup_close_ int fd = -1;
	char part[PATH_MAX];
	int r;

	if (snprintf(part, sizeof(part), "%s.part", path) >= (int)sizeof(part))
		return err_errno(e, -ENAMETOOLONG, "%s", path);
	unlink(part);
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_errno(e, -errno, "%s", part);
	r = make_core(in, p, fd, e);
	if (r == 0 && rename(part, path) < 0)
		r = err_errno(e, -errno, "%s", path);
	if (r < 0)
		unlink(part);
	return r < 0 ? err_wrap(e, "task %d", p->vpid) : 0;
}

int ckpt_image_core(const struct ckpt_image *image, const char *path,
	void (*told)(void *ctx, const char *path), void *ctx, struct err *e)
{
	struct ckpt_inspect *i;
	struct err without = {0}; /* the first of which there is none */
	int r = ckpt_inspect_open(&i, image, false, e);

	if (r < 0)
		return r;
	for (size_t n = 0; n < i->b.n_procs && r == 0; n++) {
		const struct ckpt_build_proc *p = &i->b.procs[n];
		char name[PATH_MAX];

		if (p->zombie)
			continue;
		if (snprintf(name, sizeof(name), "%s.%d", path, p->vpid) >= (int)sizeof(name))
			r = err_errno(e, -ENAMETOOLONG, "%s", path);
		else
			r = core_of(i, p, name, e);
		if (r == 0) {
			told(ctx, name);
		} else if (r == -EOPNOTSUPP) {
			if (!err_is(&without))
				without = *e;
			*e = (struct err){0};
			r = 0;
		}
	}
	ckpt_inspect_close(i);
	if (r == 0 && err_is(&without)) {
		*e = without;
		r = e->error;
	}
	return r;
}
