// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mm - a memory space: mappings, pages, program break, auxiliary vector, program.
 *
 * Theory of operation
 *
 *      dump        each mapping becomes a Mapping (memory/mapping.c); what a file is recognised by
 *                  is noted, the file itself stays where it is
 *      dump_data   private mappings: touched pages that are not zero (memory/pages.c).  Shared
 *                  ones belong to their files, to kind SHARED_MEM or to a System V segment
 *      create      all mappings in the blank task (memory/map.c)
 *      data        pages as they come in the stream (memory/fill.c), or by several threads from an image that
 *                  is known (memory/fillers.c); long runs may be mapped from the image at first
 *                  (memory/mapped.c, memory/convert.c)
 *      finish      what must not come before the pages: protection keys, locks, seals
 *
 * One record per memory space, carried by the first process (by vpid) that has it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/ask.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/memory/ahead.h"
#include "ckpt/memory/arrived.h"
#include "ckpt/memory/fillers.h"
#include "ckpt/memory/memory.h"
#include "ckpt/remote/i386.h"
#include "ckpt/said.h"
#include "ckpt/survey/survey.h"
#include "ckpt/where.h"
#include "proto/memory.pb-c.h"
#include "proto/proto.h"

/* ---- dump ----------------------------------------------------------------------------------- */

static bool has_own_memory(const struct ckpt_proc *p)
{
	return p->state != CKPT_ZOMBIE && p->mm == p->vpid;
}

static int mm_check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	struct ckpt_proc *p = s.proc;

	if (!has_own_memory(p))
		return 0;
	for (size_t i = 0; i < p->maps.n; i++) {
		Pb__Mapping m;
		int r = ckpt_mapping_describe(d, p, &p->maps.vmas[i], &m, e);

		if (r < 0)
			return r;
	}
	return 0;
}

/* A record being filled: the message and what it points to. */
struct draft {
	Pb__Mm mm;
	Pb__Mapping *mappings, **mapping_list;
	Pb__MappedFile *files, **file_list;
	struct ckpt_file_mark *marks;
	size_t *lengths; /* of the files' paths */
	Pb__Range *guards, **guard_list;
	Pb__MappedFile exe;
	struct ckpt_file_mark exe_mark;
	char *exe_path;
	struct buf auxv, vdso;
};

static void draft_fini(struct draft *f)
{
	for (size_t i = 0; i < f->mm.n_mappings; i++)
		if (*f->mappings[i].name)
			free(f->mappings[i].name);
	free(f->mappings);
	free(f->mapping_list);
	free(f->files);
	free(f->file_list);
	free(f->marks);
	free(f->lengths);
	free(f->guards);
	free(f->guard_list);
	free(f->exe_path);
	buf_fini(&f->auxv);
	buf_fini(&f->vdso);
}

static void put_mark(Pb__MappedFile *f, char *path, struct ckpt_file_mark *mark)
{
	pb__mapped_file__init(f);
	f->path = path;
	f->size = mark->size;
	f->mtime_sec = mark->mtime_sec;
	f->mtime_nsec = mark->mtime_nsec;
	f->sample = mark->sample;
	f->build_id.data = mark->build_id;
	f->build_id.len = mark->build_id_len;
}

/* The index of @path among the files of the record; the mappings of one file follow each other. */
static int draft_file(
	struct draft *f, struct ckpt_dump *d, char *path, uint64_t *ret, struct err *e)
{
	size_t n = f->mm.n_files, len = strlen(path);
	int r;

	for (size_t i = n; i > 0; i--)
		if (f->lengths[i - 1] == len && !memcmp(f->files[i - 1].path, path, len)) {
			*ret = i - 1;
			return 0;
		}
	r = ckpt_file_describe(d, path, 0, &f->marks[n], e);
	if (r < 0)
		return r;
	put_mark(&f->files[n], path, &f->marks[n]);
	f->file_list[n] = &f->files[n];
	f->lengths[n] = len;
	f->mm.n_files++;
	*ret = n;
	return 0;
}

