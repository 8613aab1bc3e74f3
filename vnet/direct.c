// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      end ===== line, a byte stream: keys and ports, then whatever the tunnel can't take ===== end
 *       '------------ UDP, the WireGuard protocol (vnet/tunnel/), packets of the session -------'
 *
 * Each end makes a key for this line and opens a port; both are told over the line, which is
 * authentic and private already.  Both begin a handshake with whatever address they know of the
 * other, so that one way through a NAT or a firewall is enough.
 *
 * Nothing ever waits for the tunnel.  Packets go by the line until an end has *proved* that the
 * tunnel works: it has asked a question by it, and an answer has come by it.  Each end does this
 * for itself, for what it sends.  Question and answer are as long as the longest packet, for a way
 * on which only large ones are lost is no way.  While packets pass there is a question every
 * second, otherwise one every 25, which keeps NATs from forgetting.  After LOST questions without
 * an answer packets go by the line again; what was on its way is lost, as on any wire, and sent
 * again by whom it concerns.  Questions go on: soon at first, then seldom and only while packets
 * pass.
 *
 * A question is an IPv4 packet from nobody to nobody, of a protocol for experiments (RFC 3692).
 * Neither session nor gateway ever sees one.
 */
#include "vnet/direct.h"

#include <arpa/inet.h>
#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "vnet/checksum.h"
#include "vnet/packet.h"
#include "vnet/tunnel/crypto.h"
#include "vnet/tunnel/segment.h"
#include "vnet/tunnel/tunnel.h"

#define SECOND	     1000000000ull
#define SOON	     SECOND	   /* between two questions, while packets pass */
#define SELDOM	     (10 * SECOND) /* the same when nobody answers */
#define IDLE	     (25 * SECOND) /* while none pass */
#define LOST	     3		   /* questions without an answer: it does not work */
#define EAGER	     10		   /* so many are asked soon, whoever answers */
#define WINDOW	     16u	   /* of the last questions: an answer to one of them counts */
#define QUESTION_MAX 65000u	   /* bytes: fits a datagram with all that is around it */
#define MTU_LEAST    1280u	   /* as of every gateway's session */
#define PROTOCOL     253
#define HELD_PACKETS 1024u
#define HELD_BYTES   (8u << 20)
#define ROOM_TRIES   20 /* for room in the socket, of ROOM_MS each */
#define ROOM_MS	     10

enum { QUESTION = '?', ANSWER = '!' };

struct question {
	struct iphdr ip;
	uint8_t magic[7], kind;
	uint32_t number; /* network order */
};
static_assert(sizeof(struct question) == 32, "a packet");
static const uint8_t magic[] = {'p', 'o', 'd', 'r', 'u', 'n', ' '};

struct held {
	struct held *next;
	struct vnet_packet p;
	_Alignas(8) uint8_t data[];
};

struct vnet_direct {
	struct vnet_carrier *tunnel;
	struct vnet_direct_owner owner;
	uint8_t key[VNET_DIRECT_KEY];
	size_t longest; /* of a question */
	bool met;
	bool proven;	  /* it works */
	bool sent;	  /* a packet, since the last question */
	uint32_t asked;	  /* the last question */
	uint32_t missing; /* answers, since the last that came */
	uint64_t asked_at, due;
	bool owes; /* an answer to `owed` */
	uint32_t owed;
	bool holds;
	struct held *first, **last;
	uint32_t packets;
	size_t bytes;
};

/* ---- questions --------------------------------------------------------------------------- */

/* False: there is no room for it now. */
static bool say(struct vnet_direct *d, uint8_t kind, uint32_t number)
{
	_cleanup_free_ uint8_t *data = calloc(1, d->longest);
	struct vnet_packet p = {.data = data, .len = d->longest, .room = d->longest};
	struct question q = {
		.ip = {.version = 4,
			.ihl = 5,
			.ttl = 1,
			.protocol = PROTOCOL,
			.tot_len = htons((uint16_t)d->longest)},
		.kind = kind,
		.number = htonl(number),
	};
	int r = 0;

	if (!data)
		return false;
	memcpy(q.magic, magic, sizeof(magic));
	q.ip.check = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, &q.ip, sizeof(q.ip)));
	memcpy(data, &q, sizeof(q));
	if (vnet_packet_parse(&p) == 0)
		r = vnet_carrier_send(d->tunnel, 0, &p);
	vnet_carrier_flush(d->tunnel);
	return r != -EAGAIN;
}

