// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * sharedmem - memory that several mappings are windows of and which has no path.
 *
 * Theory of operation
 *
 * MAP_SHARED|MAP_ANONYMOUS, shared /dev/zero, memfds and deleted files all show as a mapping of a
 * deleted file; device and inode tell which mappings, in one process or many, belong together.
 *
 *      some descriptor is open on it    its FILE kind (memfd, ghost) carries the contents; the
 *                                       record only says which file it is
 *      none is                          an ordinary user can't open what is behind a mapping
 *                                       (map_files needs a capability): the contents are read
 *                                       through the mappings, and become a memfd at restore
 *
 * A file that only private mappings of one kind see and nobody has open is no object: every such
 * mapping keeps a copy of its own (ckpt_shared_find gives 0).
 *
 * Untouched pages: reading a hole of a shared object would fill it, so mincore is asked inside a
 * task first, unless pages may be in swap (mincore calls those absent).
 *
 * All objects are one record.  Each has a part of one offset space for its DATA: `data_at`.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/find.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/stash.h"
#include "ckpt/survey/survey.h"
#include "proto/memory.pb-c.h"

#define MAX_OBJECTS 65536
#define MAX_SIZE    (1ULL << 46)

/* ---- dump ----------------------------------------------------------------------------------- */

struct object {
	uint32_t major, minor;
	uint64_t ino;
	uint64_t size, data_at;
	uint32_t file;
	bool shared; /* by a MAP_SHARED mapping */
	bool asked;  /* for its name */
	const char *path;
	char *name; /* that it still has: then it is a file like others, and no object */
};

struct registry {
	size_t n, cap;
	struct object at[];
};

/* Is @v a mapping of something without a path? */
static bool is_pathless(const struct proc_vma *v)
{
	bool named;

	/* Thousands are asked about, and hardly any is one. */
	if (!v->ino || (!v->deleted && !v->shared && strncmp(v->path, "/m", 2)))
		return false;
	named = !v->deleted && strncmp(v->path, "/memfd:", 7) &&
		!(v->shared && (*v->path == '\0' || *v->path == '['));
	return !named && strncmp(v->path, "/SYSV", 5) && strncmp(v->path, "/[aio]", 6);
}

static void forget(void *state)
{
	struct registry *g = state;

	for (size_t i = 0; i < g->n; i++)
		free(g->at[i].name);
	free(g);
}

static struct object *find_object(struct registry *g, const struct proc_vma *v)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->at[i].ino == v->ino && g->at[i].major == v->dev_major &&
			g->at[i].minor == v->dev_minor)
			return &g->at[i];
	return NULL;
}

/* The open file that carries the contents; on overlays, whose mappings may show the number of
 * another device, it is found by its name. */
static uint32_t find_file(const struct ckpt_dump *d, const struct proc_vma *v)
{
	const struct ckpt_file *f =
		ckpt_common_carrier(d, makedev(v->dev_major, v->dev_minor), v->ino);
	size_t len = strlen(v->path);

	for (size_t i = 0; !f && i < d->n_files && v->deleted && v->path[0] == '/'; i++) {
		const struct ckpt_file *o = d->files[i];

		if (S_ISREG(o->st.st_mode) && o->st.st_nlink == 0 && o->st.st_ino == v->ino &&
			!strncmp(o->link, v->path, len) && !strcmp(o->link + len, " (deleted)"))
			f = ckpt_common_carrier(d, o->st.st_dev, o->st.st_ino);
	}
	return f ? f->id : 0;
}

/* A file that is shared with others by a name it still has: searched once, told of each mapping. */
static int take_name(struct ckpt_dump *d, struct object *o, struct proc_vma *v, struct err *e)
{
	char *name;

	if (!v->shared || o->file || v->path[0] != '/' || !strncmp(v->path, "/memfd:", 7) ||
		!strcmp(v->path, "/dev/zero"))
		return 0;
	if (!o->asked)
		o->name = ckpt_find_beside(
			d, v->path, makedev(v->dev_major, v->dev_minor), v->ino);
	o->asked = true;
	if (!o->name)
		return 0;
	name = strdup(o->name);
	if (!name)
		return err_errno(e, -ENOMEM, "shared memory");
	/* It may be what @o has shown so far. */
	o->path = o->name;
	free(v->path);
	v->path = name;
	v->deleted = false;
	return 0;
}