static int draft_mappings(struct draft *f, struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	size_t n = p->maps.n ? p->maps.n : 1;

	f->mappings = calloc(n, sizeof(*f->mappings));
	f->mapping_list = calloc(n, sizeof(*f->mapping_list));
	f->files = calloc(n, sizeof(*f->files));
	f->file_list = calloc(n, sizeof(*f->file_list));
	f->marks = calloc(n, sizeof(*f->marks));
	f->lengths = calloc(n, sizeof(*f->lengths));
	if (!f->mappings || !f->mapping_list || !f->files || !f->file_list || !f->marks ||
		!f->lengths)
		return err_errno(e, -ENOMEM, "memory record");
	f->mm.mappings = f->mapping_list;
	f->mm.files = f->file_list;
	for (size_t i = 0; i < p->maps.n; i++) {
		const struct proc_vma *v = &p->maps.vmas[i];
		Pb__Mapping *m = &f->mappings[f->mm.n_mappings];
		const char *name;
		int r = ckpt_mapping_describe(d, p, v, m, e);

		if (r < 0)
			return r;
		if (r > 0)
			continue;
		if (m->source == PB__MAPPING_SOURCE__MAPPING_PATH)
			r = draft_file(f, d, v->path, &m->object, e);
		if (r < 0)
			return r;
		size_t len = ckpt_mapping_name(v->path, &name);

		if (len) {
			m->name = strndup(name, len);
			if (!m->name)
				return err_errno(e, -ENOMEM, "memory record");
		}
		f->mapping_list[f->mm.n_mappings++] = m;
	}
	return 0;
}

static int draft_guards(struct draft *f, struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	int r = p->memory_scanned ? 0 : ckpt_space_scan(d, p, e);
	size_t n;

	if (r < 0)
		return r;
	n = p->memory_guards.len / sizeof(struct ckpt_run);
	f->guards = calloc(n + 1, sizeof(*f->guards));
	f->guard_list = calloc(n + 1, sizeof(*f->guard_list));
	if (!f->guards || !f->guard_list)
		return err_errno(e, -ENOMEM, "memory record");
	for (size_t i = 0; i < n; i++) {
		const struct ckpt_run *run = (struct ckpt_run *)p->memory_guards.data + i;

		pb__range__init(&f->guards[i]);
		f->guards[i].start = run->start;
		f->guards[i].end = run->end;
		f->guard_list[i] = &f->guards[i];
	}
	f->mm.guards = f->guard_list;
	f->mm.n_guards = n;
	/* a run is two numbers, as they are in the record */
	f->mm.ahead = ckpt_ahead_space(d->options.ahead, p);
	f->mm.kept = (uint64_t *)p->memory_kept.data;
	f->mm.n_kept = p->memory_kept.len / sizeof(uint64_t);
	return 0;
}

static int draft_layout(struct draft *f, struct ckpt_proc *p, struct err *e)
{
	const struct proc_status *s = &p->status;
	const struct ckpt_asked *asked;
	struct rlimit stack;
	int r = ckpt_ask_proc(p, &asked, e);

	if (r < 0)
		return r;
	f->mm.i386 = p->i386;
	f->mm.start_code = s->start_code;
	f->mm.end_code = s->end_code;
	f->mm.start_data = s->start_data;
	f->mm.end_data = s->end_data;
	f->mm.start_brk = s->start_brk;
	f->mm.brk = asked->brk;
	f->mm.keys = asked->keys;
	f->mm.start_stack = s->start_stack;
	f->mm.arg_start = s->arg_start;
	f->mm.arg_end = s->arg_end;
	f->mm.env_start = s->env_start;
	f->mm.env_end = s->env_end;
	if (prlimit(p->pid, RLIMIT_STACK, NULL, &stack) == 0)
		f->mm.stack_limit = stack.rlim_cur;
	return 0;
}

