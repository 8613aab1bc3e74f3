// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in arrived.h. */
#include "ckpt/arrived.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/memory/memory.h"
#include "proto/proto.h"

#define BITS	   9
#define FAN	   (1u << BITS)
#define LEVELS	   4 /* of 9 bits: 48 bits of an address with those within a page */
#define MAX_SPACES 65536
#define MAX_PLACES UINT32_MAX

/* Of the lowest level: places, from 1; 0: nothing has come. */
union table {
	union table *below[FAN];
	uint32_t place[FAN];
};

struct space {
	uint64_t id;
	union table *top;
};

struct ckpt_arrived {
	int fd;
	uint32_t places;
	struct space *spaces; /* by id */
	size_t n, cap;
	const uint8_t *map;
	size_t map_len;
};

/* ---- where a page lies ----------------------------------------------------------------------- */

static void free_table(union table *t, int level)
{
	if (!t)
		return;
	for (unsigned i = 0; level && i < FAN; i++)
		free_table(t->below[i], level - 1);
	free(t);
}

static unsigned slot_of(uint64_t addr, int level)
{
	return addr >> (12 + BITS * level) & (FAN - 1);
}

/* The place of a page; with @make one is made for it (NULL: no memory). */
static uint32_t *find_place(struct space *s, uint64_t addr, bool make)
{
	union table **at = &s->top;

	for (int level = LEVELS - 1;; level--) {
		if (!*at && make)
			*at = calloc(1, level ? sizeof(union table) : sizeof((*at)->place));
		if (!*at)
			return NULL;
		if (!level)
			return &(*at)->place[slot_of(addr, 0)];
		at = &(*at)->below[slot_of(addr, level)];
	}
}

static struct space *find_space(const struct ckpt_arrived *a, uint64_t id)
{
	size_t low = 0, high = a->n;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (a->spaces[mid].id < id)
			low = mid + 1;
		else
			high = mid;
	}
	return low < a->n && a->spaces[low].id == id ? &a->spaces[low] : NULL;
}

bool ckpt_arrived_has(const struct ckpt_arrived *a, uint64_t space)
{
	return a && find_space(a, space);
}

uint64_t ckpt_arrived_find(
	const struct ckpt_arrived *a, uint64_t space, uint64_t at, uint64_t end, const void **ret)
{
	struct space *s = find_space(a, space);
	uint32_t *place = find_place(s, at, false), first = place ? *place : 0;
	uint64_t len = PAGE_SIZE;

	for (; at + len < end; len += PAGE_SIZE) {
		place = find_place(s, at + len, false);
		if ((place ? *place : 0) != (first ? first + len / PAGE_SIZE : 0))
			break;
	}
	*ret = first ? a->map + (first - 1) * PAGE_SIZE : NULL;
	return len;
}

/* ---- what comes ------------------------------------------------------------------------------ */

/* They come in any order, but they are few. */
static int add_space(struct ckpt_arrived *a, uint64_t id, struct err *e)
{
	size_t i = a->n;

	if (!id || find_space(a, id))
		return err_set(e, ERR_IMAGE, -EBADMSG, "memory space %llu comes twice",
			(unsigned long long)id);
	if (a->n == MAX_SPACES)
		return err_set(e, ERR_IMAGE, -E2BIG, "too many memory spaces");
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 16;
		void *more = reallocarray(a->spaces, cap, sizeof(*a->spaces));

		if (!more)
			return err_errno(e, -ENOMEM, "memory copied ahead");
		a->spaces = more;
		a->cap = cap;
	}
	for (; i && a->spaces[i - 1].id > id; i--)
		a->spaces[i] = a->spaces[i - 1];
	a->spaces[i] = (struct space){.id = id};
	a->n++;
	return 0;
}

static int put(
	struct ckpt_arrived *a, const uint8_t *data, size_t len, uint32_t place, struct err *e)
{
	int r = len ? io_pwrite_full(a->fd, data, len, (off_t)(place - 1) * (off_t)PAGE_SIZE) : 0;

