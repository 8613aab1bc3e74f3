// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * System V shared memory segments.
 *
 * A visitor in the session's ipc namespace attaches each segment for reading to the memory of who
 * writes the image; pages never touched are left out (mincore(2) tells, as long as nothing is
 * swapped).  Who is attached where is a matter of mappings, which show a segment's id as their
 * inode: kind MM attaches again by id.  Restoring, the builder makes the segments before any
 * process maps memory, stays attached itself to fill them, and calls IPC_RMID again at the end for
 * those that were removed while attached.  Lost: times, and the numbers of the creating and the
 * last process.  Segments of huge pages come back with normal ones.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "ckpt/answers.h"
#include "ckpt/build.h"
#include "ckpt/enter.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/sysv.h"
#include "ckpt/memory/stash.h"
#include "ckpt/survey/survey.h"
#include "proto/ipc.pb-c.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* asm-generic/mman-common.h, 5.14 */
#endif
#define MAX_SEGMENT (1ull << 46)

struct listed {
	int id, host;
	struct shmid_ds ds;
};

/* ---- dump ----------------------------------------------------------------------------------- */

static int ask(const struct ckpt_world *w, struct buf *answer, struct err *e)
{
	_cleanup_free_ struct ckpt_ipc_object *all = NULL;
	ssize_t n = sysv_list(w, CKPT_IPC_SHM, &all, e);

	for (ssize_t i = 0; i < n; i++) {
		struct listed l = {.id = all[i].id, .host = all[i].host};

		if (shmctl(l.host, IPC_STAT, &l.ds) < 0)
			return err_errno(e, -errno, "shared memory %d", l.id);
		sysv_name(w, &all[i], &l.ds.shm_perm);
		buf_put(answer, &l, sizeof(l));
	}
	return (int)MIN(n, 0);
}

static void free_all(Pb__SysvShm *m)
{
	for (size_t i = 0; i < m->n_segments; i++) {
		if (m->segments[i])
			free(m->segments[i]->perm);
		free(m->segments[i]);
	}
	free(m->segments);
}

static int add(Pb__SysvShm *m, const struct listed *l, uint64_t *base)
{
	Pb__ShmSegment *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	pb__shm_segment__init(s);
	m->segments[m->n_segments++] = s;
	s->perm = sysv_perm_dump(l->id, &l->ds.shm_perm);
	s->size = l->ds.shm_segsz;
	s->start = *base;
	s->removed = l->ds.shm_perm.mode & SHM_DEST;
	s->locked = l->ds.shm_perm.mode & SHM_LOCKED;
	*base += ALIGN_UP(s->size, PAGE_SIZE);
	return s->perm ? 0 : -ENOMEM;
}

static int fill(Pb__SysvShm *m, const struct buf *list)
{
	const struct listed *l = (const void *)list->data;
	size_t n = list->len / sizeof(*l);
	uint64_t base = 0;
	int r = 0;

	m->segments = calloc(n + 1, sizeof(*m->segments));
	if (!m->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n && r >= 0; i++)
		r = add(m, &l[i], &base);
	return r;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct buf *list;
	Pb__SysvShm m = PB__SYSV_SHM__INIT;
	int r = ckpt_answer(d, &ckpt_kind_sysv_shm, &list, e);

	if (r < 0)
		return r;
	if (!list->len)
		return 1;
	r = fill(&m, list);
	r = r < 0 ? err_errno(e, r, "shared memory segments") : ckpt_pack(&m.base, body, e);
	free_all(&m);
	return r;
}

/* What is in the segments: a visitor in the namespace has attached them to this memory. */
struct contents {
	const struct listed *list;
	size_t n;
	bool all; /* some may be swapped: mincore(2) would not tell of those */
	const void *maps[];
};

static void detach(struct contents *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->maps[i])
			shmdt(c->maps[i]);
	c->n = 0;
}

static int attach(void *ctx, struct err *e)
{
	struct contents *c = ctx;
	struct shm_info info = {0};

	shmctl(0, SHM_INFO, (void *)&info);
	c->all = info.shm_swp != 0;
	for (size_t i = 0; i < c->n; i++) {
		void *map = shmat(c->list[i].host, NULL, SHM_RDONLY);

		if (map == (void *)-1)
			return err_errno(
				e, -errno, "cannot attach shared memory %d", c->list[i].id);
		c->maps[i] = map;
	}
	return 0;
}

static int write_run(
	struct ckpt_dump *d, uint64_t offset, const uint8_t *at, size_t len, struct err *e)
{
	const struct ckpt_stash_place place = {PROTO_KIND_SYSV_SHM, 0, offset, false};
	uint64_t n;
	int r;

	/* At once, and not with a fault for each few pages; if it can't be, so. */
	madvise((void *)at, len, MADV_POPULATE_READ);
	r = ckpt_stash_copy(d, &place, at, len, &n, e);

	if (r < 0)
		return r;
	return proto_write_data(
		d->out, PROTO_KIND_SYSV_SHM, 0, offset + n, at + n, len - n, e);
}

/* The pages of @map that are there, as runs; all of them where some may be swapped. */
static int write_pages(struct ckpt_dump *d, const uint8_t *map, size_t size, uint64_t base,
	bool all, struct err *e)
{
	size_t pages = ALIGN_UP(size, PAGE_SIZE) / PAGE_SIZE;
	_cleanup_free_ unsigned char *there = malloc(pages);

	if (!there)
		return err_errno(e, -ENOMEM, "shared memory");
	memset(there, 1, pages);
	if (!all && mincore((void *)map, size, there) < 0)
		return err_errno(e, -errno, "cannot read shared memory");
	for (size_t i = 0; i < pages;) {
		size_t n = 0;
		int r;

		while (i + n < pages && (there[i + n] & 1))
			n++;
		r = n ? write_run(d, base + i * PAGE_SIZE, map + i * PAGE_SIZE, n * PAGE_SIZE, e)
		      : 0;
		if (r < 0)
			return r;
		i += n ? n : 1;
	}
	return 0;
}