static int draft_program(struct draft *f, struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	char name[32];

	_cleanup_close_ int fd = proc_open_file(d->host_proc, p->look, "auxv", O_RDONLY, e);
	if (fd < 0)
		return fd;
	ssize_t n = io_read_full(fd, buf_grow(&f->auxv, PAGE_SIZE), PAGE_SIZE);

	if (n < 0)
		return err_errno(e, (int)n, "auxv");
	f->auxv.len = (size_t)n;
	f->mm.auxv.data = f->auxv.data;
	f->mm.auxv.len = f->auxv.len;

	f->mm.program = p->program;
	if (p->program)
		return 0;
	snprintf(name, sizeof(name), "%d/exe", p->look);
	f->exe_path = ckpt_where_say(d->world, io_readlink(d->host_proc, name));
	if (!f->exe_path)
		return 0;
	if (f->exe_path[0] != '/' || ckpt_file_describe(d, f->exe_path, 0, &f->exe_mark, NULL) < 0)
		return 0; /* then /proc/PID/exe of the resumed task is lost */
	put_mark(&f->exe, f->exe_path, &f->exe_mark);
	f->mm.exe = &f->exe;
	return 0;
}

static int draft_vdso(struct draft *f, struct ckpt_proc *p, struct err *e)
{
	struct remote *rem;

	for (size_t i = 0; i < f->mm.n_mappings; i++) {
		const Pb__Mapping *m = &f->mappings[i];
		size_t len = m->end - m->start;
		void *room;
		int r;

		if (m->source != PB__MAPPING_SOURCE__MAPPING_VDSO)
			continue;
		room = buf_grow(&f->vdso, len);
		if (!room)
			return err_errno(e, -ENOMEM, "memory record");
		r = ckpt_proc_remote(p, &rem, e);
		if (r >= 0)
			r = remote_peek(rem, m->start, room, len, e);
		if (r < 0)
			return r;
		f->mm.vdso.data = f->vdso.data;
		f->mm.vdso.len = f->vdso.len;
	}
	return 0;
}

static int mm_dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	struct draft f = {0};
	int r;

	if (!has_own_memory(s.proc))
		return 1;
	pb__mm__init(&f.mm);
	r = draft_mappings(&f, d, s.proc, e);
	if (r >= 0)
		r = draft_guards(&f, d, s.proc, e);
	if (r >= 0)
		r = draft_layout(&f, s.proc, e);
	if (r >= 0)
		r = draft_program(&f, d, s.proc, e);
	if (r >= 0)
		r = draft_vdso(&f, s.proc, e);
	if (r >= 0)
		r = ckpt_pack(&f.mm.base, body, e);
	draft_fini(&f);
	return r;
}

static int mm_dump_data(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	struct ckpt_proc *p = s.proc;

	if (!has_own_memory(p) || p->memory_written)
		return 0;
	if (p->memory_copy)
		return ckpt_space_write(d, p, remote_tid(p->memory_copy), CKPT_SPACE_FORKED, e);
	return ckpt_space_write(d, p, p->look, CKPT_SPACE_ALL, e);
}

/* ---- restore -------------------------------------------------------------------------------- */

/* The private mappings of a record, to check and sort its pages. */
struct mm_state {
	struct ckpt_build_proc *proc;
	uint64_t ahead; /* its memory space among what was copied ahead; 0: none */
	int mem;
	uint64_t filled; /* the end of what has come */
	/* what is mapped of what came ahead */
	size_t first_piece, n_pieces;
	bool has_finish; /* most have nothing that must come last */
	size_t n, last;
	struct ckpt_private at[];
};

