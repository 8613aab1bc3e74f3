// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/tunnel/stream.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/base.h"

#define IN_ROOM	    (256 << 10)
#define PADDED(len) ALIGN_UP((size_t)(len), (size_t)8)

struct frame {
	uint32_t length;
	uint16_t zero;
	uint8_t flags, gso_type;
	uint16_t hdr_len, gso_size, csum_start, csum_offset;
};
static_assert(sizeof(struct frame) == VNET_STREAM_HEAD, "as stream.h has it");

struct stream {
	struct vnet_carrier carrier;
	int in, out;
	uint64_t keepalive, next_keepalive;
	bool greeted; /* their magic was right */
	uint8_t *in_data, *out_data;
	size_t in_len;		/* bytes that have come */
	size_t out_at, out_len; /* bytes that wait are [at, len) */
	int broken;		/* why nothing can be written any more */
};

static struct stream *stream_of(struct vnet_carrier *c)
{
	return (struct stream *)c;
}

static size_t waiting(const struct stream *s)
{
	return s->out_len - s->out_at;
}

static void write_out(struct stream *s)
{
	while (waiting(s) && !s->broken) {
		ssize_t n = write(s->out, s->out_data + s->out_at, waiting(s));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			s->broken = n < 0 ? -errno : -EPIPE;
		else
			s->out_at += (size_t)n;
	}
	if (!waiting(s))
		s->out_at = s->out_len = 0;
}

/* Room at the end for @n more bytes, or NULL. */
static uint8_t *out_room(struct stream *s, size_t n)
{
	if (waiting(s) + n > VNET_STREAM_OUT)
		return NULL;
	if (s->out_len + n > VNET_STREAM_OUT) {
		memmove(s->out_data, s->out_data + s->out_at, waiting(s));
		s->out_len = waiting(s);
		s->out_at = 0;
	}
	s->out_len += n;
	return s->out_data + s->out_len - n;
}

static int stream_send(struct vnet_carrier *c, uint32_t to, const struct vnet_packet *p)
{
	struct stream *s = stream_of(c);
	const size_t whole = VNET_STREAM_HEAD + PADDED(p->len);
	const struct frame f = {
		.length = htole32((uint32_t)p->len),
		.flags = p->vh.flags,
		.gso_type = p->vh.gso_type,
		.hdr_len = htole16(p->vh.hdr_len),
		.gso_size = htole16(p->vh.gso_size),
		.csum_start = htole16(p->vh.csum_start),
		.csum_offset = htole16(p->vh.csum_offset),
	};
	uint8_t *room;

	if (s->broken)
		return s->broken;
	if (to != 0 && to != VNET_CARRIER_BY_ADDRESS)
		return -EHOSTUNREACH;
	if (!p->len || p->len > VNET_PACKET_MAX)
		return -EMSGSIZE;
	room = out_room(s, whole);
	if (!room) {
		write_out(s);
		room = out_room(s, whole);
		if (!room)
			return s->broken ? s->broken : -EAGAIN;
	}
	memcpy(room, &f, sizeof(f));
	memcpy(room + sizeof(f), p->data, p->len);
	memset(room + sizeof(f) + p->len, 0, PADDED(p->len) - p->len);
	return 0;
}

static void stream_flush(struct vnet_carrier *c)
{
	write_out(stream_of(c));
}

static void deliver(struct stream *s, const struct frame *f, uint8_t *data, size_t len)
{
	struct vnet_packet p = {
		.vh = {.flags = f->flags,
			.gso_type = f->gso_type,
			.hdr_len = le16toh(f->hdr_len),
			.gso_size = le16toh(f->gso_size),
			.csum_start = le16toh(f->csum_start),
			.csum_offset = le16toh(f->csum_offset)},
		.data = data,
		.len = len,
		.room = PADDED(len),
	};

	if (vnet_packet_parse(&p) == 0)
		s->carrier.owner.deliver(s->carrier.owner.ctx, 0, &p);
}

