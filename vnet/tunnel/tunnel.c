// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/tunnel/tunnel.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "vnet/tunnel/device.h"

#define ROUNDS 8 /* of recvmmsg in one call, so that others get their turn */

static uint64_t clock_of(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (uint64_t)now.tv_sec * SECONDS + (uint64_t)now.tv_nsec;
}

static uint64_t system_monotonic(void *ctx)
{
	return clock_of(CLOCK_MONOTONIC);
}

static uint64_t system_real(void *ctx)
{
	return clock_of(CLOCK_REALTIME);
}

static struct vnet_tunnel *tunnel_of(struct vnet_carrier *c)
{
	return (struct vnet_tunnel *)c;
}

static void look_at_clock(struct vnet_tunnel *t)
{
	t->now = t->clock.monotonic(t->clock.ctx);
}

static int tunnel_send(struct vnet_carrier *c, uint32_t to, const struct vnet_packet *p)
{
	struct vnet_tunnel *t = tunnel_of(c);

	if (to == VNET_CARRIER_BY_ADDRESS)
		to = vnet_allowed_find(&t->allowed, &p->dst);
	if (to >= t->n_peers)
		return -EHOSTUNREACH;
	look_at_clock(t);
	return vnet_data_send(&t->peers[to], p);
}

static void tunnel_flush(struct vnet_carrier *c)
{
	vnet_socket_flush(tunnel_of(c)->udp);
}

static struct vnet_carrier_watch tunnel_watch(struct vnet_carrier *c, unsigned which)
{
	struct vnet_socket *u = tunnel_of(c)->udp;

	if (which)
		return (struct vnet_carrier_watch){.fd = -1};
	return (struct vnet_carrier_watch){
		.fd = vnet_socket_fd(u), .read = true, .write = vnet_socket_blocked(u)};
}

static uint64_t tunnel_deadline(struct vnet_carrier *c)
{
	return tunnel_of(c)->due;
}

static void take_datagram(
	struct vnet_tunnel *t, const struct vnet_endpoint *from, const uint8_t *data, size_t len)
{
	uint32_t type;

	if (len < sizeof(type))
		return;
	memcpy(&type, data, sizeof(type));
	if (le32toh(type) == VNET_DATA)
		vnet_data_receive(t, from, data, len);
	else
		vnet_handshake_receive(t, from, data, len);
}

static int tunnel_run(struct vnet_carrier *c, struct err *e)
{
	struct vnet_tunnel *t = tunnel_of(c);
	struct vnet_socket_run runs[VNET_SOCKET_RUNS];
	unsigned n = 1;

	look_at_clock(t);
	if (vnet_socket_blocked(t->udp))
		vnet_socket_flush(t->udp);
	for (unsigned round = 0; round < ROUNDS && n; round++) {
		n = vnet_socket_receive(t->udp, runs);
		for (unsigned i = 0; i < n; i++)
			for (size_t at = 0; at < runs[i].len; at += runs[i].segment)
				take_datagram(t, &runs[i].from, runs[i].data + at,
					MIN(runs[i].segment, runs[i].len - at));
		vnet_coalesce_flush(t->coalesce);
	}
	vnet_timers_run(t);
	return 0;
}

static void tunnel_close(struct vnet_carrier *c)
{
	struct vnet_tunnel *t = tunnel_of(c);

	for (uint32_t i = 0; i < t->n_peers; i++) {
		vnet_data_drop_staged(&t->peers[i]);
		vnet_handshake_forget(&t->peers[i]);
	}
	if (t->peers)
		vnet_crypto_wipe(t->peers, t->n_peers * sizeof(*t->peers));
	free(t->peers);
	vnet_socket_close(t->udp);
	vnet_coalesce_free(t->coalesce);
	vnet_index_fini(&t->index);
	vnet_allowed_fini(&t->allowed);
	vnet_stamp_close(&t->stamp);
	vnet_crypto_wipe(t, sizeof(*t));
	free(t);
}

static const struct vnet_carrier_ops ops = {
	.send = tunnel_send,
	.flush = tunnel_flush,
	.watch = tunnel_watch,
	.deadline = tunnel_deadline,
	.run = tunnel_run,
	.close = tunnel_close,
};

/* An endpoint that is written as an address. */
static struct vnet_endpoint endpoint_of(const struct vnet_config_peer *p)
{
	struct vnet_endpoint at = {.port = p->port};

	if (inet_pton(AF_INET, p->host, &at.v4) == 1)
		at.family = AF_INET;
	else if (inet_pton(AF_INET6, p->host, &at.v6) == 1)
		at.family = AF_INET6;
	return at;
}