int ckpt_mm_unpack(const struct ckpt_record *r, Pb__Mm **ret, struct err *e)
{
	Pb__Mm *m = pb__mm__unpack(NULL, r->len, r->body);
	uint64_t at = 0, last;

	if (!m)
		return err_set(e, ERR_IMAGE, -EBADMSG, "memory record is damaged");
	last = m->i386 ? END_32 : CKPT_TASK_SIZE;
	for (size_t i = 0; i < m->n_mappings; i++) {
		const Pb__Mapping *v = m->mappings[i];

		if (v->start < at || v->end <= v->start || v->end > last ||
			(v->start | v->end | v->offset) % PAGE_SIZE ||
			(unsigned)v->source > PB__MAPPING_SOURCE__MAPPING_VVAR ||
			(v->prot & ~(uint32_t)(PROT_READ | PROT_WRITE | PROT_EXEC))) {
			pb__mm__free_unpacked(m, NULL);
			return err_set(e, ERR_IMAGE, -EBADMSG, "mapping %zu is nonsense", i);
		}
		at = v->end;
	}
	if (!ckpt_keys_sane(m)) {
		pb__mm__free_unpacked(m, NULL);
		return err_set(e, ERR_IMAGE, -EBADMSG, "protection keys that are nonsense");
	}
	at = 0;
	for (size_t i = 0; i < m->n_guards; i++) {
		const Pb__Range *g = m->guards[i];

		if (g->start < at || g->end <= g->start || g->end > CKPT_TASK_SIZE ||
			(g->start | g->end) % PAGE_SIZE) {
			pb__mm__free_unpacked(m, NULL);
			return err_set(e, ERR_IMAGE, -EBADMSG, "guard %zu is nonsense", i);
		}
		at = g->end;
	}
	at = 0;
	for (size_t i = 0; i < m->n_kept; i++) {
		if (m->kept[i] < at || m->kept[i] > CKPT_TASK_SIZE || m->kept[i] % PAGE_SIZE ||
			m->n_kept % 2 || (i % 2 && m->kept[i] == at)) {
			pb__mm__free_unpacked(m, NULL);
			return err_set(e, ERR_IMAGE, -EBADMSG, "kept range %zu is nonsense", i / 2);
		}
		at = m->kept[i];
	}
	*ret = m;
	return 0;
}

/*
 * A guard page is no page of the image, and none of a file stands for it.  @next: the first that
 * may lie in @v.
 */
static bool has_guard(const Pb__Mm *m, const Pb__Mapping *v, size_t *next)
{
	while (*next < m->n_guards && m->guards[*next]->end <= v->start)
		++*next;
	return *next < m->n_guards && m->guards[*next]->start < v->end;
}

static int remember(struct ckpt_build *b, struct ckpt_record *r, struct ckpt_build_proc *p,
	const Pb__Mm *m, struct err *e)
{
	bool mapped = ckpt_mapped_process(b, p, m);
	struct mm_state *s = calloc(1, sizeof(*s) + m->n_mappings * sizeof(s->at[0]));
	size_t guard = 0;

	if (!s)
		return err_errno(e, -ENOMEM, "memory");
	s->proc = p;
	s->mem = -1;
	s->ahead = m->ahead;
	s->has_finish = ckpt_map_has_finish(b, m);
	for (size_t i = 0; i < m->n_mappings; i++) {
		const Pb__Mapping *v = m->mappings[i];

		if (v->source > PB__MAPPING_SOURCE__MAPPING_SHARED ||
			(v->flags & PB__MAPPING_FLAG__MAPPING_IS_SHARED))
			continue;
		s->at[s->n].start = v->start;
		s->at[s->n].end = v->end;
		s->at[s->n].prot = v->prot;
		s->at[s->n].noreserve = v->flags & PB__MAPPING_FLAG__MAPPING_NORESERVE;
		s->at[s->n++].fits = mapped && ckpt_mapped_fits(v) && !has_guard(m, v, &guard);
	}
	r->state = s;
	return 0;
}

static int mm_create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	struct ckpt_build_proc *p = ckpt_build_proc(b, (pid_t)r->subject);
	Pb__Mm *m;
	int ret;

	if (!p || !p->n_threads || !p->threads[0].remote)
		return err_set(e, ERR_IMAGE, -EBADMSG, "memory of a process that does not exist");
	ret = ckpt_mm_unpack(r, &m, e);
	if (ret < 0)
		return ret;
	ret = ckpt_keys_check(m, e);
	if (ret >= 0)
		ret = ckpt_place_vdso(b, p, m, e);
	if (ret >= 0)
		ret = ckpt_map(b, p, m, e);
	if (ret >= 0)
		ret = remember(b, r, p, m, e);
	pb__mm__free_unpacked(m, NULL);
	return ret;
}

