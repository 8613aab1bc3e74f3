// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in frame.h. */
#include "proto/frame.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "proto/key.h"

/* What a signature is for goes in front of what is signed, so that none can stand for another. */
static const char head_purpose[] = "podrun image head";
static const char end_purpose[] = "podrun image end";

static uint8_t *put(uint8_t *p, const void *data, size_t n)
{
	memcpy(p, data, n);
	return p + n;
}

static uint8_t *put_u32(uint8_t *p, uint32_t v)
{
	v = htole32(v);
	return put(p, &v, sizeof(v));
}

static uint8_t *put_u64(uint8_t *p, uint64_t v)
{
	v = htole64(v);
	return put(p, &v, sizeof(v));
}

static void get(struct cursor *c, void *ret, size_t n)
{
	const void *p = cursor_take(c, n);

	assert(p);
	memcpy(ret, p, n);
}

void proto_frame_encode_hashed(const struct proto_frame_head *h, uint8_t ret[PROTO_FRAME_HASHED])
{
	uint8_t *p = ret;

	p = put_u32(p, h->type);
	p = put_u32(p, h->flags);
	p = put_u32(p, h->kind);
	p = put_u32(p, h->pad);
	p = put_u64(p, h->sequence);
	p = put_u64(p, h->subject);
	p = put_u64(p, h->offset);
	p = put_u32(p, h->stored);
	p = put_u32(p, h->length);
	assert(p == ret + PROTO_FRAME_HASHED);
}

void proto_frame_encode(const struct proto_frame_head *h, uint8_t ret[PROTO_FRAME_HEAD_LEN])
{
	proto_frame_encode_hashed(h, ret);
	put(ret + PROTO_FRAME_HASHED, h->digest, PROTO_DIGEST_LEN);
}

static int refuse(struct err *e, const char *what)
{
	return err_set(e, ERR_IMAGE, -EBADMSG, "%s", what);
}

static int check_record(const struct proto_frame_head *h, struct err *e)
{
	if (h->flags || h->pad || h->offset || h->stored != h->length)
		return refuse(e, "a record's head has fields of data");
	if (h->length > PROTO_MAX_RECORD)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a record of %u bytes is above the limit",
			h->length);
	return 0;
}

static int check_data(const struct proto_frame_head *h, struct err *e)
{
	bool zstd = h->flags & PROTO_FRAME_ZSTD;

	if (h->flags & ~PROTO_FRAME_ZSTD)
		return err_set(e, ERR_IMAGE, -EBADMSG, "unknown flags %#x", h->flags);
	if (h->pad >= PROTO_ALIGN)
		return err_set(e, ERR_IMAGE, -EBADMSG, "padding of %u bytes", h->pad);
	if (h->length > PROTO_MAX_DATA || h->length == 0)
		return err_set(e, ERR_IMAGE, -EBADMSG, "data of %u bytes is outside the limits",
			h->length);
	if (zstd ? h->stored == 0 || h->stored >= h->length : h->stored != h->length)
		return err_set(e, ERR_IMAGE, -EBADMSG, "%u bytes can't be stored in %u", h->length,
			h->stored);
	if (h->offset + h->length < h->offset)
		return refuse(e, "data beyond the end of all offsets");
	return 0;
}

static int check_end(const struct proto_frame_head *h, struct err *e)
{
	if (h->flags || h->kind || h->pad || h->subject || h->offset ||
		h->stored != PROTO_END_LEN || h->length != PROTO_END_LEN)
		return refuse(e, "the end's head is malformed");
	return 0;
}

static int (*const checks[])(const struct proto_frame_head *, struct err *) = {
	[PROTO_WIRE_RECORD] = check_record,
	[PROTO_WIRE_DATA] = check_data,
	[PROTO_WIRE_END] = check_end,
};

int proto_frame_decode(
	const uint8_t bytes[PROTO_FRAME_HEAD_LEN], struct proto_frame_head *ret, struct err *e)
{
	struct cursor c = cursor_of(bytes, PROTO_FRAME_HEAD_LEN);
	struct proto_frame_head h;

	h.type = cursor_u32(&c);
	h.flags = cursor_u32(&c);
	h.kind = cursor_u32(&c);
	h.pad = cursor_u32(&c);
	h.sequence = cursor_u64(&c);
	h.subject = cursor_u64(&c);
	h.offset = cursor_u64(&c);
	h.stored = cursor_u32(&c);
	h.length = cursor_u32(&c);
	get(&c, h.digest, sizeof(h.digest));
	if (h.type >= ARRAY_SIZE(checks) || !checks[h.type])
		return err_set(e, ERR_IMAGE, -EBADMSG, "unknown frame type %u", h.type);
	*ret = h;
	return checks[h.type](&h, e);
}