static uint64_t interval(const struct vnet_direct *d)
{
	return d->proven || d->missing < EAGER ? SOON : SELDOM;
}

static void ask(struct vnet_direct *d)
{
	d->sent = false;
	d->asked++;
	d->missing++;
	d->asked_at = io_now_ns();
	d->due = d->asked_at + interval(d);
	/* What fills the socket tells that packets go, not that they come. */
	if (!say(d, QUESTION, d->asked))
		d->missing--;
}

static void change(struct vnet_direct *d, bool proven)
{
	d->proven = proven;
	d->owner.changed(d->owner.ctx, proven);
}

static void on_due(struct vnet_direct *d)
{
	if (d->proven && d->missing >= LOST)
		change(d, false);
	if (!d->proven && d->missing >= EAGER && !d->sent)
		d->due = VNET_CARRIER_NEVER; /* a packet wakes it */
	else
		ask(d);
}

static void on_answer(struct vnet_direct *d, uint32_t number)
{
	if (d->asked - number >= WINDOW)
		return;
	d->missing = 0;
	d->due = d->asked_at + (d->sent ? SOON : IDLE);
	if (!d->proven)
		change(d, true);
}

static bool is_question(const struct vnet_packet *p, struct question *ret)
{
	if (p->version != 4 || p->proto != PROTOCOL || p->len < sizeof(*ret))
		return false;
	memcpy(ret, p->data, sizeof(*ret));
	return !ret->ip.saddr && !ret->ip.daddr && memcmp(ret->magic, magic, sizeof(magic)) == 0;
}

static bool take_question(struct vnet_direct *d, const struct vnet_packet *p)
{
	struct question q;

	if (!is_question(p, &q))
		return false;
	if (q.kind == ANSWER) {
		on_answer(d, ntohl(q.number));
	} else if (q.kind == QUESTION) {
		d->owes = true;
		d->owed = ntohl(q.number);
	}
	return true;
}

/* ---- packets ----------------------------------------------------------------------------- */

static void wait_held(struct vnet_direct *d, const struct vnet_packet *p)
{
	struct held *h = NULL;

	if (d->packets < HELD_PACKETS && d->bytes + p->len <= HELD_BYTES)
		h = malloc(sizeof(*h) + p->len);
	if (!h)
		return; /* lost */
	h->next = NULL;
	h->p = *p;
	h->p.data = h->data;
	memcpy(h->data, p->data, p->len);
	*d->last = h;
	d->last = &h->next;
	d->packets++;
	d->bytes += p->len;
}

static struct held *take_held(struct vnet_direct *d)
{
	struct held *h = d->first;

	if (!h)
		return NULL;
	d->first = h->next;
	if (!d->first)
		d->last = &d->first;
	d->packets--;
	d->bytes -= h->p.len;
	return h;
}

static void deliver(void *ctx, uint32_t from, struct vnet_packet *p)
{
	struct vnet_direct *d = ctx;

	if (take_question(d, p))
		return;
	if (d->holds)
		wait_held(d, p);
	else
		d->owner.deliver(d->owner.ctx, p);
}

void vnet_direct_hold(struct vnet_direct *d)
{
	if (d)
		d->holds = true;
}

void vnet_direct_go(struct vnet_direct *d)
{
	struct held *h;

	if (!d)
		return;
	d->holds = false;
	while ((h = take_held(d))) {
		d->owner.deliver(d->owner.ctx, &h->p);
		free(h);
	}
}

bool vnet_direct_send(struct vnet_direct *d, uint8_t *data, size_t len)
{
	struct vnet_packet p = {0};
	struct question q;
	int r, tries = 0;

	if (!d || !d->met || len <= sizeof(p.vh))
		return false;
	if (!d->sent) {
		d->sent = true;
		d->due = MIN(d->due, d->asked_at + interval(d));
	}
	if (!d->proven)
		return false;
	memcpy(&p.vh, data, sizeof(p.vh));
	p.data = data + sizeof(p.vh);
	p.len = p.room = len - sizeof(p.vh);
	/* What is longer than a question may be what is lost on the way. */
	if (vnet_packet_parse(&p) < 0 || is_question(&p, &q) ||
		vnet_segment_length(&p, 0) > d->longest)
		return false;
	while ((r = vnet_carrier_send(d->tunnel, 0, &p)) == -EAGAIN && tries++ < ROOM_TRIES) {
		struct pollfd room = {.fd = vnet_carrier_watch(d->tunnel, 0).fd, .events = POLLOUT};

		poll(&room, 1, ROOM_MS);
		vnet_carrier_flush(d->tunnel);
	}
	return r == 0;
}

