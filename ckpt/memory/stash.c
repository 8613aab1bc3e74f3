// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in stash.h. */
#include "ckpt/memory/stash.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/survey.h"
#include "proto/proto.h"

#define PIECE	(1UL << 20) /* copied by one thread */
#define CHUNK	(4UL << 20) /* of room: what is small shares one */
#define WORTH	(2 * PIECE) /* less is copied before a thread has begun */

struct piece {
	struct ckpt_stash_place place;
	struct ckpt_proc *p; /* whose memory it is, or NULL */
	const uint8_t *own;  /* our own, or NULL */
	int fd;		     /* else */
	uint64_t from;
	size_t len;
	size_t chunk;
	uint8_t *data;
};

struct chunk {
	uint8_t *data;
	size_t size, used;
};

struct ckpt_stash {
	struct buf pieces, chunks;
	size_t filled;	  /* so many pieces are copied */
	uint64_t waiting; /* bytes of the others */
};

static struct piece *pieces_of(const struct ckpt_stash *s, size_t *ret_n)
{
	*ret_n = s->pieces.len / sizeof(struct piece);
	return (struct piece *)s->pieces.data;
}

static struct chunk *last_chunk(const struct ckpt_stash *s)
{
	return s->chunks.len ? (struct chunk *)(s->chunks.data + s->chunks.len) - 1 : NULL;
}

/* ---- noting -------------------------------------------------------------------------------- */

/* A snapshot's, or NULL. */
static struct ckpt_stash *get(struct ckpt_dump *d)
{
	if (!d->stash && d->options.snapshot)
		d->stash = calloc(1, sizeof(*d->stash));
	return d->stash;
}

/* Room for @len bytes, in whichever chunk; NULL: there is none. */
static uint8_t *take_room(struct ckpt_dump *d, size_t len, size_t *ret_chunk)
{
	struct ckpt_stash *s = d->stash;
	struct chunk *last = last_chunk(s), one = {.size = MAX(ALIGN_UP(len, PAGE_SIZE), CHUNK)};
	uint8_t *at;

	if (!last || len > last->size - last->used) {
		one.data = ckpt_reserve_draw(&d->reserve, one.size);
		if (!one.data) {
			one.size = ALIGN_UP(len, PAGE_SIZE);
			one.data = ckpt_reserve_draw(&d->reserve, one.size);
		}
		if (!one.data)
			return NULL;
		buf_put(&s->chunks, &one, sizeof(one));
		if (buf_error(&s->chunks)) {
			munmap(one.data, one.size);
			return NULL;
		}
		last = last_chunk(s);
	}
	at = last->data + last->used;
	last->used += len;
	*ret_chunk = (size_t)(last - (struct chunk *)s->chunks.data);
	return at;
}

/* @what says where from; returns how much of [what->from, @to) is noted. */
static uint64_t note(struct ckpt_dump *d, const struct piece *what, uint64_t to)
{
	struct ckpt_stash *s = get(d);
	uint64_t from = what->from, at = from;

	while (s && at < to && !s->pieces.failed) {
		struct piece one = *what;

		one.from = at;
		one.len = MIN(to - at, PIECE);
		one.data = take_room(d, one.len, &one.chunk);
		if (!one.data)
			break;
		buf_put(&s->pieces, &one, sizeof(one));
		if (s->pieces.failed)
			break;
		s->waiting += one.len;
		at += one.len;
	}
	return at - from;
}

uint64_t ckpt_stash_pages(struct ckpt_dump *d, const struct ckpt_stash_place *place,
	struct ckpt_proc *p, struct ckpt_run run)
{
	return note(
		d, &(struct piece){.place = *place, .p = p, .fd = -1, .from = run.start}, run.end);
}

/* ---- copying ------------------------------------------------------------------------------- */