int proto_head_encode(const struct proto_image_info *i, const struct proto_key *key,
	uint8_t ret[PROTO_HEAD_LEN], struct err *e)
{
	uint8_t text[sizeof(head_purpose) + PROTO_HEAD_SIGNED];
	uint8_t signer[PROTO_KEY_LEN];
	uint8_t *p = ret;

	proto_key_public(key, signer);
	p = put(p, PROTO_MAGIC, PROTO_MAGIC_LEN);
	p = put_u32(p, PROTO_VERSION);
	p = put_u32(p, i->copy ? PROTO_HEAD_COPY : 0);
	p = put(p, i->image_id, sizeof(i->image_id));
	p = put_u64(p, i->created);
	p = put_u64(p, 0);
	p = put(p, signer, sizeof(signer));
	assert(p == ret + PROTO_HEAD_SIGNED);
	put(put(text, head_purpose, sizeof(head_purpose)), ret, PROTO_HEAD_SIGNED);
	return proto_key_sign(key, text, sizeof(text), p, e);
}

int proto_head_decode(
	const uint8_t bytes[PROTO_HEAD_LEN], struct proto_image_info *ret, struct err *e)
{
	uint8_t text[sizeof(head_purpose) + PROTO_HEAD_SIGNED];
	struct cursor c = cursor_of(bytes + PROTO_MAGIC_LEN, PROTO_HEAD_LEN - PROTO_MAGIC_LEN);
	struct proto_image_info i;
	uint32_t flags;
	uint64_t reserved;

	i.version = cursor_u32(&c);
	flags = cursor_u32(&c);
	get(&c, i.image_id, sizeof(i.image_id));
	i.created = cursor_u64(&c);
	reserved = cursor_u64(&c);
	get(&c, i.signer, sizeof(i.signer));
	put(put(text, head_purpose, sizeof(head_purpose)), bytes, PROTO_HEAD_SIGNED);
	if (!proto_ed25519_verify(i.signer, text, sizeof(text), bytes + PROTO_HEAD_SIGNED))
		return refuse(e, "the header's signature is wrong");
	if ((flags & ~PROTO_HEAD_COPY) || reserved)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the header has unknown flags %#x", flags);
	i.copy = flags & PROTO_HEAD_COPY;
	*ret = i;
	return 0;
}

#define END_SIGNED (PROTO_END_LEN - PROTO_SIG_LEN)

int proto_end_encode(struct proto_end *end, const struct proto_key *key, uint8_t ret[PROTO_END_LEN],
	struct err *e)
{
	uint8_t text[sizeof(end_purpose) + END_SIGNED];
	uint8_t *p = ret;
	int r;

	p = put_u64(p, end->frames);
	p = put_u64(p, end->bytes);
	p = put(p, end->list, sizeof(end->list));
	assert(p == ret + END_SIGNED);
	put(put(text, end_purpose, sizeof(end_purpose)), ret, END_SIGNED);
	r = proto_key_sign(key, text, sizeof(text), end->signature, e);
	put(p, end->signature, sizeof(end->signature));
	return r;
}

int proto_end_decode(const uint8_t bytes[PROTO_END_LEN], const uint8_t signer[PROTO_KEY_LEN],
	struct proto_end *ret, struct err *e)
{
	uint8_t text[sizeof(end_purpose) + END_SIGNED];
	struct cursor c = cursor_of(bytes, PROTO_END_LEN);
	struct proto_end end;

	end.frames = cursor_u64(&c);
	end.bytes = cursor_u64(&c);
	get(&c, end.list, sizeof(end.list));
	get(&c, end.signature, sizeof(end.signature));
	put(put(text, end_purpose, sizeof(end_purpose)), bytes, END_SIGNED);
	if (!proto_ed25519_verify(signer, text, sizeof(text), end.signature))
		return refuse(e, "the signature at its end is wrong");
	*ret = end;
	return 0;
}