static int add_object(struct ckpt_dump *d, struct registry **g, struct proc_vma *v, struct err *e)
{
	struct object *o = find_object(*g, v);
	uint64_t end = v->offset + (v->end - v->start);

	if (!o) {
		if ((*g)->n == (*g)->cap) {
			size_t cap = 2 * (*g)->cap;
			struct registry *more =
				realloc(*g, sizeof(**g) + cap * sizeof((*g)->at[0]));

			if (!more)
				return err_errno(e, -ENOMEM, "shared memory");
			more->cap = cap;
			d->kind_state[PROTO_KIND_SHARED_MEM] = *g = more;
		}
		o = &(*g)->at[(*g)->n++];
		*o = (struct object){.major = v->dev_major,
			.minor = v->dev_minor,
			.ino = v->ino,
			.file = find_file(d, v),
			.path = v->path};
	}
	o->size = MAX(o->size, end);
	o->shared = o->shared || v->shared;
	return take_name(d, o, v, e);
}

/* All objects of the session, found at the first question. */
static int get_registry(struct ckpt_dump *d, struct registry **ret, struct err *e)
{
	struct registry *g = d->kind_state[PROTO_KIND_SHARED_MEM];
	uint64_t at = 0;

	if (g) {
		*ret = g;
		return 0;
	}
	g = calloc(1, sizeof(*g) + 16 * sizeof(g->at[0]));
	if (!g)
		return err_errno(e, -ENOMEM, "shared memory");
	g->cap = 16;
	d->kind_state[PROTO_KIND_SHARED_MEM] = g;
	for (size_t i = 0; i < d->n_procs; i++)
		for (size_t k = 0; k < d->procs[i]->maps.n; k++) {
			struct proc_vma *v = &d->procs[i]->maps.vmas[k];
			int r = is_pathless(v) ? add_object(d, &g, v, e) : 0;

			if (r < 0)
				return r;
		}
	for (size_t i = 0; i < g->n; i++) {
		g->at[i].data_at = at;
		at += ALIGN_UP(g->at[i].size, PAGE_SIZE);
	}
	*ret = g;
	return 0;
}

static bool is_object(const struct object *o)
{
	return !o->name && (o->shared || o->file);
}

int ckpt_shared_find(struct ckpt_dump *d, const struct proc_vma *v, uint64_t *ret_id, struct err *e)
{
	struct registry *g;
	int r = get_registry(d, &g, e);
	const struct object *o;

	if (r < 0)
		return r;
	o = is_pathless(v) ? find_object(g, v) : NULL;
	*ret_id = o && is_object(o) ? (uint64_t)(o - g->at) + 1 : 0;
	return 0;
}

static int shared_dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__SharedMem m = PB__SHARED_MEM__INIT;
	_cleanup_free_ Pb__SharedObject *objects = NULL;
	_cleanup_free_ Pb__SharedObject **list = NULL;
	struct registry *g;
	int r = get_registry(d, &g, e);

	if (r < 0)
		return r;
	objects = calloc(g->n + 1, sizeof(*objects));
	list = calloc(g->n + 1, sizeof(Pb__SharedObject *));
	if (!objects || !list)
		return err_errno(e, -ENOMEM, "shared memory");
	for (size_t i = 0; i < g->n; i++) {
		Pb__SharedObject *o = &objects[m.n_objects];

		if (!is_object(&g->at[i]))
			continue;
		pb__shared_object__init(o);
		o->id = i + 1;
		o->size = g->at[i].size;
		o->file = g->at[i].file;
		o->data_at = g->at[i].data_at;
		o->name = (char *)g->at[i].path;
		list[m.n_objects++] = o;
	}
	if (!m.n_objects)
		return 1;
	m.objects = list;
	return ckpt_pack(&m.base, body, e);
}

