// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in base.h. */
#include "ckpt/base.h"

#include <endian.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/kind.h"
#include "proto/memory.pb-c.h"
#include "proto/proto.h"

#define MAX_BASES  16
#define END_LEN	   112 /* proto/SPEC.md: payload of the end frame */
#define LIST_AT	   16
#define LIST_LEN   32
#define ID_AT	   16 /* of the head */
#define ID_LEN	   16
#define MAX_PLACES (64u << 20)

struct image {
	char *name;
	uint8_t id[ID_LEN], list[LIST_LEN];
	const uint8_t *map;
	uint64_t len;
	uint64_t used; /* bytes that are referred to */
};

/* Pages of the base image: where they are. */
struct place {
	uint64_t subject, addr, len, offset;
	uint32_t image; /* index */
};

struct ckpt_base {
	struct image images[MAX_BASES + 1];
	size_t n;
	struct place *places; /* by subject and address */
	size_t n_places, cap, last;
};

void ckpt_base_free(struct ckpt_base *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->n; i++) {
		if (b->images[i].map)
			munmap((void *)b->images[i].map, b->images[i].len);
		free(b->images[i].name);
	}
	free(b->places);
	free(b);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* One that others refer to keeps its place in the directory under this name when it is removed. */
static int open_image(int dir, const char *name)
{
	_cleanup_free_ char *kept = NULL;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);

	if (fd >= 0 || errno != ENOENT || asprintf(&kept, "%s%s", name, CKPT_BASE_SUFFIX) < 0)
		return fd;
	return openat(dir, kept, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY);
}

static int map_image(struct image *i, int fd, struct err *e)
{
	struct stat st;
	void *m;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size < END_LEN + ID_AT + ID_LEN)
		return err_set(e, ERR_IMAGE, -EBADMSG, "%s is no image", i->name);
	m = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (m == MAP_FAILED)
		return err_errno(e, -errno, "%s", i->name);
	i->map = m;
	i->len = (uint64_t)st.st_size;
	return 0;
}

static int add_image(struct ckpt_base *b, const char *name, struct err *e)
{
	if (b->n > MAX_BASES || strchr(name, '/') || !*name || *name == '.')
		return err_set(
			e, ERR_IMAGE, -EBADMSG, "a reference to '%.64s' makes no sense", name);
	b->images[b->n] = (struct image){.name = strdup(name)};
	return b->images[b->n++].name ? 0 : err_errno(e, -ENOMEM, "references");
}

const uint8_t *ckpt_base_at(
	const struct ckpt_base *b, uint64_t number, uint64_t offset, uint64_t len)
{
	const struct image *i = b && number >= 1 && number <= b->n ? &b->images[number - 1] : NULL;

	return i && offset <= i->len && len <= i->len - offset ? i->map + offset : NULL;
}

/* ---- references ------------------------------------------------------------------------------ */

static uint8_t *put_number(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
	return p + sizeof(v);
}

void ckpt_ref_encode(const struct ckpt_ref *r, uint8_t ret[CKPT_REF_LEN])
{
	put_number(put_number(put_number(put_number(ret, r->addr), r->len), r->base), r->offset);
}

void ckpt_ref_decode(const uint8_t entry[CKPT_REF_LEN], struct ckpt_ref *ret)
{
	struct cursor c = cursor_of(entry, CKPT_REF_LEN);

	ret->addr = cursor_u64(&c);
	ret->len = cursor_u64(&c);
	ret->base = cursor_u64(&c);
	ret->offset = cursor_u64(&c);
}

