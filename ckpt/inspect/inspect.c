// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in inspect.h. */
#include "ckpt/inspect/inspect.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/restore/records.h"
#include "proto/files.pb-c.h"
#include "proto/ipc.pb-c.h"
#include "proto/memory.pb-c.h"

/* ---- reading the image ----------------------------------------------------------------------- */

static bool is_memory(uint32_t kind)
{
	return kind == PROTO_KIND_MM || kind == PROTO_KIND_SHARED_MEM || kind == PROTO_KIND_MEMFD ||
	       kind == PROTO_KIND_GHOST || kind == PROTO_KIND_SYSV_SHM;
}

static int spool(struct ckpt_inspect *i, const struct proto_frame *f, struct err *e)
{
	int r;

	if (i->spool < 0)
		i->spool = open("/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (i->spool < 0)
		i->spool = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (i->spool < 0)
		return err_errno(e, -errno, "temporary file");
	r = io_pwrite_full(i->spool, f->data, f->len, i->spooled);
	if (r < 0)
		return err_errno(e, r, "temporary file");
	i->spooled += (off_t)f->len;
	return 0;
}

static int put_extent(struct ckpt_inspect *i, const struct ckpt_extent *x, struct err *e)
{
	if (i->n_extents == i->cap_extents) {
		size_t cap = i->cap_extents ? 2 * i->cap_extents : 1024;
		void *more = reallocarray(i->extents, cap, sizeof(*x));

		if (!more)
			return err_errno(e, -ENOMEM, "pages");
		i->extents = more;
		i->cap_extents = cap;
	}
	i->extents[i->n_extents++] = *x;
	return 0;
}

static int take_data(struct ckpt_inspect *i, const struct proto_frame *f, struct err *e)
{
	struct ckpt_extent x = {.kind = f->kind,
		.subject = f->subject,
		.offset = f->offset,
		.len = f->len,
		.at = f->file_offset};

	if (x.at < 0) {
		x.at = i->spooled;
		x.spooled = true;
		if (spool(i, f, e) < 0)
			return e->error;
	}
	return put_extent(i, &x, e);
}

/* proto/SPEC.md, "Pages that are in another image". */
static int take_refs(struct ckpt_inspect *i, const struct proto_frame *f, struct err *e)
{
	const uint8_t *pages;
	struct ckpt_ref ref;
	size_t at = 0;
	int r;

	while ((r = ckpt_ref_read(i->base, f->data, f->len, &at, &ref, &pages, e)) > 0) {
		struct ckpt_extent x = {.kind = PROTO_KIND_MM,
			.subject = f->subject,
			.offset = ref.addr,
			.len = ref.len,
			.base = (uint32_t)ref.base,
			.at = (off_t)ref.offset};

		r = put_extent(i, &x, e);
		if (r < 0)
			return r;
	}
	return r;
}

static int take_tree(struct ckpt_inspect *i, const struct proto_frame *f, struct err *e)
{
	void *more = reallocarray(i->trees, i->n_trees + 1, sizeof(*i->trees));

	if (!more)
		return err_errno(e, -ENOMEM, "files");
	i->trees = more;
	i->trees[i->n_trees] = pb__tree__unpack(NULL, f->len, f->data);
	if (!i->trees[i->n_trees])
		return err_set(e, ERR_IMAGE, -EBADMSG, "the session's files: damaged");
	i->n_trees++;
	return 0;
}

/* The records of the supervisor: up to the first one behind them. */
static int read_front(struct ckpt_inspect *i, struct proto_reader *in, struct err *e)
{
	struct proto_frame f;

	for (;;) {
		int r = proto_read(in, &f, e);

		if (r < 0)
			return r;
		if (f.kind == PROTO_KIND_AHEAD)
			return err_set(e, ERR_IMAGE, -EOPNOTSUPP,
				"memory was copied ahead: only podrun receive and resume read that");
		if (f.kind == PROTO_KIND_BASE)
			return err_set(e, ERR_IMAGE, -EBADMSG,
				"a reference to another image is out of order");
		if (f.type == PROTO_END || f.kind > PROTO_KIND_BASE) {
			proto_unread(in);
			return 0;
		}
		if (i->all && f.kind == PROTO_KIND_TREE)
			r = f.type == PROTO_DATA ? take_data(i, &f, e) : take_tree(i, &f, e);
		if (r < 0)
			return r;
	}
}

static int read_data(struct ckpt_inspect *i, struct proto_reader *in, struct err *e)
{
	struct proto_frame f;

	for (;;) {
		int r = proto_read(in, &f, e);

		if (r < 0)
			return r;
		if (f.type == PROTO_END)
			return 0;
		if (f.type != PROTO_DATA)
			return err_set(e, ERR_IMAGE, -EBADMSG, "a record behind the data");
		if (f.kind == PROTO_KIND_REFS)
			r = take_refs(i, &f, e);
		else if (i->all || is_memory(f.kind))
			r = take_data(i, &f, e);
		if (r < 0)
			return r;
	}
}

static int compare(const void *x, const void *y)
{
	const struct ckpt_extent *a = x, *b = y;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->subject != b->subject)
		return a->subject < b->subject ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int read_shared(struct ckpt_inspect *i, struct err *e)
{
	const struct ckpt_record *r = ckpt_build_record(&i->b, PROTO_KIND_SHARED_MEM, 0);

	if (r) {
		i->shared = pb__shared_mem__unpack(NULL, r->len, r->body);
		if (!i->shared)
			return err_set(e, ERR_IMAGE, -EBADMSG, "shared memory record is damaged");
	}
	r = ckpt_build_record(&i->b, PROTO_KIND_SYSV_SHM, 0);
	if (r) {
		i->sysv = pb__sysv_shm__unpack(NULL, r->len, r->body);
		if (!i->sysv)
			return err_set(e, ERR_IMAGE, -EBADMSG, "shared memory record is damaged");
	}
	return 0;
}

int ckpt_inspect_open(
	struct ckpt_inspect **ret, const struct ckpt_image *image, bool all, struct err *e)
{
	struct ckpt_inspect *i = calloc(1, sizeof(*i));
	int r;

	if (!i)
		return err_errno(e, -ENOMEM, "image");
	i->image = image->fd;
	i->base = image->base;
	i->all = all;
	i->spool = -1;
	i->b.in = image->in;
	i->b.host_proc = i->b.self_pidfd = -1;
	r = read_front(i, image->in, e);
	if (r == 0)
		r = ckpt_records_read(&i->b, e);
	if (r == 0)
		r = read_shared(i, e);
	if (r == 0)
		r = read_data(i, image->in, e);
	if (r < 0) {
		ckpt_inspect_close(i);
		return r;
	}
	sort_array(i->extents, i->n_extents, sizeof(*i->extents), compare);
	*ret = i;
	return 0;
}

void ckpt_inspect_close(struct ckpt_inspect *i)
{
	if (!i)
		return;
	for (size_t n = 0; n < i->b.n_records; n++) {
		free((void *)i->b.records[n].body);
		free(i->b.records[n].state);
	}
	for (size_t n = 0; n < i->b.n_procs; n++)
		free(i->b.procs[n].threads);
	for (size_t n = 0; n < ARRAY_SIZE(i->b.kind_state); n++)
		free(i->b.kind_state[n]);
	free(i->b.records);
	free(i->b.procs);
	free(i->b.files);
	free(i->extents);
	for (size_t n = 0; n < i->n_trees; n++)
		pb__tree__free_unpacked(i->trees[n], NULL);
	free(i->trees);
	pb__shared_mem__free_unpacked(i->shared, NULL);
	pb__sysv_shm__free_unpacked(i->sysv, NULL);
	close_fd(i->spool);
	free(i);
}

/* The first extent of (kind, subject) that ends behind @offset, or NULL. */
static const struct ckpt_extent *find(
	const struct ckpt_inspect *i, uint32_t kind, uint64_t subject, uint64_t offset)
{
	const struct ckpt_extent key = {.kind = kind, .subject = subject, .offset = offset};
	size_t low = 0, high = i->n_extents;
	const struct ckpt_extent *x;

	/* the last one that begins at or in front of it */
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (compare(&i->extents[mid], &key) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	x = low ? &i->extents[low - 1] : NULL;
	if (x && x->kind == kind && x->subject == subject && offset - x->offset < x->len)
		return x;
	if (low == i->n_extents)
		return NULL;
	x = &i->extents[low];
	return x->kind == kind && x->subject == subject ? x : NULL;
}

static int read_extent(const struct ckpt_inspect *i, const struct ckpt_extent *x, uint64_t offset,
	void *data, size_t len)
{
	uint64_t at = (uint64_t)x->at + (offset - x->offset);
	const uint8_t *there = x->base ? ckpt_base_at(i->base, x->base, at, len) : NULL;

	if (there)
		memcpy(data, there, len);
	else if (x->base || io_pread_full(x->spooled ? i->spool : i->image, data, len, (off_t)at) !=
				    (ssize_t)len)
		return -EFAULT;
	return 0;
}

/* ---- data of any kind ------------------------------------------------------------------------ */

/* What is stored from @offset on, and zeros between it. */
static int read_any(const struct ckpt_inspect *i, uint32_t kind, uint64_t subject, uint64_t offset,
	uint8_t *data, size_t len)
{
	memset(data, 0, len);
	while (len) {
		const struct ckpt_extent *x = find(i, kind, subject, offset);
		uint64_t skip, n;

		if (!x || (x->offset > offset && x->offset - offset >= len))
			return 0;
		skip = x->offset > offset ? x->offset - offset : 0;
		n = MIN(len - skip, x->len - (offset + skip - x->offset));
		if (read_extent(i, x, offset + skip, data + skip, n) < 0)
			return -EFAULT;
		offset += skip + n;
		data += skip + n;
		len -= skip + n;
	}
	return 0;
}

/* Where the first byte is that is stored at or behind @at; UINT64_MAX: there is none. */
static uint64_t next_stored(
	const struct ckpt_inspect *i, uint32_t kind, uint64_t subject, uint64_t at)
{
	const struct ckpt_extent *x = find(i, kind, subject, at);

	return x ? MAX(x->offset, at) : UINT64_MAX;
}

#define COMPARED 4096 /* bytes at a time */

int ckpt_inspect_same(const struct ckpt_inspect *a, uint64_t a_subject,
	const struct ckpt_inspect *b, uint64_t b_subject, uint32_t kind, uint64_t len)
{
	uint8_t x[COMPARED], y[COMPARED];
	uint64_t at = 0;

	/* From one stored byte to the next: an image may say that the last of them is anywhere. */
	while ((at = MIN(next_stored(a, kind, a_subject, at),
			next_stored(b, kind, b_subject, at))) < len) {
		size_t n = MIN(len - at, (uint64_t)COMPARED);

		if (read_any(a, kind, a_subject, at, x, n) < 0 ||
			read_any(b, kind, b_subject, at, y, n) < 0)
			return -EIO;
		if (memcmp(x, y, n) != 0)
			return 0;
		at += n;
	}
	return 1;
}

uint64_t ckpt_inspect_object(const struct ckpt_record *r)
{
	Pb__MemFd *memfd = NULL;
	Pb__Ghost *ghost = NULL;
	Pb__Pipe *pipe = NULL;
	uint64_t object = r->subject;

	switch (r->kind->number) {
	case PROTO_KIND_MEMFD:
		memfd = pb__mem_fd__unpack(NULL, r->len, r->body);
		object = memfd ? memfd->object : 0;
		break;
	case PROTO_KIND_GHOST:
		ghost = pb__ghost__unpack(NULL, r->len, r->body);
		object = ghost ? ghost->object : 0;
		break;
	case PROTO_KIND_PIPE:
	case PROTO_KIND_FIFO:
		pipe = pb__pipe__unpack(NULL, r->len, r->body);
		object = pipe ? pipe->object : 0;
		break;
	default:
		break;
	}
	pb__mem_fd__free_unpacked(memfd, NULL);
	pb__ghost__free_unpacked(ghost, NULL);
	pb__pipe__free_unpacked(pipe, NULL);
	return object;
}

/* ---- one address space ----------------------------------------------------------------------- */

/* Where the contents of open file @id are stored. */
static void place_file(const struct ckpt_inspect *i, uint32_t id, struct ckpt_space_mapping *ret)
{
	const struct ckpt_build_file *f = ckpt_build_file((struct ckpt_build *)&i->b, id);
	uint32_t kind = f && f->record ? f->record->kind->number : 0;

	if (kind == PROTO_KIND_MEMFD || kind == PROTO_KIND_GHOST) {
		ret->kind = kind;
		ret->subject = ckpt_inspect_object(f->record);
	}
}

static void place_shared(
	const struct ckpt_inspect *i, const Pb__Mapping *m, struct ckpt_space_mapping *ret)
{
	for (size_t n = 0; i->shared && n < i->shared->n_objects; n++) {
		const Pb__SharedObject *o = i->shared->objects[n];

		if (o->id != m->object)
			continue;
		ret->base = m->offset;
		if (o->file) {
			place_file(i, o->file, ret);
			return;
		}
		ret->kind = PROTO_KIND_SHARED_MEM;
		ret->base += o->data_at;
		return;
	}
}

static void place_sysv(
	const struct ckpt_inspect *i, const Pb__Mapping *m, struct ckpt_space_mapping *ret)
{
	for (size_t n = 0; i->sysv && n < i->sysv->n_segments; n++) {
		const Pb__ShmSegment *s = i->sysv->segments[n];

		if (!s->perm || (uint64_t)s->perm->id != m->object)
			continue;
		ret->kind = PROTO_KIND_SYSV_SHM;
		ret->base = s->start + m->offset;
		return;
	}
}

static void place(const struct ckpt_inspect *i, uint64_t owner, const Pb__Mapping *m,
	struct ckpt_space_mapping *ret)
{
	bool shared = m->flags & PB__MAPPING_FLAG__MAPPING_IS_SHARED;

	if (!shared && m->source <= PB__MAPPING_SOURCE__MAPPING_SHARED) {
		ret->kind = PROTO_KIND_MM;
		ret->subject = owner;
		ret->base = m->start;
	} else if (m->source == PB__MAPPING_SOURCE__MAPPING_SHARED) {
		place_shared(i, m, ret);
	} else if (m->source == PB__MAPPING_SOURCE__MAPPING_SYSV) {
		place_sysv(i, m, ret);
	}
}

int ckpt_space_open(struct ckpt_space *ret, struct ckpt_inspect *in,
	const struct ckpt_build_proc *p, struct err *e)
{
	const struct ckpt_record *r = ckpt_build_record(&in->b, PROTO_KIND_MM, (uint64_t)p->mm);
	struct ckpt_space s = {.in = in};
	int rc;

	if (!r)
		return err_set(e, ERR_IMAGE, -EBADMSG, "task %d has no memory", p->vpid);
	rc = ckpt_mm_unpack(r, &s.mm, e);
	if (rc < 0)
		return rc;
	s.at = calloc(s.mm->n_mappings + 1, sizeof(*s.at));
	if (!s.at) {
		pb__mm__free_unpacked(s.mm, NULL);
		return err_errno(e, -ENOMEM, "memory");
	}
	for (size_t i = 0; i < s.mm->n_mappings; i++) {
		s.at[i].fd = -1;
		place(in, (uint64_t)p->mm, s.mm->mappings[i], &s.at[i]);
	}
	*ret = s;
	return 0;
}

void ckpt_space_close(struct ckpt_space *s)
{
	for (size_t i = 0; s->mm && i < s->mm->n_mappings; i++)
		close_fd(s->at[i].fd);
	pb__mm__free_unpacked(s->mm, NULL);
	free(s->at);
	*s = (struct ckpt_space){0};
}

long ckpt_space_find(const struct ckpt_space *s, uint64_t addr)
{
	size_t low = 0, high = s->mm->n_mappings;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (s->mm->mappings[mid]->end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == s->mm->n_mappings || s->mm->mappings[low]->start > addr)
		return -1;
	return (long)low;
}

bool ckpt_space_stored(
	const struct ckpt_space *s, size_t i, uint64_t from, uint64_t *ret_start, uint64_t *ret_end)
{
	const Pb__Mapping *m = s->mm->mappings[i];
	const struct ckpt_space_mapping *at = &s->at[i];
	const struct ckpt_extent *x;
	uint64_t first = at->base + (from - m->start), end = at->base + (m->end - m->start);

	if (!at->kind || from >= m->end)
		return false;
	x = find(s->in, at->kind, at->subject, first);
	if (!x || x->offset >= end)
		return false;
	*ret_start = m->start + (MAX(x->offset, first) - at->base);
	*ret_end = m->start + (MIN(x->offset + x->len, end) - at->base);
	return *ret_end > *ret_start;
}

int ckpt_space_file(struct ckpt_space *s, size_t i)
{
	const Pb__Mapping *m = s->mm->mappings[i];
	struct ckpt_space_mapping *at = &s->at[i];
	const Pb__MappedFile *f;
	struct err ignored;

	if (at->tried || m->source != PB__MAPPING_SOURCE__MAPPING_PATH ||
		m->object >= s->mm->n_files)
		return at->fd;
	at->tried = true;
	f = s->mm->files[m->object];
	if (ckpt_file_recognise(&s->in->b, f, false, &ignored) == 0)
		at->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return at->fd;
}

static int read_stored(const struct ckpt_space *s, size_t i, uint64_t addr, void *data, size_t len)
{
	const struct ckpt_space_mapping *at = &s->at[i];
	uint64_t offset = at->base + (addr - s->mm->mappings[i]->start);
	const struct ckpt_extent *x = find(s->in, at->kind, at->subject, offset);

	return x ? read_extent(s->in, x, offset, data, len) : -EFAULT;
}

/* What is not stored: @len bytes that belong together. */
static int read_source(struct ckpt_space *s, size_t i, uint64_t addr, void *data, size_t len)
{
	const Pb__Mapping *m = s->mm->mappings[i];
	uint64_t at = addr - m->start;
	ssize_t n;
	int fd;

	switch (m->source) {
	case PB__MAPPING_SOURCE__MAPPING_ANON:
	case PB__MAPPING_SOURCE__MAPPING_SHARED:
	case PB__MAPPING_SOURCE__MAPPING_SYSV:
		memset(data, 0, len);
		return 0;
	case PB__MAPPING_SOURCE__MAPPING_PATH:
		fd = ckpt_space_file(s, i);
		n = fd < 0 ? -1 : io_pread_full(fd, data, len, (off_t)(m->offset + at));
		if (n < 0)
			return -EFAULT;
		memset((uint8_t *)data + n, 0, len - (size_t)n); /* the rest of its last page */
		return 0;
	case PB__MAPPING_SOURCE__MAPPING_VDSO:
		if (at > s->mm->vdso.len || len > s->mm->vdso.len - at)
			return -EFAULT;
		memcpy(data, s->mm->vdso.data + at, len);
		return 0;
	default:
		return -EFAULT;
	}
}

int ckpt_space_read(struct ckpt_space *s, uint64_t addr, void *data, size_t len)
{
	uint8_t *to = data;

	while (len) {
		long i = ckpt_space_find(s, addr);
		uint64_t start, end, n;
		int r;

		if (i < 0)
			return -EFAULT;
		n = MIN((uint64_t)len, s->mm->mappings[i]->end - addr);
		if (!ckpt_space_stored(s, (size_t)i, addr, &start, &end)) {
			r = read_source(s, (size_t)i, addr, to, n);
		} else if (start > addr) {
			n = MIN(n, start - addr);
			r = read_source(s, (size_t)i, addr, to, n);
		} else {
			n = MIN(n, end - addr);
			r = read_stored(s, (size_t)i, addr, to, n);
		}
		if (r < 0)
			return r;
		addr += n;
		to += n;
		len -= n;
	}
	return 0;
}
