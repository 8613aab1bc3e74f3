// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in arrived.h. */
#include "ckpt/memory/arrived.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/memory/memory.h"
#include "proto/proto.h"

#define BITS	   9
#define FAN	   (1u << BITS)
#define LEVELS	   3 /* of 9 bits: 48 bits of an address with those within a chunk */
#define PAGES	   (CKPT_ARRIVED_CHUNK / PAGE_SIZE)
#define MAX_SPACES 65536
#define MAX_CHUNKS (1u << 23) /* 16 TiB, the largest file of ext4 */
/*
 * In one write.  The page cache makes folios as large as the write that needs them (ext4 since Linux
 * 6.16), and each later write of a page to one goes through all its buffer heads: 19 us with folios
 * of 2 MiB, 3.4 with these.
 */
#define WRITE (64UL << 10)

struct chunk {
	uint64_t offset; /* in the file */
	uint64_t there[PAGES / 64];
};

/* Of the lowest level: chunks. */
union table {
	union table *below[FAN];
	struct chunk *chunk[FAN];
};

struct space {
	uint64_t id;
	union table *top;
};

struct ckpt_arrived {
	int fd;
	uint32_t chunks;
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
	for (unsigned i = 0; i < FAN; i++) {
		if (level)
			free_table(t->below[i], level - 1);
		else
			free(t->chunk[i]);
	}
	free(t);
}

static unsigned slot_of(uint64_t addr, int level)
{
	return addr / CKPT_ARRIVED_CHUNK >> BITS * level & (FAN - 1);
}

/* Where the chunk of @addr is kept; with @make there is room for it (NULL: no memory). */
static struct chunk **find_slot(struct space *s, uint64_t addr, bool make)
{
	union table **at = &s->top;

	for (int level = LEVELS - 1;; level--) {
		if (!*at && make)
			*at = calloc(1, sizeof(**at));
		if (!*at)
			return NULL;
		if (!level)
			return &(*at)->chunk[slot_of(addr, 0)];
		at = &(*at)->below[slot_of(addr, level)];
	}
}

static struct chunk *find_chunk(struct space *s, uint64_t addr)
{
	struct chunk **slot = s ? find_slot(s, addr, false) : NULL;

	return slot ? *slot : NULL;
}

static unsigned page_of(uint64_t addr)
{
	return addr % CKPT_ARRIVED_CHUNK / PAGE_SIZE;
}

static bool is_there(const struct chunk *c, uint64_t addr)
{
	return c && c->there[page_of(addr) / 64] & 1ULL << page_of(addr) % 64;
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
	struct chunk *c = find_chunk(s, at);
	uint64_t len = PAGE_SIZE, offset = c ? c->offset + at % CKPT_ARRIVED_CHUNK : 0;
	bool there = is_there(c, at);

	for (; at + len < end; len += PAGE_SIZE) {
		if ((at + len) % CKPT_ARRIVED_CHUNK == 0) {
			c = find_chunk(s, at + len);
			if (there && c && c->offset != offset + len)
				break;
		}
		if (is_there(c, at + len) != there)
			break;
	}
	*ret = there ? a->map + offset : NULL;
	return len;
}

int ckpt_arrived_place(
	const struct ckpt_arrived *a, uint64_t space, uint64_t at, uint64_t *ret_offset)
{
	struct chunk *c = find_chunk(find_space(a, space), at);

	if (!c)
		return -ENOENT;
	*ret_offset = c->offset + at % CKPT_ARRIVED_CHUNK;
	return 0;
}

int ckpt_arrived_write(
	struct ckpt_arrived *a, uint64_t offset, const void *data, size_t len, struct err *e)
{
	const uint8_t *from = data;
	int r = 0;

	for (size_t n; len && r == 0; offset += n, from += n, len -= n) {
		n = MIN(len, WRITE - offset % WRITE);
		r = io_pwrite_full(a->fd, from, n, (off_t)offset);
	}
	return r < 0 ? err_errno(e, r, "cannot keep what was copied ahead") : 0;
}

int ckpt_arrived_clear(
	struct ckpt_arrived *a, uint64_t space, uint64_t at, uint64_t end, struct err *e)
{
	static const uint8_t zeros[16 * PAGE_SIZE];
	const void *data;
	int r = 0;