void vnet_direct_flush(struct vnet_direct *d)
{
	if (d)
		vnet_carrier_flush(d->tunnel);
}

/* ---- time and descriptors ---------------------------------------------------------------- */

void vnet_direct_watch(struct vnet_direct *d, struct pollfd *ret)
{
	struct vnet_carrier_watch w;

	*ret = (struct pollfd){.fd = -1};
	if (!d)
		return;
	w = vnet_carrier_watch(d->tunnel, 0);
	ret->fd = w.fd;
	ret->events = (short)(POLLIN | (w.write ? POLLOUT : 0));
}

int vnet_direct_timeout(struct vnet_direct *d)
{
	uint64_t due, now;

	if (!d)
		return -1;
	due = MIN(d->due, vnet_carrier_deadline(d->tunnel));
	if (due == VNET_CARRIER_NEVER)
		return -1;
	now = io_now_ns();
	return due <= now ? 0 : (int)MIN((due - now + 999999) / 1000000, (uint64_t)INT_MAX);
}

void vnet_direct_run(struct vnet_direct *d)
{
	struct err ignored = {0};

	if (!d)
		return;
	(void)vnet_carrier_run(d->tunnel, &ignored);
	if (d->owes) {
		d->owes = !say(d, ANSWER, d->owed);
	}
	if (io_now_ns() >= d->due)
		on_due(d);
	vnet_carrier_flush(d->tunnel);
}

/* ---- beginning and end ------------------------------------------------------------------- */

void vnet_direct_close(struct vnet_direct *d)
{
	struct held *h;

	if (!d)
		return;
	while ((h = take_held(d)))
		free(h);
	vnet_carrier_close(d->tunnel);
	free(d);
}

void vnet_direct_self(const struct vnet_direct *d, struct vnet_direct_end *ret)
{
	*ret = (struct vnet_direct_end){.port = vnet_tunnel_port(d->tunnel)};
	memcpy(ret->key, d->key, sizeof(ret->key));
}

int vnet_direct_open(
	struct vnet_direct **ret, const struct vnet_direct_owner *o, unsigned mtu, struct err *e)
{
	struct vnet_direct *d = calloc(1, sizeof(*d));
	struct vnet_config *c = calloc(1, sizeof(*c));
	/* Runs of datagrams are cut up where they come in: not every kernel's TUN takes them. */
	const struct vnet_tunnel_options options = {.owner = {deliver, d}, .no_super_udp = true};
	int r = mtu < MTU_LEAST || mtu > IP_MAXPACKET ? -EINVAL : -ENOMEM;

	if (d && c && r != -EINVAL) {
		d->owner = *o;
		d->longest = MIN(mtu, QUESTION_MAX);
		d->due = VNET_CARRIER_NEVER;
		d->last = &d->first;
		c->mtu = mtu;
		(void)((r = vnet_crypto_random(c->private, sizeof(c->private))) ||
			(r = vnet_crypto_public(c->private, d->key)));
	}
	if (r < 0)
		err_errno(e, r, "tunnel");
	else
		r = vnet_tunnel_open(&d->tunnel, c, &options, e);
	if (c)
		vnet_config_fini(c);
	free(c);
	if (r < 0)
		vnet_direct_close(d);
	else
		*ret = d;
	return r;
}

int vnet_direct_meet(struct vnet_direct *d, const struct vnet_direct_end *other, struct err *e)
{
	struct vnet_prefix all[] = {{.family = AF_INET}, {.family = AF_INET6}};
	struct vnet_config_peer peer = {
		.allowed = all,
		.n_allowed = ARRAY_SIZE(all),
		.port = other->port,
		.has_key = true,
	};
	int r;

	if (d->met)
		return err_set(e, ERR_PEER, -EINVAL, "the other end has been met");
	memcpy(peer.public, other->key, sizeof(peer.public));
	snprintf(peer.host, sizeof(peer.host), "%s", other->address);
	r = vnet_tunnel_add_peer(d->tunnel, &peer, e);
	if (r < 0)
		return r;
	d->met = true;
	ask(d);
	return 0;
}