/* Appends the pages of [start, end) that exist, as mincore tells inside @p. */
static int find_resident(
	struct ckpt_proc *p, uint64_t start, uint64_t end, struct buf *runs, struct err *e)
{
	struct remote *rem;
	int r = ckpt_proc_remote(p, &rem, e);

	while (start < end && r >= 0) {
		size_t n = MIN((end - start) / PAGE_SIZE, REMOTE_DATA_SIZE / 2);
		uint64_t addr;
		const uint8_t *vec = remote_data(rem, n, &addr);

		if (!vec || remote_add(rem, SYS_mincore, start, n * PAGE_SIZE, addr, 0, 0, 0) < 0)
			return err_errno(e, -ENOSPC, "mincore");
		r = remote_run(rem, true, e);
		if (r >= 0 && remote_result(rem, 0) < 0)
			r = err_errno(e, (int)remote_result(rem, 0), "mincore");
		for (size_t i = 0; i < n && r >= 0; i++) {
			struct ckpt_run *last =
				runs->len ? (void *)(runs->data + runs->len - sizeof(*last)) : NULL;
			uint64_t at = start + i * PAGE_SIZE;
			struct ckpt_run run = {at, at + PAGE_SIZE};

			if (!(vec[i] & 1))
				continue;
			if (last && last->end == at)
				last->end += PAGE_SIZE;
			else
				buf_put(runs, &run, sizeof(run));
		}
		start += n * PAGE_SIZE;
	}
	return r < 0 ? r : buf_error(runs) ? err_errno(e, -ENOMEM, "mincore") : 0;
}

static bool has_bit(const uint8_t *bits, uint64_t i)
{
	return bits[i / 8] & 1 << i % 8;
}

static void set_bit(uint8_t *bits, uint64_t i)
{
	bits[i / 8] |= (uint8_t)(1 << i % 8);
}

/* What a mapping of @o shows of it: @skip, pages which are not to be written, one bit each, and
 * those that have been. */
struct window {
	struct ckpt_proc *p;
	const struct proc_vma *v;
	const struct object *o;
	uint8_t *skip, *done;
};

static int write_run(struct ckpt_dump *d, struct ckpt_pages *pages, const struct window *w,
	struct ckpt_run run, struct err *e)
{
	/* offset in the record = address + shift */
	uint64_t shift = w->o->data_at + w->v->offset - w->v->start;
	const struct ckpt_stash_place place = {PROTO_KIND_SHARED_MEM, 0, shift, true};
	int r = 0;

	for (uint64_t at = run.start; at < run.end && r >= 0;) {
		uint64_t page = (at - w->v->start + w->v->offset) / PAGE_SIZE, from = at;

		for (; at < run.end && !has_bit(w->skip, page); at += PAGE_SIZE, page++) {
			set_bit(w->skip, page);
			set_bit(w->done, page);
		}
		if (at == from) {
			at += PAGE_SIZE;
			continue;
		}
		from += ckpt_stash_pages(d, &place, w->p, (struct ckpt_run){from, at});
		if (from < at)
			r = ckpt_pages_write(pages, d->out, PROTO_KIND_SHARED_MEM, 0,
				(struct ckpt_run){from, at}, shift, false, e);
	}
	return r;
}

/* A private mapping's own copies of pages are not the object's. */
static int skip_copies(struct ckpt_pages *pages, const struct window *w, struct err *e)
{
	_cleanup_buf_ struct buf own = BUF_INIT;
	int r = ckpt_pages_find(pages, w->v->start, w->v->end, &own, NULL, e);

	for (size_t i = 0; i < own.len / sizeof(struct ckpt_run) && r >= 0; i++) {
		struct ckpt_run run = ((struct ckpt_run *)own.data)[i];

		for (uint64_t at = run.start; at < run.end; at += PAGE_SIZE)
			set_bit(w->skip, (at - w->v->start + w->v->offset) / PAGE_SIZE);
	}
	return r;
}