/* The private mapping that holds @addr, or NULL.  Pages come in order of their mappings. */
static bool find_mapping(struct mm_state *s, uint64_t addr, uint64_t end)
{
	size_t low = 0, high = s->n;

	if (s->last < s->n && addr >= s->at[s->last].start && end <= s->at[s->last].end)
		return true;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->at[mid].end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	s->last = low;
	return low < s->n && addr >= s->at[low].start && end <= s->at[low].end;
}

/* Data in the mapped image is there until the end; anything else only now. */
static int fill(struct ckpt_build *b, struct mm_state *s, uint64_t addr, const uint8_t *data,
	size_t len, struct err *e)
{
	const struct ckpt_filling w = {
		.pid = s->proc->threads[0].tid,
		.vpid = ckpt_said(b->world, s->proc->threads[0].vtid),
		.proc_fd = b->world->proc_fd,
		.mem = &s->mem,
		.writable = s->at[s->last].prot & PROT_WRITE,
		.addr = addr,
		.data = data,
		.len = len,
	};
	bool stays = b->options.left && data >= b->options.left &&
		     data < b->options.left + b->options.left_len;
	int r = 0;

	/* Where an image has something twice the last is what counts. */
	if (addr < s->filled)
		r = ckpt_fillers_wait(b->fillers, e);
	s->filled = MAX(s->filled, addr + len);
	if (r == 0 && !w.writable && s->mem < 0)
		s->mem = proc_open_file(w.proc_fd, w.vpid, "mem", O_RDWR, e);
	if (r < 0 || (!w.writable && s->mem < 0))
		return e->error;
	return ckpt_fillers_add(stays ? b->fillers : NULL, &w, e);
}

/*
 * What comes behind what came ahead, where that is mapped: it goes into the file, of which no task
 * has seen a page yet.  To write it into the process would make a page of its own of each.
 */
static int fill_mapped(struct ckpt_build *b, struct mm_state *s, uint64_t addr,
	const uint8_t *data, size_t len, struct err *e)
{
	size_t i = ckpt_mapped_find(b, s->first_piece, s->n_pieces, addr), all;
	const struct ckpt_piece *v = ckpt_build_pieces(b, &all) + s->first_piece;
	int r = 0;

	for (size_t n; len && r == 0; addr += n, data += n, len -= n) {
		if (i == s->n_pieces || addr + len <= v[i].addr)
			return fill(b, s, addr, data, len, e);
		if (addr < v[i].addr) {
			n = v[i].addr - addr;
			r = fill(b, s, addr, data, n, e);
			continue;
		}
		n = MIN(len, v[i].addr + v[i].len - addr);
		r = ckpt_arrived_write(
			b->options.arrived, v[i].offset + (addr - v[i].addr), data, n, e);
		i++;
	}
	return r;
}

static int mm_data(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset, const void *data,
	size_t len, struct err *e)
{
	struct mm_state *s = r->state;

	if (!s || offset + len < offset || !find_mapping(s, offset, offset + len))
		return err_set(e, ERR_IMAGE, -EBADMSG, "pages at %llx belong to no mapping",
			(unsigned long long)offset);
	b->report.pages += len / PAGE_SIZE;
	return fill_mapped(b, s, offset, data, len, e);
}

int ckpt_mm_put(struct ckpt_build *b, pid_t vpid, uint64_t addr, const void *data, size_t len,
	struct err *e)
{
	struct ckpt_record *r = ckpt_build_record(b, PROTO_KIND_MM, (uint64_t)vpid);
	struct mm_state *s = r ? r->state : NULL;
	int ret = 0;

	for (size_t done = 0, n; done < len && ret >= 0; done += n) {
		if (!s || !find_mapping(s, addr + done, addr + done + PAGE_SIZE))
			return err_set(e, ERR_IMAGE, -EBADMSG, "pages at %llx belong to no mapping",
				(unsigned long long)addr);
		n = MIN(len - done, s->at[s->last].end - (addr + done));
		ret = mm_data(b, r, addr + done, (const uint8_t *)data + done, n, e);
	}
	return ret;
}

static int no_mapping(uint64_t addr, struct err *e)
{
	return err_set(e, ERR_IMAGE, -EBADMSG, "pages at %llx belong to no mapping",
		(unsigned long long)addr);
}