	return r < 0 ? err_errno(e, r, "cannot keep what was copied ahead") : 0;
}

/* Pages that follow each other in the file are written at once. */
static int take_data(struct ckpt_arrived *a, const struct proto_frame *f, struct err *e)
{
	struct space *s = find_space(a, f->subject);
	const uint8_t *data = f->data;
	uint32_t first = 0;
	size_t from = 0;

	if (!s || (f->offset | f->len) % PAGE_SIZE || f->offset + f->len > CKPT_TASK_SIZE)
		return err_set(e, ERR_IMAGE, -EBADMSG, "pages at %llx make no sense",
			(unsigned long long)f->offset);
	for (size_t at = 0; at < f->len; at += PAGE_SIZE) {
		uint32_t *place = find_place(s, f->offset + at, true);

		if (!place)
			return err_errno(e, -ENOMEM, "memory copied ahead");
		if (!*place && a->places == MAX_PLACES)
			return err_set(e, ERR_IMAGE, -E2BIG, "too much memory was copied ahead");
		if (!*place)
			*place = ++a->places;
		if (!first)
			first = *place;
		if (*place == first + (at - from) / PAGE_SIZE)
			continue;
		if (put(a, data + from, at - from, first, e) < 0)
			return e->error;
		first = *place;
		from = at;
	}
	return put(a, data + from, f->len - from, first, e);
}

static int read_all(struct ckpt_arrived *a, struct proto_reader *in, struct err *e)
{
	struct proto_frame f;
	int r;

	while ((r = proto_read(in, &f, e)) == 0) {
		if (f.type == PROTO_END || f.kind != PROTO_KIND_AHEAD) {
			proto_unread(in);
			return 0;
		}
		r = f.type == PROTO_RECORD ? add_space(a, f.subject, e) : take_data(a, &f, e);
		if (r < 0)
			return r;
	}
	return r;
}

/* To be looked at from now on. */
static int map(struct ckpt_arrived *a, struct err *e)
{
	void *m;

	a->map_len = a->places * PAGE_SIZE;
	if (!a->map_len)
		return 0;
	m = mmap(NULL, a->map_len, PROT_READ, MAP_SHARED, a->fd, 0);
	if (m == MAP_FAILED)
		return err_errno(e, -errno, "memory copied ahead");
	a->map = m;
	return 0;
}

static int make(struct ckpt_arrived **ret, const char *dir, struct err *e)
{
	struct ckpt_arrived *a = calloc(1, sizeof(*a));

	if (!a)
		return err_errno(e, -ENOMEM, "memory copied ahead");
	a->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	/* some file systems have none without a name */
	if (a->fd < 0)
		a->fd = memfd_create("podrun-ahead", MFD_CLOEXEC);
	if (a->fd < 0) {
		free(a);
		return err_errno(e, -errno, "a file in %s", dir);
	}
	*ret = a;
	return 0;
}

int ckpt_arrived_read(
	struct ckpt_arrived **ret, struct proto_reader *in, const char *dir, struct err *e)
{
	struct ckpt_arrived *a = NULL;
	struct proto_frame f;
	int r = proto_read(in, &f, e);

	if (r < 0)
		return r;
	proto_unread(in);
	*ret = NULL;
	if (f.type == PROTO_END || f.kind != PROTO_KIND_AHEAD)
		return 0;
	r = make(&a, dir, e);
	if (r == 0)
		r = read_all(a, in, e);
	if (r == 0)
		r = map(a, e);
	if (r < 0)
		ckpt_arrived_free(a);
	else
		*ret = a;
	return r;
}

void ckpt_arrived_free(struct ckpt_arrived *a)
{
	if (!a)
		return;
	if (a->map)
		munmap((void *)a->map, a->map_len);
	for (size_t i = 0; i < a->n; i++)
		free_table(a->spaces[i].top, LEVELS - 1);
	free(a->spaces);
	close_fd(a->fd);
	free(a);
}