static void forget(void *state)
{
	detach(state);
	free(state);
}

/* Attaches all, and keeps them in kind_state. */
static int send_out(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	const struct buf *list;
	struct contents *c;
	size_t n;
	int r = ckpt_answer(d, &ckpt_kind_sysv_shm, &list, e);

	if (r < 0)
		return r;
	n = list->len / sizeof(*c->list);
	c = calloc(1, sizeof(*c) + n * sizeof(c->maps[0]));
	if (!c)
		return err_errno(e, -ENOMEM, "shared memory");
	c->list = (const void *)list->data;
	c->n = n;
	r = ckpt_enter_call(d->world, CLONE_NEWIPC, attach, c, e);
	if (r < 0)
		forget(c);
	else
		d->kind_state[PROTO_KIND_SYSV_SHM] = c;
	return r;
}

static int dump_data(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	struct contents *c = take_ptr(d->kind_state[PROTO_KIND_SYSV_SHM]);
	uint64_t base = 0;
	int r = 0;

	for (size_t i = 0; i < c->n && r >= 0; i++) {
		size_t size = c->list[i].ds.shm_segsz;

		r = write_pages(d, c->maps[i], size, base, c->all, e);
		base += ALIGN_UP(size, PAGE_SIZE);
	}
	forget(c);
	return r;
}

/* ---- restore -------------------------------------------------------------------------------- */

/* Where the builder is attached. */
struct attached {
	size_t n;
	struct {
		int id;
		uint64_t base, size;
		uint8_t *at;
		bool removed, locked;
	} of[];
};

static int make(struct ckpt_build *b, const Pb__ShmSegment *s, struct err *e)
{
	struct shmid_ds ds;
	int id;

	if (!s->perm || !s->size || s->size > MAX_SEGMENT)
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad shared memory segment");
	id = sysv_make(b, CKPT_IPC_SHM, s->perm, s->size, e);
	if (id < 0)
		return id;
	if (shmctl(id, IPC_STAT, &ds) < 0)
		return err_errno(e, -errno, "shared memory %d", id);
	sysv_set_owner(b, s->perm, &ds.shm_perm);
	if (shmctl(id, IPC_SET, &ds) < 0)
		return err_errno(e, -errno, "cannot set the owner of shared memory %d", id);
	return id;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__SysvShm *m = pb__sysv_shm__unpack(NULL, r->len, r->body);
	struct attached *a;
	int rc = 0;

	if (!m || m->n_segments > SYSV_MAX_OBJECTS)
		rc = ckpt_common_bad(r, e);
	a = rc < 0 ? NULL : calloc(1, sizeof(*a) + m->n_segments * sizeof(a->of[0]));
	if (rc >= 0 && !a)
		rc = err_errno(e, -ENOMEM, "shared memory");
	r->state = a;
	for (size_t i = 0; rc >= 0 && i < m->n_segments; i++) {
		const Pb__ShmSegment *s = m->segments[i];

		rc = make(b, s, e);
		if (rc < 0)
			break;
		a->of[i].id = rc;
		a->of[i].at = shmat(rc, NULL, 0);
		if (a->of[i].at == (void *)-1) {
			rc = err_errno(e, -errno, "cannot attach shared memory %d", s->perm->id);
			break;
		}
		a->of[i].base = s->start;
		a->of[i].size = s->size;
		a->of[i].removed = s->removed;
		a->of[i].locked = s->locked;
		a->n++;
	}
	pb__sysv_shm__free_unpacked(m, NULL);
	return MIN(rc, 0);
}

static int data(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset, const void *bytes,
	size_t len, struct err *e)
{
	struct attached *a = r->state;

	for (size_t i = 0; a && i < a->n; i++) {
		uint64_t room = ALIGN_UP(a->of[i].size, PAGE_SIZE);

		if (offset < a->of[i].base || offset - a->of[i].base >= room)
			continue;
		if (len > room - (offset - a->of[i].base))
			break;
		memcpy(a->of[i].at + (offset - a->of[i].base), bytes, len);
		return 0;
	}
	return ckpt_common_bad(r, e);
}

static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct attached *a = r->state;

	for (size_t i = 0; a && i < a->n; i++) {
		/* Locking may exceed this host's limit: slower, not wrong. */
		if (a->of[i].locked && shmctl(a->of[i].id, SHM_LOCK, NULL) < 0)
			log_warn("cannot lock shared memory %d again", a->of[i].id);
		if (a->of[i].removed && shmctl(a->of[i].id, IPC_RMID, NULL) < 0)
			return err_errno(e, -errno, "shared memory %d", a->of[i].id);
		shmdt(a->of[i].at);
	}
	if (a)
		a->n = 0;
	return 0;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__SysvShm *m = pb__sysv_shm__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_segments; i++)
		if (m->segments[i]->perm)
			fprintf(out, "%sid %d key 0x%x %llu bytes%s", i ? ", " : "",
				m->segments[i]->perm->id, (unsigned)m->segments[i]->perm->key,
				(unsigned long long)m->segments[i]->size,
				m->segments[i]->removed ? " removed" : "");
	pb__sysv_shm__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_sysv_shm = {
	.number = PROTO_KIND_SYSV_SHM,
	.name = "sysv shm",
	.scope = CKPT_SESSION,
	.ask = ask,
	.dump = dump,
	.send_out = send_out,
	.dump_data = dump_data,
	.data_apart = true,
	.forget = forget,
	.create = create,
	.data = data,
	.finish = finish,
	.show = show,
};