/* Of what was kept what lies in one mapping. */
static int fill_mapping(struct ckpt_build *b, struct mm_state *s, size_t i, const Pb__Mm *m,
	size_t *next, struct err *e)
{
	_cleanup_buf_ struct buf runs = BUF_INIT;
	struct ckpt_private *v = &s->at[i];

	while (*next + 1 < m->n_kept && m->kept[*next] < v->end) {
		uint64_t from = MAX(m->kept[*next], v->start), to = MIN(m->kept[*next + 1], v->end);

		/* it may go on from one mapping to the next */
		if (m->kept[*next] < v->start && (!i || s->at[i - 1].end != v->start))
			return no_mapping(m->kept[*next], e);
		ckpt_run_put(&runs, from, to);
		if (m->kept[*next + 1] > v->end)
			break;
		*next += 2;
	}
	if (buf_error(&runs))
		return err_errno(e, -ENOMEM, "memory");
	if (runs.len)
		s->filled = v->end;
	return ckpt_kept_put(b, s->proc, s->ahead, v, (const struct ckpt_run *)runs.data,
		runs.len / sizeof(struct ckpt_run), &s->mem, e);
}

int ckpt_mm_fill_kept(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct mm_state *s = r->kind == &ckpt_kind_mm ? r->state : NULL;
	size_t next = 0;
	Pb__Mm *m;
	int ret = 0;

	if (!s || !s->ahead)
		return 0;
	if (!ckpt_arrived_has(b->options.arrived, s->ahead))
		return err_set(e, ERR_IMAGE, -EBADMSG, "memory space %llu was not copied ahead",
			(unsigned long long)s->ahead);
	if (ckpt_mm_unpack(r, &m, e) < 0)
		return e->error;
	ckpt_build_pieces(b, &s->first_piece);
	for (size_t i = 0; i < s->n && ret == 0; i++)
		ret = fill_mapping(b, s, i, m, &next, e);
	ckpt_build_pieces(b, &s->n_pieces);
	s->n_pieces -= s->first_piece;
	if (ret == 0 && next < m->n_kept)
		ret = no_mapping(m->kept[next], e);
	pb__mm__free_unpacked(m, NULL);
	return ret;
}

int ckpt_mm_left(
	struct ckpt_build *b, struct ckpt_record *r, const struct proto_frame *f, struct err *e)
{
	struct mm_state *s = r->kind == &ckpt_kind_mm ? r->state : NULL;

	if (!s || !ckpt_mapped_wants(b, f) || !find_mapping(s, f->offset, f->offset + f->len) ||
		!s->at[s->last].fits)
		return 0;
	return ckpt_mapped_add(b, s->proc, &s->at[s->last], f->offset, f->len,
		       (uint64_t)f->file_offset, e) < 0
		       ? e->error
		       : 1;
}

static int mm_finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct mm_state *s = r->state;
	Pb__Mm *m;
	int ret;

	s->mem = close_fd(s->mem);
	if (!s->has_finish)
		return 0;
	ret = ckpt_mm_unpack(r, &m, e);
	if (ret < 0)
		return ret;
	ret = ckpt_map_finish(b, s->proc, m, e);
	pb__mm__free_unpacked(m, NULL);
	return ret;
}

static void mm_show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Mm *m = pb__mm__unpack(NULL, len, body);
	uint64_t size = 0;

	if (!m)
		return;
	for (size_t i = 0; i < m->n_mappings; i++)
		size += m->mappings[i]->end - m->mappings[i]->start;
	fprintf(out, "%zu mappings, %llu MiB, %zu files, %s", m->n_mappings,
		(unsigned long long)size >> 20, m->n_files, m->exe ? m->exe->path : "no program");
	pb__mm__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_mm = {
	.number = PROTO_KIND_MM,
	.name = "memory",
	.scope = CKPT_PROC,
	.check = mm_check,
	.dump = mm_dump,
	.dump_data = mm_dump_data,
	.create = mm_create,
	.data = mm_data,
	.finish = mm_finish,
	.show = mm_show,
};