/* Numbers begin behind the first @skip images. */
static int read_ref(const struct ckpt_base *b, uint64_t skip, const uint8_t *data, size_t len,
	size_t *at, struct ckpt_ref *ret, const uint8_t **ret_pages, struct err *e)
{
	const uint8_t *pages;
	struct ckpt_ref r;

	if (*at == len)
		return 0;
	if (len - *at < CKPT_REF_LEN)
		return err_set(e, ERR_IMAGE, -EBADMSG, "references are damaged");
	ckpt_ref_decode(data + *at, &r);
	pages = r.base && r.base <= MAX_BASES ? ckpt_base_at(b, r.base + skip, r.offset, r.len)
					      : NULL;
	if (!pages || !r.len || (r.addr | r.len) % PAGE_SIZE || r.addr + r.len < r.addr)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a reference leads nowhere");
	*at += CKPT_REF_LEN;
	*ret = r;
	*ret_pages = pages;
	return 1;
}

int ckpt_ref_read(const struct ckpt_base *b, const void *data, size_t len, size_t *at,
	struct ckpt_ref *ret, const uint8_t **ret_pages, struct err *e)
{
	return read_ref(b, 0, data, len, at, ret, ret_pages, e);
}

/* ---- what the base image has ----------------------------------------------------------------- */

static int add_place(struct ckpt_base *b, const struct place *p, struct err *e)
{
	if (b->n_places == MAX_PLACES)
		return err_set(e, ERR_IMAGE, -E2BIG, "too many references");
	if (b->n_places == b->cap) {
		size_t cap = b->cap ? 2 * b->cap : 1024;
		void *more = reallocarray(b->places, cap, sizeof(*p));

		if (!more)
			return err_errno(e, -ENOMEM, "references");
		b->places = more;
		b->cap = cap;
	}
	b->places[b->n_places++] = *p;
	return 0;
}

/* @b->images: the base itself, then those that it names. */
static int take_refs(struct ckpt_base *b, const struct proto_frame *f, struct err *e)
{
	const uint8_t *pages;
	struct ckpt_ref ref;
	size_t at = 0;
	int r;

	while ((r = read_ref(b, 1, f->data, f->len, &at, &ref, &pages, e)) > 0) {
		struct place p = {.subject = f->subject,
			.addr = ref.addr,
			.len = ref.len,
			.image = (uint32_t)ref.base, /* it was from 1: behind the base itself */
			.offset = ref.offset};

		r = add_place(b, &p, e);
		if (r < 0)
			return r;
	}
	return r;
}

static int take_base(struct ckpt_base *b, int dir, const struct proto_frame *f, struct err *e)
{
	Pb__Base *m = pb__base__unpack(NULL, f->len, f->data);
	struct image *i = &b->images[b->n];
	_cleanup_close_ int fd = -1;
	int r;

	if (!m || m->image_id.len != ID_LEN || m->list.len != LIST_LEN) {
		pb__base__free_unpacked(m, NULL);
		return err_set(e, ERR_IMAGE, -EBADMSG, "a reference to another image is damaged");
	}
	r = add_image(b, m->file, e);
	if (r == 0) {
		memcpy(i->id, m->image_id.data, ID_LEN);
		memcpy(i->list, m->list.data, LIST_LEN);
		fd = open_image(dir, m->file);
		r = fd < 0 ? err_set(e, ERR_NOT_FOUND, -errno,
				     "pages of it are in %s, which is not there", m->file)
			   : map_image(i, fd, e);
	}
	if (r == 0 && (memcmp(i->map + ID_AT, i->id, ID_LEN) ||
			      memcmp(i->map + i->len - END_LEN + LIST_AT, i->list, LIST_LEN)))
		r = err_set(
			e, ERR_IMAGE, -EBADMSG, "%s is not the image that it refers to", m->file);
	pb__base__free_unpacked(m, NULL);
	return r;
}

