// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <errno.h>

#include "base/base.h"
#include "vnet/checksum.h"
#include "vnet/packet.h"
#include "vnet/reassemble.h"

/* Headers in front of what is cut: IPv4 with options, or IPv6 with some extensions. */
#define HEAD_MAX 128
#define BLOCKS	 (65536 / 8)

/* A datagram of which something has come. */
struct partial {
	bool used;
	uint8_t proto;	   /* of the fragment header: a transport's, or another extension's */
	uint16_t head_len; /* 0: the first fragment has not come */
	uint32_t session, id;
	uint32_t since; /* the second of its first fragment */
	uint64_t order; /* which began before which */
	struct vnet_endpoint src, dst;
	size_t have;   /* bytes */
	size_t total;  /* 0: the last fragment has not come */
	size_t end;    /* of what has come */
	uint8_t *data; /* 64 KB */
	uint8_t head[HEAD_MAX];
	uint8_t blocks[BLOCKS / 8]; /* a bit for each 8 bytes that have come */
};

struct vnet_reassembly {
	uint64_t begun;
	struct partial partials[VNET_REASSEMBLY_MAX];
};

struct vnet_reassembly *vnet_reassembly_new(void)
{
	return calloc(1, sizeof(struct vnet_reassembly));
}

static void forget(struct partial *d)
{
	free(d->data);
	memset(d, 0, sizeof(*d));
}

void vnet_reassembly_free(struct vnet_reassembly *r)
{
	if (!r)
		return;
	for (int i = 0; i < VNET_REASSEMBLY_MAX; i++)
		forget(&r->partials[i]);
	free(r);
}

static uint32_t id_of(const struct vnet_packet *p)
{
	uint32_t id;

	if (p->version == 4)
		return ntohs(((const struct iphdr *)(const void *)p->data)->id);
	memcpy(&id, p->data + p->fragment_at + 4, sizeof(id));
	return ntohl(id);
}

static uint8_t proto_of(const struct vnet_packet *p)
{
	return p->version == 4 ? p->proto : p->data[p->fragment_at];
}

/* IPv6 tells datagrams by their identification alone, IPv4 by the protocol, too. */
static bool is_of(const struct partial *d, uint32_t session, const struct vnet_packet *p)
{
	return d->used && d->session == session && d->id == id_of(p) &&
	       vnet_endpoint_same_address(&d->src, &p->src) &&
	       vnet_endpoint_same_address(&d->dst, &p->dst) &&
	       (p->version == 6 || d->proto == p->proto);
}

/* Where the datagram of @p is, or is to be. */
static struct partial *find(
	struct vnet_reassembly *r, uint32_t session, uint32_t now, const struct vnet_packet *p)
{
	struct partial *free_one = NULL, *oldest = NULL, *own = NULL;
	int n_own = 0;

	for (struct partial *d = r->partials; d < r->partials + VNET_REASSEMBLY_MAX; d++) {
		if (d->used && now - d->since > VNET_REASSEMBLY_SECONDS)
			forget(d);
		if (is_of(d, session, p))
			return d;
		if (!d->used) {
			free_one = d;
			continue;
		}
		if (!oldest || d->order < oldest->order)
			oldest = d;
		if (d->session != session)
			continue;
		n_own++;
		if (!own || d->order < own->order)
			own = d;
	}
	/* Who has many makes room for his own. */
	if (n_own >= VNET_REASSEMBLY_SESSION)
		free_one = own;
	else if (!free_one)
		free_one = oldest;
	forget(free_one);
	return free_one;
}

static int start(struct partial *d, uint32_t session, uint32_t now, uint64_t order,
	const struct vnet_packet *p)
{
	d->data = malloc(65536);
	if (!d->data)
		return -ENOMEM;
	d->used = true;
	d->session = session;
	d->since = now;
	d->order = order;
	d->id = id_of(p);
	d->proto = proto_of(p);
	d->src = p->src;
	d->dst = p->dst;
	return 0;
}

/* The headers of the first fragment, as they are without a cut. */
static int take_head(struct partial *d, const struct vnet_packet *p)
{
	size_t len = p->version == 4 ? p->l4 : p->fragment_at;

	if (len > HEAD_MAX)
		return -EBADMSG;
	memcpy(d->head, p->data, len);
	d->proto = proto_of(p);
	if (p->version == 6)
		d->head[p->fragment_next] = d->proto;
	d->head_len = (uint16_t)len;
	return 0;
}

/* Marks the blocks of bytes @from..@to; false if one has been there before. */
static bool mark(struct partial *d, size_t from, size_t to)
{
	for (size_t i = from / 8; i < (to + 7) / 8; i++) {
		if (d->blocks[i / 8] & 1 << i % 8)
			return false;
		d->blocks[i / 8] |= (uint8_t)(1 << i % 8);
	}
	return true;
}

/* Puts the bytes of @p into their place. */
static int add(struct partial *d, const struct vnet_packet *p)
{
	/*
	 * Behind the fragment header there may be more headers in the first one: they are part of
	 * what was cut.
	 */
	size_t begin = p->version == 4 ? p->l4 : p->fragment_at + 8u;
	size_t len = p->len - begin, from = p->fragment_offset, to = from + len;

	if (len == 0 || to > 65535 || (p->more_fragments && len % 8))
		return -EBADMSG;
	if (!p->more_fragments && d->total)
		return -EBADMSG;
	if ((d->total && to > d->total) || (!p->more_fragments && to < d->end) ||
		!mark(d, from, to))
		return -EBADMSG;
	if (from == 0 && take_head(d, p) < 0)
		return -EBADMSG;
	memcpy(d->data + from, p->data + begin, len);
	d->have += len;
	d->end = MAX(d->end, to);
	if (!p->more_fragments)
		d->total = to;
	return 0;
}

/* The whole into @p's buffer. */
static int finish(const struct partial *d, struct vnet_packet *p)
{
	size_t len = d->head_len + d->total;

	if (len > 65535 || len > p->room)
		return -EBADMSG;
	memcpy(p->data, d->head, d->head_len);
	memcpy(p->data + d->head_len, d->data, d->total);
	if (d->src.family == AF_INET) {
		struct iphdr *ip = (struct iphdr *)(void *)p->data;

		ip->tot_len = htons((uint16_t)len);
		ip->frag_off = 0;
		ip->check = 0;
		ip->check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, ip, d->head_len));
	} else {
		((struct ip6_hdr *)(void *)p->data)->ip6_plen =
			htons((uint16_t)(len - sizeof(struct ip6_hdr)));
	}
	p->len = len;
	p->vh = (struct virtio_net_hdr){0};
	return vnet_packet_parse(p) < 0 || p->fragment ? -EBADMSG : 1;
}

int vnet_reassemble(
	struct vnet_reassembly *r, uint32_t session, uint32_t now, struct vnet_packet *p)
{
	struct partial *d = find(r, session, now, p);
	int result = 0;

	if (!d->used)
		result = start(d, session, now, ++r->begun, p);
	if (result == 0)
		result = add(d, p);
	if (result == 0 && d->head_len && d->total && d->have == d->total)
		result = finish(d, p);
	if (result != 0)
		forget(d);
	return result;
}