static int write_window(struct ckpt_dump *d, const struct window *w, struct err *e)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	_cleanup_buf_ struct buf runs = BUF_INIT;
	struct ckpt_run all = {w->v->start, w->v->end};
	int r = ckpt_pages_open(&pages, d->host_proc, w->p->look, e);

	if (r >= 0 && w->v->swap_kb)
		buf_put(&runs, &all, sizeof(all));
	else if (r >= 0)
		r = find_resident(w->p, w->v->start, w->v->end, &runs, e);
	if (r >= 0 && !w->v->shared)
		r = skip_copies(&pages, w, e);
	for (size_t i = 0; i < runs.len / sizeof(all) && r >= 0; i++)
		r = write_run(d, &pages, w, ((struct ckpt_run *)runs.data)[i], e);
	if (r >= 0 && pages.gone)
		r = err_set(e, ERR_UNFREEZABLE, -ESRCH,
			"task %d was killed while its memory was written", w->p->vpid);
	d->report.pages += pages.written;
	return r;
}

/*
 * Does @v show no more than what @told has of the object?  mincore tells of all its pages there,
 * whoever has touched them.  If not, @told grows by it as long as it is one stretch.
 */
static bool was_told(struct ckpt_run *told, const struct proc_vma *v)
{
	struct ckpt_run its = {v->offset, v->offset + (v->end - v->start)};

	if (its.start >= told->start && its.end <= told->end)
		return true;
	if (its.start <= told->end && its.end >= told->start)
		*told = (struct ckpt_run){MIN(its.start, told->start), MAX(its.end, told->end)};
	else if (its.end - its.start > told->end - told->start)
		*told = its;
	return false;
}

/* Through the windows which are shared, or private. */
static int write_through(
	struct ckpt_dump *d, const struct object *o, bool shared, uint8_t *done, struct err *e)
{
	size_t len = o->size / PAGE_SIZE / 8 + 1;
	_cleanup_free_ uint8_t *skip = malloc(len);
	struct ckpt_run told = {0};
	int r = 0;

	if (!skip)
		return err_errno(e, -ENOMEM, "shared memory");
	for (size_t i = 0; i < d->n_procs && r >= 0; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (p->state == CKPT_ZOMBIE || p->mm != p->vpid)
			continue;
		for (size_t k = 0; k < p->maps.n && r >= 0; k++) {
			const struct proc_vma *v = &p->maps.vmas[k];
			struct window w = {p, v, o, skip, done};

			if (v->ino != o->ino || v->shared != shared || v->dev_major != o->major ||
				v->dev_minor != o->minor || !is_pathless(v) ||
				(shared && was_told(&told, v)))
				continue;
			memcpy(skip, done, len);
			r = write_window(d, &w, e);
		}
	}
	return r;
}

static int write_object(struct ckpt_dump *d, const struct object *o, struct err *e)
{
	_cleanup_free_ uint8_t *done = calloc(o->size / PAGE_SIZE / 8 + 1, 1);
	int r;

	if (!done)
		return err_errno(e, -ENOMEM, "shared memory");
	r = write_through(d, o, true, done, e);
	return r < 0 ? r : write_through(d, o, false, done, e);
}

static int shared_dump_data(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	struct registry *g;
	int r = get_registry(d, &g, e);

	for (size_t i = 0; r >= 0 && i < g->n; i++)
		if (is_object(&g->at[i]) && !g->at[i].file)
			r = write_object(d, &g->at[i], e);
	return r < 0 ? r : ckpt_stash_fill(d, e);
}

/* ---- restore -------------------------------------------------------------------------------- */

struct made {
	uint64_t id, size, data_at;
	uint32_t file;
	int fd; /* of objects without a file */
	int read_fd; /* the same for mappings that may never be written through; -1 at first */
};

struct made_table {
	size_t n;
	struct made at[];
};

static int make_memfd(struct made *o, struct err *e)
{
	o->fd = memfd_create("podrun-shared", MFD_CLOEXEC);
	if (o->fd < 0)
		return err_errno(e, -errno, "shared memory");
	if (ftruncate(o->fd, (off_t)o->size) < 0)
		return err_errno(
			e, -errno, "shared memory of %llu bytes", (unsigned long long)o->size);
	return 0;
}