static int read_base(struct ckpt_base *b, int dir, struct proto_reader *in, struct err *e)
{
	struct proto_frame f;
	int r;

	while ((r = proto_read(in, &f, e)) == 0 && f.type != PROTO_END) {
		struct place p = {.subject = f.subject,
			.addr = f.offset,
			.len = f.len,
			.offset = (uint64_t)f.file_offset};

		if (f.type == PROTO_RECORD && f.kind == PROTO_KIND_BASE)
			r = take_base(b, dir, &f, e);
		else if (f.type == PROTO_DATA && f.kind == PROTO_KIND_REFS)
			r = take_refs(b, &f, e);
		else if (f.type == PROTO_DATA && f.kind == PROTO_KIND_MM && f.file_offset >= 0)
			r = add_place(b, &p, e);
		if (r < 0)
			return r;
	}
	return r;
}

static int compare_places(const void *x, const void *y)
{
	const struct place *a = x, *b = y;

	if (a->subject != b->subject)
		return a->subject < b->subject ? -1 : 1;
	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void forget_image(struct ckpt_base *b, uint32_t which)
{
	size_t k = 0;

	for (size_t i = 0; i < b->n_places; i++) {
		struct place p = b->places[i];

		if (p.image == which)
			continue;
		p.image -= p.image > which;
		b->places[k++] = p;
	}
	b->n_places = k;
	munmap((void *)b->images[which].map, b->images[which].len);
	free(b->images[which].name);
	memmove(b->images + which, b->images + which + 1, (--b->n - which) * sizeof(b->images[0]));
}

/*
 * Those of which nothing is left are forgotten, and if there is no room for the base itself among
 * the MAX_BASES the one of which the least is.
 */
static void forget_some(struct ckpt_base *b)
{
	uint32_t least = 1;

	for (size_t i = 0; i < b->n_places; i++)
		b->images[b->places[i].image].used += b->places[i].len;
	for (uint32_t i = (uint32_t)b->n; --i;)
		if (!b->images[i].used)
			forget_image(b, i);
	for (uint32_t i = 2; i < b->n; i++)
		if (b->images[i].used < b->images[least].used)
			least = i;
	if (b->n > MAX_BASES)
		forget_image(b, least);
}

int ckpt_base_open(struct ckpt_base **ret, int dir, const char *name, struct err *e)
{
	struct proto_read_options o = {
		.skip_digests = true, .leave_long = PROTO_KIND_MM, .threads = PROTO_NO_THREADS};
	struct ckpt_base *b = calloc(1, sizeof(*b));
	struct proto_reader *in = NULL;
	_cleanup_close_ int fd = open_image(dir, name);
	int r = b ? fd < 0 ? err_errno(e, -errno, "%s", name) : add_image(b, name, e)
		  : err_errno(e, -ENOMEM, "references");

	if (r == 0)
		r = map_image(&b->images[0], fd, e);
	if (r == 0) {
		memcpy(b->images[0].id, b->images[0].map + ID_AT, ID_LEN);
		memcpy(b->images[0].list, b->images[0].map + b->images[0].len - END_LEN + LIST_AT,
			LIST_LEN);
		r = proto_reader_open(&in, fd, &o, e);
	}
	if (r == 0)
		r = read_base(b, dir, in, e);
	proto_reader_close(in);
	if (r == 0 && !b->n_places)
		r = err_set(
			e, ERR_FAILED, -EINVAL, "%s has no pages that could be referred to", name);
	if (r < 0) {
		ckpt_base_free(b);
		return r;
	}
	sort_array(b->places, b->n_places, sizeof(*b->places), compare_places);
	forget_some(b);
	*ret = b;
	return 0;
}

/* Places may be asked for in ascending order, mostly. */
const uint8_t *ckpt_base_find(
	struct ckpt_base *b, pid_t vpid, uint64_t addr, uint32_t *ret_base, uint64_t *ret_offset)
{
	const struct place key = {.subject = (uint64_t)vpid, .addr = addr};
	size_t low = 0, high = b->n_places;
	const struct place *p = b->last < b->n_places ? &b->places[b->last] : NULL;

	if (!p || p->subject != key.subject || addr < p->addr || addr - p->addr >= p->len) {
		while (low < high) {
			size_t mid = (low + high) / 2;

			if (compare_places(&b->places[mid], &key) <= 0)
				low = mid + 1;
			else
				high = mid;
		}
		b->last = low ? low - 1 : 0;
		p = &b->places[b->last];
	}
	if (p->subject != key.subject || addr < p->addr || addr - p->addr + PAGE_SIZE > p->len)
		return NULL;
	*ret_base = p->image + 1;
	*ret_offset = p->offset + (addr - p->addr);
	return ckpt_base_at(b, *ret_base, *ret_offset, PAGE_SIZE);
}

int ckpt_base_write(const struct ckpt_base *b, struct proto_writer *out, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < b->n && r == 0; i++) {
		const struct image *v = &b->images[i];
		Pb__Base m = PB__BASE__INIT;
		_cleanup_buf_ struct buf body = BUF_INIT;

		m.file = v->name;
		m.image_id.data = (uint8_t *)v->id;
		m.image_id.len = ID_LEN;
		m.list.data = (uint8_t *)v->list;
		m.list.len = LIST_LEN;
		r = ckpt_pack(&m.base, &body, e);
		if (r == 0)
			r = proto_write_record(out, PROTO_KIND_BASE, i + 1, body.data, body.len, e);
	}
	return r;
}

