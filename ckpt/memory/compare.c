// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * compare - pages are written unless an earlier image has them (ckpt/base.h).
 */
#include <string.h>

#include "base/base.h"
#include "ckpt/base.h"
#include "ckpt/memory/memory.h"
#include "proto/proto.h"

/* Appends, or lengthens the last one. */
static void put_ref(struct buf *refs, uint64_t addr, uint32_t base, uint64_t offset)
{
	const struct ckpt_ref ref = {
		.addr = addr, .len = PAGE_SIZE, .base = base, .offset = offset};
	uint8_t entry[CKPT_REF_LEN], *at = refs->len ? refs->data + refs->len - CKPT_REF_LEN : NULL;
	struct ckpt_ref last = {0};

	if (at)
		ckpt_ref_decode(at, &last);
	if (at && last.addr + last.len == addr && last.base == base &&
		last.offset + last.len == offset) {
		last.len += PAGE_SIZE;
		ckpt_ref_encode(&last, at);
		return;
	}
	ckpt_ref_encode(&ref, entry);
	buf_put(refs, entry, sizeof(entry));
}

struct piece {
	uint64_t addr;
	const uint8_t *data;
	size_t len;
	bool zeros;
	struct ckpt_base *base;
	pid_t vpid;
};

static bool is_there(const struct piece *p, size_t at, uint32_t *base, uint64_t *offset)
{
	const uint8_t *was = ckpt_base_find(p->base, p->vpid, p->addr + at, base, offset);

	return was && !memcmp(was, p->data + at, PAGE_SIZE);
}

/* Need the page not be written? */
static bool passes(const struct piece *p, size_t at)
{
	uint32_t base;
	uint64_t offset;

	return (!p->zeros && ckpt_page_is_zero(p->data + at)) || is_there(p, at, &base, &offset);
}

/* Where they are, of pages that are not written; a page of zeros is nowhere. */
static void refer(const struct piece *p, size_t from, size_t to, struct buf *refs)
{
	for (size_t at = from; at < to; at += PAGE_SIZE) {
		uint32_t base;
		uint64_t offset;

		if ((p->zeros || !ckpt_page_is_zero(p->data + at)) &&
			is_there(p, at, &base, &offset))
			put_ref(refs, p->addr + at, base, offset);
	}
}

/* The end of the stretch worth writing that begins at @at. */
static size_t end_of(const struct piece *p, size_t at)
{
	size_t end = at;

	for (; at < p->len && at - end < CKPT_MIN_GAP; at += PAGE_SIZE)
		if (!passes(p, at))
			end = at + PAGE_SIZE;
	return end;
}

static int write_piece(struct ckpt_pages *pages, struct proto_writer *out, const struct piece *p,
	struct buf *refs, struct err *e)
{
	size_t done = 0, at = 0;
	int r = 0;

	while (at < p->len && r >= 0) {
		size_t end;

		if (passes(p, at)) {
			at += PAGE_SIZE;
			continue;
		}
		end = end_of(p, at);
		refer(p, done, at, refs);
		r = proto_write_data(out, PROTO_KIND_MM, (uint64_t)p->vpid, p->addr + at,
			p->data + at, end - at, e);
		pages->written += (end - at) / PAGE_SIZE;
		done = at = end;
	}
	refer(p, done, p->len, refs);
	return r;
}

int ckpt_pages_compare(struct ckpt_pages *p, struct proto_writer *out, struct ckpt_base *base,
	pid_t vpid, struct ckpt_run run, bool zeros, struct buf *refs, struct err *e)
{
	struct piece piece = {.zeros = zeros, .base = base, .vpid = vpid};
	int r = ckpt_pages_room(p, e);

	for (uint64_t at = run.start; at < run.end && r >= 0; at += piece.len) {
		piece.addr = at;
		piece.data = p->scratch;
		piece.len = MIN(run.end - at, PROTO_MAX_DATA);
		ckpt_pages_read(p, at, p->scratch, piece.len);
		r = write_piece(p, out, &piece, refs, e);
	}
	return r;
}
