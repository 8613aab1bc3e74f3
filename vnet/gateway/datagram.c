// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * datagram - one descriptor in the loop, and the arena's sessions as vnet/datagram/sessions.h
 * wants them.
 */
#include "vnet/gateway/datagram.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/base.h"
#include "vnet/datagram/datagram.h"
#include "vnet/datagram/sessions.h"
#include "vnet/gateway/gateway.h"
#include "vnet/vnat.h"

struct gateway_datagrams {
	struct gateway_watch watch;
	struct vnet_gateway *g;
	struct vnet_datagram *d;
};

static bool get(void *data, uint32_t id, struct vnet_datagram_session *ret)
{
	struct vnet_gateway *g = data;
	const struct gateway_session *s = &g->arena->sessions[id];
	const struct vnet_session *names;

	if (id >= GATEWAY_MAX_SESSIONS ||
		(s->state != GATEWAY_SESSION_ATTACHED && s->state != GATEWAY_SESSION_SUSPENDED))
		return false;
	names = vnet_session_get(g->vnat, id);
	if (!names)
		return false;
	*ret = (struct vnet_datagram_session){.name = s->name,
		.address4 = s->address4,
		.gateway4 = s->gateway4,
		.loopback4 = s->loopback4,
		.address6 = s->address6,
		.gateway6 = s->gateway6,
		.loopback6 = s->loopback6,
		.link_local = s->link_local,
		.mtu = (uint16_t)s->mtu,
		.held = s->held || s->state == GATEWAY_SESSION_SUSPENDED};
	if (names->physical_v4.family)
		ret->physical4 = names->physical_v4.v4;
	if (names->physical_v6.family)
		ret->physical6 = names->physical_v6.v6;
	return true;
}

static bool by_name(void *data, const char *name, uint32_t *ret)
{
	struct vnet_gateway *g = data;

	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		const struct gateway_session *s = &g->arena->sessions[i];

		if (s->state == GATEWAY_SESSION_ATTACHED && !s->remote[0] &&
			strcasecmp(s->name, name) == 0) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static bool is_physical(const struct vnet_session *s, int family, const void *address)
{
	if (family == AF_INET)
		return s->physical_v4.family &&
		       memcmp(&s->physical_v4.v4, address, sizeof(s->physical_v4.v4)) == 0;
	return s->physical_v6.family &&
	       memcmp(&s->physical_v6.v6, address, sizeof(s->physical_v6.v6)) == 0;
}

static bool by_physical(void *data, int family, const void *address, uint32_t *ret)
{
	struct vnet_gateway *g = data;
	const uint8_t first = family == AF_INET ? VNET_PHYSICAL_V4 >> 24 : 0xfd;

	if (*(const uint8_t *)address != first)
		return false;
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		const struct vnet_session *s = vnet_session_get(g->vnat, i);

		if (s && !g->arena->sessions[i].remote[0] && is_physical(s, family, address)) {
			*ret = i;
			return true;
		}
	}
	return false;
}

static void to_session(void *data, uint32_t id, struct vnet_packet *p)
{
	vnet_gateway_to_session(data, id, p);
}

static void idle(void *data, uint32_t id)
{
	struct vnet_gateway *g = data;

	g->flow_ended(g, id);
}

static const struct vnet_datagram_sessions SESSIONS = {.get = get,
	.by_name = by_name,
	.by_physical = by_physical,
	.to_session = to_session,
	.idle = idle};

static void on_ready(struct gateway_watch *w, uint32_t events)
{
	vnet_datagram_run(gateway_container(w, struct gateway_datagrams, watch)->d);
}

size_t gateway_datagram_room(void)
{
	return vnet_datagram_arena_size();
}

static void keep(void *ctx, int fd)
{
	gateway_fds_keep(ctx, fd);
}

void gateway_datagram_keep(struct gateway_arena *a, struct gateway_fds *s)
{
	vnet_datagram_each_fd(gateway_arena_datagrams(a), keep, s);
}

int gateway_datagram_start(struct vnet_gateway *g, struct err *e)
{
	struct gateway_datagrams *d = calloc(1, sizeof(*d));
	int r;

	g->datagrams = d;
	if (!d)
		return err_errno(e, -ENOMEM, "gateway");
	d->g = g;
	d->watch.ready = on_ready;
	r = vnet_datagram_new(&d->d, gateway_arena_datagrams(g->arena), &SESSIONS, g, NULL, e);
	if (r < 0)
		return r;
	r = gateway_loop_add(g->loop, vnet_datagram_fd(d->d), EPOLLIN, &d->watch);
	return r < 0 ? err_errno(e, r, "gateway") : 0;
}

void gateway_datagram_from_session(struct vnet_gateway *g, uint32_t session, struct vnet_packet *p)
{
	vnet_datagram_take(g->datagrams->d, session, p);
}

void gateway_datagram_flush(struct vnet_gateway *g)
{
	vnet_datagram_flush(g->datagrams->d);
}

void gateway_datagram_go(struct vnet_gateway *g, uint32_t session)
{
	vnet_datagram_go(g->datagrams->d, session);
}

void gateway_datagram_end_session(struct vnet_gateway *g, uint32_t session)
{
	vnet_datagram_forget(g->datagrams->d, session);
}

uint32_t gateway_datagram_count(struct vnet_gateway *g, uint32_t session)
{
	return vnet_datagram_count(g->datagrams->d, session);
}

bool gateway_datagram_resolver(struct vnet_gateway *g, unsigned *at, struct vnet_endpoint *ret)
{
	return vnet_datagram_resolver(g->datagrams->d, at, ret);
}

/* A port's two ends in one family; false if the session or the port has not that family. */
static bool ends(const struct gateway_session *s, const struct vnet_port *p, int family,
	struct vnet_endpoint *outside, struct vnet_endpoint *inside)
{
	struct in_addr v4;

	if (p->family && p->family != family)
		return false;
	if (family == AF_INET6) {
		*outside = vnet_endpoint_v6(&p->address, p->outside);
		*inside = vnet_endpoint_v6(&s->address6, p->session);
		return !IN6_IS_ADDR_UNSPECIFIED(&s->address6);
	}
	memcpy(&v4, &p->address, sizeof(v4));
	*outside = vnet_endpoint_v4(v4, p->outside);
	*inside = vnet_endpoint_v4(s->address4, p->session);
	return s->address4.s_addr;
}

int gateway_datagram_publish(struct vnet_gateway *g, uint32_t session, const struct vnet_port *p)
{
	static const int families[] = {AF_INET, AF_INET6};
	int r = -EAFNOSUPPORT;

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct vnet_endpoint outside, inside;
		int one;

		if (!ends(&g->arena->sessions[session], p, families[i], &outside, &inside))
			continue;
		one = vnet_datagram_open_port(g->datagrams->d, session, &outside, &inside);
		/* A host without IPv6 publishes what it can. */
		if (one < 0 && !(r == 0 && one == -EAFNOSUPPORT)) {
			gateway_datagram_unpublish(g, session, p);
			return one;
		}
		r = MAX(r, one);
	}
	return r;
}

void gateway_datagram_unpublish(struct vnet_gateway *g, uint32_t session, const struct vnet_port *p)
{
	static const int families[] = {AF_INET, AF_INET6};

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct vnet_endpoint outside, inside;

		if (ends(&g->arena->sessions[session], p, families[i], &outside, &inside))
			vnet_datagram_close_port(g->datagrams->d, session, &outside, &inside);
	}
}