/* ---- resume ---------------------------------------------------------------------------------- */

static int read_one(struct ckpt_base *b, const struct proto_frame *f, int dir,
	int (*check)(void *ctx, int fd, struct err *e), void *ctx, struct err *e)
{
	_cleanup_close_ int fd = -1;
	int r;

	if (f->type != PROTO_RECORD || f->subject != b->n + 1 || b->n == MAX_BASES + 1)
		return err_set(
			e, ERR_IMAGE, -EBADMSG, "a reference to another image is out of order");
	if (dir < 0)
		return err_set(e, ERR_IMAGE, -EINVAL,
			"it refers to other images, which can only be found beside it in a directory");
	r = take_base(b, dir, f, e);
	if (r < 0)
		return r;
	fd = open_image(dir, b->images[b->n - 1].name);
	r = fd < 0 ? err_errno(e, -errno, "%s", b->images[b->n - 1].name) : check(ctx, fd, e);
	return r < 0 ? err_wrap(e, "%s, to which it refers", b->images[b->n - 1].name) : 0;
}

int ckpt_base_read(struct ckpt_base **ret, struct proto_reader *in, int dir,
	int (*check)(void *ctx, int fd, struct err *e), void *ctx, struct err *e)
{
	struct ckpt_base *b = NULL;
	struct proto_frame f;
	int r;

	*ret = NULL;
	while ((r = proto_read(in, &f, e)) == 0 && f.type != PROTO_END &&
		f.kind == PROTO_KIND_BASE) {
		b = b ? b : calloc(1, sizeof(*b));
		r = b ? read_one(b, &f, dir, check, ctx, e) : err_errno(e, -ENOMEM, "references");
		if (r < 0)
			break;
	}
	if (r < 0) {
		ckpt_base_free(b);
		return r;
	}
	proto_unread(in);
	*ret = b;
	return 0;
}

int ckpt_base_names(int fd, void (*each)(void *ctx, const char *name), void *ctx, struct err *e)
{
	struct proto_read_options o = {.threads = PROTO_NO_THREADS};
	struct proto_reader *in;
	struct proto_frame f;
	int r = lseek(fd, 0, SEEK_SET) < 0 ? err_errno(e, -errno, "image")
					   : proto_reader_open(&in, fd, &o, e);

	if (r < 0)
		return r;
	while ((r = proto_read(in, &f, e)) == 0 && f.type != PROTO_END &&
		f.kind == PROTO_KIND_BASE) {
		Pb__Base *m = pb__base__unpack(NULL, f.len, f.data);

		if (m)
			each(ctx, m->file);
		pb__base__free_unpacked(m, NULL);
	}
	proto_reader_close(in);
	return r;
}