static int add_peer(struct vnet_tunnel *t, const struct vnet_config_peer *from, struct err *e)
{
	struct vnet_peer *p = &t->peers[t->n_peers];
	int r;

	*p = (struct vnet_peer){
		.tunnel = t,
		.number = t->n_peers,
		.at = endpoint_of(from),
		.persistent = from->keepalive * SECONDS,
	};
	p->named = from->host[0] && !p->at.family;
	p->staged_end = &p->staged;
	t->n_peers++;
	r = vnet_noise_remote(&p->remote, &t->own, from->public, from->preshared);
	if (r < 0)
		return err_set(
			e, ERR_USAGE, -EINVAL, "peer %u has a public key that is none", t->n_peers);
	if ((r = vnet_cookie_jar_init(&p->jar, from->public)) < 0)
		return err_errno(e, r, "peer %u", t->n_peers);
	for (size_t i = 0; i < from->n_allowed; i++)
		if ((r = vnet_allowed_add(&t->allowed, &from->allowed[i], p->number)) < 0)
			return err_errno(e, r, "peer %u", t->n_peers);
	if (p->persistent)
		vnet_timers_set(p, VNET_TIMER_PERSISTENT, 0); /* so that the first goes at once */
	return 0;
}

/* The file's name tells nobody the key. */
static int open_stamp(struct vnet_tunnel *t, const char *state, struct err *e)
{
	uint8_t hash[VNET_HASH_LEN];
	char name[2 * 16 + sizeof(".stamp")];
	int r;

	if (!state)
		return 0;
	r = vnet_crypto_hash("podrun stamp", 12, t->own.public, VNET_KEY_LEN, hash);
	if (r < 0)
		return err_errno(e, r, "tunnel");
	for (int i = 0; i < 16; i++)
		snprintf(name + 2 * i, 3, "%02x", hash[i]);
	memcpy(name + 32, ".stamp", sizeof(".stamp"));
	return vnet_stamp_open(&t->stamp, state, name, e);
}

static int set_up(struct vnet_tunnel *t, const struct vnet_config *c,
	const struct vnet_tunnel_options *o, struct err *e)
{
	const struct vnet_coalesce_options join = {
		.tcp = !o->no_super_tcp,
		.udp = !o->no_super_udp,
		.deliver = o->owner.deliver,
		.ctx = o->owner.ctx,
	};
	const struct vnet_socket_options udp = {.port = c->listen_port, .no_runs = o->no_udp_runs};
	int r;

	(void)((r = vnet_noise_identity(&t->own, c->private)) ||
		(r = vnet_cookie_guard_init(&t->guard, t->own.public)) ||
		(r = vnet_crypto_random(&t->flood.seed, sizeof(t->flood.seed))));
	if (r < 0)
		return err_errno(e, r, "tunnel");
	t->mtu = c->mtu ? c->mtu : VNET_TUNNEL_MTU;
	t->peers = calloc(c->n_peers ? c->n_peers : 1, sizeof(*t->peers));
	t->coalesce = vnet_coalesce_new(&join);
	if (!t->peers || !t->coalesce)
		return err_errno(e, -ENOMEM, "tunnel");
	if ((r = open_stamp(t, o->state, e)) < 0 || (r = vnet_socket_open(&t->udp, &udp, e)) < 0)
		return r;
	for (size_t i = 0; i < c->n_peers; i++)
		if ((r = add_peer(t, &c->peers[i], e)) < 0)
			return r;
	return 0;
}

int vnet_tunnel_open(struct vnet_carrier **ret, const struct vnet_config *c,
	const struct vnet_tunnel_options *o, struct err *e)
{
	struct vnet_tunnel *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return err_errno(e, -ENOMEM, "tunnel");
	t->carrier = (struct vnet_carrier){.ops = &ops, .owner = o->owner};
	t->clock = o->clock ? *o->clock
			    : (struct vnet_tunnel_clock){system_monotonic, system_real, NULL};
	t->due = VNET_CARRIER_NEVER;
	vnet_stamp_init(&t->stamp);
	look_at_clock(t);
	r = set_up(t, c, o, e);
	if (r < 0)
		tunnel_close(&t->carrier);
	else
		*ret = &t->carrier;
	return r;
}

int vnet_tunnel_add_peer(struct vnet_carrier *c, const struct vnet_config_peer *peer, struct err *e)
{
	struct vnet_tunnel *t = tunnel_of(c);

	/* There is room for one, and peers stay where they are. */
	if (t->n_peers)
		return err_set(e, ERR_STATE, -EBUSY, "the tunnel has its peers");
	look_at_clock(t);
	return add_peer(t, peer, e);
}

void vnet_tunnel_set_endpoint(struct vnet_carrier *c, uint32_t peer, const struct vnet_endpoint *at)
{
	struct vnet_tunnel *t = tunnel_of(c);

	if (peer < t->n_peers)
		t->peers[peer].at = *at;
}

int vnet_tunnel_peer_stats(
	struct vnet_carrier *c, uint32_t peer, struct vnet_tunnel_peer_stats *ret)
{
	struct vnet_tunnel *t = tunnel_of(c);

	if (peer >= t->n_peers)
		return -ENOENT;
	*ret = t->peers[peer].stats;
	ret->at = t->peers[peer].at;
	return 0;
}

uint16_t vnet_tunnel_port(struct vnet_carrier *c)
{
	return vnet_socket_port(tunnel_of(c)->udp);
}

void vnet_tunnel_greet(struct vnet_carrier *c, uint32_t peer)
{
	struct vnet_tunnel *t = tunnel_of(c);

	look_at_clock(t);
	if (peer < t->n_peers)
		vnet_data_keepalive(&t->peers[peer]);
}