/* What one call does not copy has a page in it that needs more than that. */
static int copy_pages(const struct ckpt_dump *d, const struct piece *x, struct err *e)
{
	struct iovec local = {x->data, x->len},
		     remote = {(void *)(uintptr_t)x->from, x->len};
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	ssize_t n = process_vm_readv(x->p->look, &local, 1, &remote, 1, 0);
	int r;

	if (n == (ssize_t)x->len)
		return 0;
	n = MAX(n, 0);
	r = ckpt_pages_open(&pages, d->host_proc, x->p->look, e);
	if (r < 0)
		return r;
	ckpt_pages_read(&pages, x->from + (uint64_t)n, x->data + n, x->len - (size_t)n);
	if (pages.gone)
		return err_set(e, ERR_UNFREEZABLE, -ESRCH,
			"task %d was killed while its memory was copied", x->p->vpid);
	return 0;
}

static int copy_file(struct piece *x, struct err *e)
{
	ssize_t n = io_pread_full(x->fd, x->data, x->len, (off_t)x->from);

	if (n < 0)
		return err_errno(e, (int)n, "cannot read the contents of a file");
	/* It ends before that. */
	x->len = (size_t)n;
	return 0;
}

static int copy(void *ctx, size_t i, struct err *e)
{
	struct ckpt_dump *d = ctx;
	struct ckpt_stash *s = d->stash;
	size_t n;
	struct piece *x = &pieces_of(s, &n)[s->filled + i];

	if (!x->own)
		return x->p ? copy_pages(d, x, e) : copy_file(x, e);
	memcpy(x->data, x->own + x->from, x->len);
	return 0;
}

int ckpt_stash_fill(struct ckpt_dump *d, struct err *e)
{
	struct ckpt_stash *s = d->stash;
	size_t n;
	int r = 0;

	if (!s)
		return 0;
	pieces_of(s, &n);
	if (s->waiting >= WORTH)
		r = par_each(n - s->filled, copy, d, e);
	else
		for (size_t i = 0; i < n - s->filled && r == 0; i++)
			r = copy(d, i, e);
	s->filled = n;
	s->waiting = 0;
	return r;
}

int ckpt_stash_file(struct ckpt_dump *d, const struct ckpt_stash_place *place, int fd,
	uint64_t from, uint64_t to, uint64_t *ret_n, struct err *e)
{
	*ret_n = note(d, &(struct piece){.place = *place, .fd = fd, .from = from}, to);
	return *ret_n ? ckpt_stash_fill(d, e) : 0;
}

int ckpt_stash_copy(struct ckpt_dump *d, const struct ckpt_stash_place *place, const void *from,
	size_t len, uint64_t *ret_n, struct err *e)
{
	*ret_n = note(d, &(struct piece){.place = *place, .own = from, .fd = -1}, len);
	return *ret_n ? ckpt_stash_fill(d, e) : 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

static int write_piece(struct ckpt_dump *d, const struct piece *x, struct err *e)
{
	const uint64_t offset = x->from + x->place.shift;
	int r = 0;

	for (size_t at = 0, n; r >= 0 && at < x->len; at += n) {
		n = x->place.sparse ? ckpt_pages_next(x->data, x->len, &at) : x->len;
		if (!n)
			break;
		r = proto_write_data(d->out, x->place.kind, x->place.subject, offset + at,
			x->data + at, n, e);
		if (x->p)
			d->report.pages += n / PAGE_SIZE;
	}
	return r;
}

static void drop_chunk(struct chunk *c)
{
	if (c->data)
		munmap(c->data, c->size);
	c->data = NULL;
}

int ckpt_stash_write(struct ckpt_dump *d, struct err *e)
{
	struct ckpt_stash *s = d->stash;
	struct piece *v;
	size_t n;
	int r = 0;

	if (!s)
		return 0;
	v = pieces_of(s, &n);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = write_piece(d, &v[i], e);
		if (i + 1 == n || v[i + 1].chunk != v[i].chunk)
			drop_chunk((struct chunk *)s->chunks.data + v[i].chunk);
	}
	ckpt_stash_free(d);
	return r;
}

void ckpt_stash_free(struct ckpt_dump *d)
{
	struct ckpt_stash *s = take_ptr(d->stash);

	if (!s)
		return;
	for (size_t i = 0; i < s->chunks.len / sizeof(struct chunk); i++)
		drop_chunk((struct chunk *)s->chunks.data + i);
	buf_fini(&s->pieces);
	buf_fini(&s->chunks);
	free(s);
}