/* All whole frames of the buffer; what is left of it moves to its beginning. */
static int take_frames(struct stream *s, struct err *e)
{
	size_t at = 0;

	if (!s->greeted && s->in_len >= VNET_STREAM_HEAD) {
		if (memcmp(s->in_data, VNET_STREAM_MAGIC, VNET_STREAM_HEAD) != 0)
			return err_set(
				e, ERR_PEER, -EPROTO, "the other side does not carry packets");
		s->greeted = true;
		at = VNET_STREAM_HEAD;
	}
	while (s->greeted && s->in_len - at >= VNET_STREAM_HEAD) {
		const size_t left = s->in_len - at - VNET_STREAM_HEAD;
		uint8_t *data = s->in_data + at + VNET_STREAM_HEAD;
		struct frame f;
		size_t len;

		memcpy(&f, s->in_data + at, sizeof(f));
		len = le32toh(f.length);
		if (len > VNET_PACKET_MAX || f.zero)
			return err_set(e, ERR_PEER, -EPROTO, "the other side has lost its place");
		if (PADDED(len) > left)
			break;
		if (len)
			deliver(s, &f, data, len);
		at += VNET_STREAM_HEAD + PADDED(len);
	}
	memmove(s->in_data, s->in_data + at, s->in_len - at);
	s->in_len -= at;
	return 0;
}

static int read_in(struct stream *s, struct err *e)
{
	ssize_t n;
	int r;

	do
		n = read(s->in, s->in_data + s->in_len, IN_ROOM - s->in_len);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		return err_errno(e, -errno, "carrier");
	if (n == 0)
		return err_set(e, ERR_PEER, -ECONNRESET, "the other side has ended the connection");
	s->in_len += (size_t)n;
	r = take_frames(s, e);
	return r < 0 ? r : 1;
}

static void keep_alive(struct stream *s)
{
	const uint64_t now = io_now_ns();
	uint8_t *room;

	if (!s->keepalive || now < s->next_keepalive)
		return;
	s->next_keepalive = now + s->keepalive;
	room = waiting(s) ? NULL : out_room(s, VNET_STREAM_HEAD);
	if (room)
		memset(room, 0, VNET_STREAM_HEAD);
}

static int stream_run(struct vnet_carrier *c, struct err *e)
{
	struct stream *s = stream_of(c);
	int r = read_in(s, e);

	if (r < 0)
		return r;
	keep_alive(s);
	write_out(s);
	return s->broken ? err_errno(e, s->broken, "carrier") : 0;
}

static struct vnet_carrier_watch stream_watch(struct vnet_carrier *c, unsigned which)
{
	struct stream *s = stream_of(c);

	if (which == 0)
		return (struct vnet_carrier_watch){
			.fd = s->in, .read = true, .write = s->in == s->out && waiting(s)};
	if (which == 1 && s->in != s->out)
		return (struct vnet_carrier_watch){.fd = s->out, .write = waiting(s) > 0};
	return (struct vnet_carrier_watch){.fd = -1};
}

static uint64_t stream_deadline(struct vnet_carrier *c)
{
	struct stream *s = stream_of(c);

	return s->keepalive ? s->next_keepalive : VNET_CARRIER_NEVER;
}

static void stream_close(struct vnet_carrier *c)
{
	struct stream *s = stream_of(c);

	if (s->out != s->in)
		close_fd(s->out);
	close_fd(s->in);
	free(s->in_data);
	free(s->out_data);
	free(s);
}

static const struct vnet_carrier_ops ops = {
	.send = stream_send,
	.flush = stream_flush,
	.watch = stream_watch,
	.deadline = stream_deadline,
	.run = stream_run,
	.close = stream_close,
};

int vnet_stream_open(struct vnet_carrier **ret, const struct vnet_stream_options *o, struct err *e)
{
	struct stream *s = calloc(1, sizeof(*s));
	int r;

	if (!s) {
		close_fd(o->in);
		if (o->out != o->in)
			close_fd(o->out);
		return err_errno(e, -ENOMEM, "carrier");
	}
	*s = (struct stream){
		.carrier = {.ops = &ops, .owner = o->owner},
		.in = o->in,
		.out = o->out,
		.keepalive = o->keepalive,
		.next_keepalive = io_now_ns() + o->keepalive,
		.in_data = malloc(IN_ROOM),
		.out_data = malloc(VNET_STREAM_OUT),
	};
	if (!s->in_data || !s->out_data)
		r = -ENOMEM;
	else if ((r = io_set_nonblock(s->in, true)) == 0)
		r = io_set_nonblock(s->out, true);
	if (r < 0) {
		stream_close(&s->carrier);
		return err_errno(e, r, "carrier");
	}
	memcpy(out_room(s, VNET_STREAM_HEAD), VNET_STREAM_MAGIC, VNET_STREAM_HEAD);
	write_out(s);
	*ret = &s->carrier;
	return 0;
}