	for (uint64_t len; at < end && r == 0; at += len) {
		len = ckpt_arrived_find(a, space, at, MIN(end, at + sizeof(zeros)), &data);
		if (data)
			r = ckpt_arrived_write(
				a, (uint64_t)((const uint8_t *)data - a->map), zeros, len, e);
	}
	return r;
}

int ckpt_arrived_fill(const struct ckpt_arrived *a, uint64_t offset, uint64_t len)
{
	struct statfs fs;

	if (fstatfs(a->fd, &fs) < 0)
		return -errno;
	if (fs.f_type != TMPFS_MAGIC)
		return 0;
	return fallocate(a->fd, FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)len) < 0 ? -errno : 0;
}

static void each_chunk(const union table *t, int level, uint64_t at,
	void (*each)(void *ctx, uint64_t addr, unsigned pages), void *ctx)
{
	for (uint64_t i = 0; t && i < FAN; i++) {
		uint64_t addr = (at * FAN + i) * CKPT_ARRIVED_CHUNK;
		unsigned n = 0;

		if (level) {
			each_chunk(t->below[i], level - 1, at * FAN + i, each, ctx);
			continue;
		}
		for (size_t k = 0; t->chunk[i] && k < ARRAY_SIZE(t->chunk[i]->there); k++)
			n += (unsigned)__builtin_popcountll(t->chunk[i]->there[k]);
		if (n)
			each(ctx, addr, n);
	}
}

void ckpt_arrived_each(const struct ckpt_arrived *a,
	void (*each)(void *ctx, uint64_t addr, unsigned pages), void *ctx)
{
	for (size_t i = 0; i < a->n; i++)
		each_chunk(a->spaces[i].top, LEVELS - 1, 0, each, ctx);
}

int ckpt_arrived_image(const struct ckpt_arrived *a)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", a->fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
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

static struct chunk *make_chunk(
	struct ckpt_arrived *a, struct space *s, uint64_t addr, struct err *e)
{
	struct chunk **slot = find_slot(s, addr, true);

	if (slot && *slot)
		return *slot;
	if (a->chunks == MAX_CHUNKS) {
		err_set(e, ERR_IMAGE, -E2BIG, "too much memory was copied ahead");
		return NULL;
	}
	if (slot)
		*slot = calloc(1, sizeof(**slot));
	if (!slot || !*slot) {
		err_errno(e, -ENOMEM, "memory copied ahead");
		return NULL;
	}
	(*slot)->offset = a->chunks++ * CKPT_ARRIVED_CHUNK;
	return *slot;
}

/* What of a frame lies in one chunk. */
static int put(struct ckpt_arrived *a, struct space *s, uint64_t addr, const uint8_t *data,
	size_t len, struct err *e)
{
	struct chunk *c = make_chunk(a, s, addr, e);

	if (!c)
		return e->error;
	for (unsigned i = page_of(addr); i < page_of(addr) + len / PAGE_SIZE; i++)
		c->there[i / 64] |= 1ULL << i % 64;
	return ckpt_arrived_write(a, c->offset + addr % CKPT_ARRIVED_CHUNK, data, len, e);
}

static int take_data(struct ckpt_arrived *a, const struct proto_frame *f, struct err *e)
{
	struct space *s = find_space(a, f->subject);
	const uint8_t *data = f->data;
	int r = 0;

	if (!s || (f->offset | f->len) % PAGE_SIZE || f->offset + f->len > CKPT_TASK_SIZE)
		return err_set(e, ERR_IMAGE, -EBADMSG, "pages at %llx make no sense",
			(unsigned long long)f->offset);
	for (size_t at = 0, n; at < f->len && r == 0; at += n) {
		uint64_t addr = f->offset + at;

		n = MIN(f->len - at, CKPT_ARRIVED_CHUNK - addr % CKPT_ARRIVED_CHUNK);
		r = put(a, s, addr, data + at, n, e);
	}
	return r;
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

/* To be looked at from now on; whole chunks, for who maps a part of it sees no end. */
static int map(struct ckpt_arrived *a, struct err *e)
{
	void *m;

	a->map_len = a->chunks * CKPT_ARRIVED_CHUNK;
	if (!a->map_len)
		return 0;
	if (ftruncate(a->fd, (off_t)a->map_len) < 0)
		return err_errno(e, -errno, "memory copied ahead");
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