static int make_objects(struct ckpt_build *b, const Pb__SharedMem *m, struct err *e)
{
	struct made_table *t;
	int r = 0;

	if (m->n_objects > MAX_OBJECTS)
		return err_set(e, ERR_IMAGE, -E2BIG, "%zu shared objects", m->n_objects);
	t = calloc(1, sizeof(*t) + m->n_objects * sizeof(t->at[0]));
	if (!t)
		return err_errno(e, -ENOMEM, "shared memory");
	free(b->kind_state[PROTO_KIND_SHARED_MEM]);
	b->kind_state[PROTO_KIND_SHARED_MEM] = t;
	for (size_t i = 0; i < m->n_objects && r >= 0; i++) {
		const Pb__SharedObject *o = m->objects[i];

		if (o->size > MAX_SIZE || o->data_at > MAX_SIZE)
			return err_set(e, ERR_IMAGE, -E2BIG, "a shared object is too large");
		t->at[i] = (struct made){o->id, o->size, o->data_at, o->file, -1, -1};
		t->n = i + 1;
		if (!o->file)
			r = make_memfd(&t->at[i], e);
	}
	return r;
}

static int shared_create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__SharedMem *m = pb__shared_mem__unpack(NULL, r->len, r->body);
	int ret;

	if (!m)
		return err_set(e, ERR_IMAGE, -EBADMSG, "shared memory record is damaged");
	ret = make_objects(b, m, e);
	pb__shared_mem__free_unpacked(m, NULL);
	return ret;
}

int ckpt_shared_fd(struct ckpt_build *b, uint64_t id, bool writes, int *ret_fd, struct err *e)
{
	struct made_table *t = b->kind_state[PROTO_KIND_SHARED_MEM];

	for (size_t i = 0; t && i < t->n; i++) {
		struct made *o = &t->at[i];

		if (o->id != id)
			continue;
		int fd = o->file ? ckpt_common_contents(b, o->file, e) : o->fd;

		if (fd >= 0 && !writes) {
			if (o->read_fd < 0)
				o->read_fd = ckpt_common_reopen(b, fd, O_RDONLY, e);
			fd = o->read_fd;
		}
		if (fd < 0)
			return fd;
		*ret_fd = fd;
		return 0;
	}
	return err_set(
		e, ERR_IMAGE, -EBADMSG, "shared object %llu is missing", (unsigned long long)id);
}

static int shared_data(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset,
	const void *data, size_t len, struct err *e)
{
	struct made_table *t = b->kind_state[PROTO_KIND_SHARED_MEM];

	for (size_t i = 0; t && i < t->n; i++) {
		const struct made *o = &t->at[i];

		if (o->fd < 0 || offset < o->data_at || offset - o->data_at >= o->size)
			continue;
		if (len > ALIGN_UP(o->size, PAGE_SIZE) - (offset - o->data_at))
			break;
		int ret = io_pwrite_full(o->fd, data, len, (off_t)(offset - o->data_at));

		b->report.pages += len / PAGE_SIZE;
		return ret < 0 ? err_errno(e, ret, "shared memory") : 0;
	}
	return err_set(e, ERR_IMAGE, -EBADMSG, "data of no shared object");
}

static int shared_finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct made_table *t = b->kind_state[PROTO_KIND_SHARED_MEM];

	for (size_t i = 0; t && i < t->n; i++) {
		t->at[i].fd = close_fd(t->at[i].fd);
		t->at[i].read_fd = close_fd(t->at[i].read_fd);
	}
	return 0;
}

static void shared_show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__SharedMem *m = pb__shared_mem__unpack(NULL, len, body);

	if (!m)
		return;
	fprintf(out, "%zu objects", m->n_objects);
	pb__shared_mem__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_shared_mem = {
	.number = PROTO_KIND_SHARED_MEM,
	.name = "shared memory",
	.scope = CKPT_SESSION,
	.dump = shared_dump,
	.dump_data = shared_dump_data,
	.forget = forget,
	.create = shared_create,
	.data = shared_data,
	.finish = shared_finish,
	.show = shared_show,
};
