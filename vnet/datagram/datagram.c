// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * datagram - who a packet is for, whose descriptor is ready, and what has aged.
 *
 * Sessions reach each other by their physical addresses: such a packet gets the sender's physical
 * address as its source and the receiver's own as its destination, and nothing is remembered of
 * it.
 *
 * A mapping whose session is held is not watched: its socket fills up, and vnet_datagram_go
 * watches it again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/datagram/datagram.h"
#include "vnet/datagram/dns.h"
#include "vnet/datagram/echo.h"
#include "vnet/datagram/shown.h"
#include "vnet/datagram/state.h"
#include "vnet/datagram/udp.h"

#define EVENTS 32

/* In memory that outlives us. */
struct arena {
	struct vnet_mapping mappings[VNET_MAPPINGS];
	struct vnet_dns_pending pending[VNET_DNS_PENDING];
	struct vnet_shown shown[VNET_SHOWN];
};

size_t vnet_datagram_arena_size(void)
{
	return sizeof(struct arena);
}

static int set_up(struct vnet_datagram *d, void *arena)
{
	struct arena *a = arena;
	int r;

	d->records = a->mappings;
	d->pending = a->pending;
	d->shown = a->shown;
	d->mappings = vnet_mappings_new(a->mappings, VNET_MAPPINGS);
	d->in = malloc((size_t)VNET_OUTSIDE_BATCH * VNET_DATAGRAM_BUFFER);
	d->out = malloc(VNET_DATAGRAM_BUFFER);
	d->run.data = malloc(VNET_DATAGRAM_BUFFER);
	d->vias = calloc(VNET_VIAS, sizeof(*d->vias));
	d->epoll = epoll_create1(EPOLL_CLOEXEC);
	d->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	d->dns_timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (!d->mappings || !d->in || !d->out || !d->run.data || !d->vias)
		return -ENOMEM;
	if (d->epoll < 0 || d->timer < 0 || d->dns_timer < 0)
		return -errno;
	r = vnet_datagram_watch(d, d->timer, EPOLLIN, VNET_DATAGRAM_TIMER, 0);
	if (r == 0)
		r = vnet_datagram_watch(d, d->dns_timer, EPOLLIN, VNET_DATAGRAM_DNS_TIMER, 0);
	if (r == 0)
		vnet_dns_start(d);
	return r;
}

int vnet_datagram_new(struct vnet_datagram **ret, void *arena,
	const struct vnet_datagram_sessions *sessions, void *data, const char *resolv,
	struct err *e)
{
	struct vnet_datagram *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return err_errno(e, -ENOMEM, "cannot start with datagrams");
	d->sessions = sessions;
	d->data = data;
	d->resolv.path = resolv;
	r = set_up(d, arena);
	for (struct vnet_mapping *m = NULL; r == 0 && (m = vnet_mappings_next(d->mappings, m));) {
		vnet_datagram_watch_mapping(d, m);
		vnet_datagram_tick(d);
	}
	if (r < 0) {
		vnet_datagram_free(d);
		return err_errno(e, r, "cannot start with datagrams");
	}
	*ret = d;
	return 0;
}

void vnet_datagram_free(struct vnet_datagram *d)
{
	if (!d)
		return;
	close_fd(d->epoll);
	close_fd(d->timer);
	close_fd(d->dns_timer);
	vnet_mappings_free(d->mappings);
	free(d->in);
	free(d->out);
	free(d->run.data);
	free(d->vias);
	free(d);
}

void vnet_datagram_each_fd(void *arena, void (*keep)(void *ctx, int fd), void *ctx)
{
	const struct arena *a = arena;

	for (size_t i = 0; i < ARRAY_SIZE(a->mappings); i++)
		if (a->mappings[i].state)
			keep(ctx, a->mappings[i].fd);
	for (size_t i = 0; i < ARRAY_SIZE(a->pending); i++)
		if (a->pending[i].state && a->pending[i].fd >= 0)
			keep(ctx, a->pending[i].fd);
}

int vnet_datagram_fd(const struct vnet_datagram *d)
{
	return d->epoll;
}

/* By which address another session knows this one. */
static struct vnet_endpoint physical_of(
	const struct vnet_datagram_session *s, const struct vnet_endpoint *ep)
{
	return ep->family == AF_INET ? vnet_endpoint_v4(s->physical4, ep->port)
				     : vnet_endpoint_v6(&s->physical6, ep->port);
}

/* Changes an error about a packet that went the other way, as that one was changed. */
static bool translate_error(struct vnet_packet *p, const struct vnet_datagram_session *from,
	const struct vnet_endpoint *to)
{
	struct vnet_endpoint src, dst;
	struct vnet_embedded about;
	int r = vnet_packet_embedded(p, &about);

	if (r < 0)
		return r == -ENOENT;
	src = *to;
	src.port = about.src.port;
	dst = physical_of(from, &about.dst);
	if (about.src.family != p->src.family)
		return false;
	vnet_packet_set_embedded(p, &about, &src, &dst);
	return true;
}

/* A packet to another session of this gateway; false if it is for none. */
static bool take_for_other(
	struct vnet_datagram *d, const struct vnet_datagram_session *from, struct vnet_packet *p)
{
	const bool v4 = p->dst.family == AF_INET;
	const struct vnet_endpoint src = physical_of(from, &p->src);
	struct vnet_datagram_session other;
	struct vnet_endpoint dst;
	uint32_t id;

	if (!d->sessions->by_physical(
		    d->data, p->dst.family, v4 ? (void *)&p->dst.v4 : &p->dst.v6, &id))
		return false;
	if (!d->sessions->get(d->data, id, &other))
		return false;
	dst = v4 ? vnet_endpoint_v4(other.address4, p->dst.port)
		 : vnet_endpoint_v6(&other.address6, p->dst.port);
	if (!translate_error(p, from, &dst)) {
		d->dropped++;
		return true;
	}
	vnet_packet_set_src(p, &src);
	vnet_packet_set_dst(p, &dst);
	d->sessions->to_session(d->data, id, p);
	return true;
}

/* A gateway is a hop. */
static bool has_expired(struct vnet_datagram *d, uint32_t session,
	const struct vnet_datagram_session *s, const struct vnet_packet *p)
{
	static const struct vnet_icmp v4 = {.type = ICMP_TIME_EXCEEDED},
				      v6 = {.type = ICMP6_TIME_EXCEEDED};
	const struct vnet_endpoint gateway = vnet_datagram_gateway(s, p->dst.family);

	if ((p->version == 4 ? p->data[8] : p->data[7]) > 1 ||
		vnet_endpoint_same_address(&gateway, &p->dst))
		return false;
	vnet_datagram_refuse(d, session, p, NULL, p->version == 4 ? &v4 : &v6);
	return true;
}

void vnet_datagram_take(struct vnet_datagram *d, uint32_t session, struct vnet_packet *p)
{
	struct vnet_datagram_session s;

	if (!d->sessions->get(d->data, session, &s) || p->fragment)
		return;
	if (has_expired(d, session, &s, p) || take_for_other(d, &s, p))
		return;
	if (vnet_dns_is_for(&s, p))
		vnet_dns_from_session(d, session, &s, p);
	else if (vnet_packet_icmp(p))
		vnet_echo_from_session(d, session, &s, p);
	else if (vnet_packet_udp(p))
		vnet_udp_from_session(d, session, &s, p);
}

void vnet_datagram_flush(struct vnet_datagram *d)
{
	vnet_udp_flush(d);
}

static void mapping_ready(struct vnet_datagram *d, uint32_t index)
{
	struct vnet_mapping *m = &d->records[index];
	struct vnet_datagram_session s;

	if (index >= VNET_MAPPINGS || !m->state)
		return;
	if (!d->sessions->get(d->data, m->session, &s))
		vnet_datagram_close(d, m);
	else if (s.held)
		vnet_datagram_unwatch(d, m->fd);
	else if (m->kind == VNET_MAPPING_ECHO)
		vnet_echo_ready(d, m, &s);
	else
		vnet_udp_ready(d, m, &s);
}

/* What is not used any more goes. */
static void age(struct vnet_datagram *d)
{
	const uint64_t now = vnet_datagram_now();
	struct vnet_datagram_session s;
	uint64_t ticks;
	bool any = false;
	uint32_t id;

	if (read(d->timer, &ticks, sizeof(ticks)) < 0)
		return;
	for (struct vnet_mapping *m = NULL; (m = vnet_mappings_next(d->mappings, m));) {
		const bool there = d->sessions->get(d->data, m->session, &s);

		if (there && !vnet_mapping_aged(m, now, s.held)) {
			any = any || !m->published;
			continue;
		}
		id = m->session;
		vnet_datagram_close(d, m);
		if (there && d->sessions->idle && !vnet_datagram_count(d, id))
			d->sessions->idle(d->data, id);
	}
	if (any)
		return;
	d->ticking = false;
	timerfd_settime(d->timer, 0, &(struct itimerspec){0}, NULL);
}

void vnet_datagram_run(struct vnet_datagram *d)
{
	struct epoll_event ev[EVENTS];
	int n = epoll_wait(d->epoll, ev, EVENTS, 0);

	for (int i = 0; i < n; i++) {
		const uint32_t index = (uint32_t)ev[i].data.u64;

		switch ((enum vnet_datagram_watch)(ev[i].data.u64 >> 32)) {
		case VNET_DATAGRAM_MAPPING:
			mapping_ready(d, index);
			break;
		case VNET_DATAGRAM_DNS:
			vnet_dns_ready(d, index);
			break;
		case VNET_DATAGRAM_DNS_TIMER:
			vnet_dns_expire(d);
			break;
		case VNET_DATAGRAM_TIMER:
			age(d);
			break;
		}
	}
}

void vnet_datagram_go(struct vnet_datagram *d, uint32_t session)
{
	const uint64_t now = vnet_datagram_now();

	vnet_dns_go(d, session);
	for (struct vnet_mapping *m = NULL; (m = vnet_mappings_next(d->mappings, m));)
		if (m->session == session) {
			m->used_ms = now;
			vnet_datagram_watch_mapping(d, m);
			vnet_datagram_tick(d);
		}
}

bool vnet_datagram_resolver(struct vnet_datagram *d, unsigned *at, struct vnet_endpoint *ret)
{
	vnet_resolv_refresh(&d->resolv);
	while (*at < d->resolv.n) {
		const union vnet_resolv_server *s = &d->resolv.servers[(*at)++];
		struct sockaddr_storage sa = {0};

		memcpy(&sa, s, sizeof(*s));
		if (!(s->sa.sa_family == AF_INET6 && s->v6.sin6_scope_id) &&
			vnet_endpoint_from_sockaddr(&sa, vnet_resolv_server_len(s), ret) == 0)
			return true;
	}
	return false;
}

uint32_t vnet_datagram_count(struct vnet_datagram *d, uint32_t session)
{
	uint32_t n = 0;

	for (struct vnet_mapping *m = NULL; (m = vnet_mappings_next(d->mappings, m));)
		n += m->session == session && m->kind == VNET_MAPPING_UDP && m->answered &&
		     !m->brief && !m->published;
	return n;
}

void vnet_datagram_forget(struct vnet_datagram *d, uint32_t session)
{
	vnet_dns_forget(d, session);
	for (struct vnet_mapping *m = NULL; (m = vnet_mappings_next(d->mappings, m));)
		if (m->session == session)
			vnet_datagram_close(d, m);
}

static struct vnet_mapping *find_port(struct vnet_datagram *d, uint32_t session,
	const struct vnet_endpoint *outside, const struct vnet_endpoint *inside)
{
	for (struct vnet_mapping *m = NULL; (m = vnet_mappings_next(d->mappings, m));)
		if (m->session == session && m->published &&
			vnet_endpoint_equal(&m->outside, outside) &&
			vnet_endpoint_equal(&m->inside, inside))
			return m;
	return NULL;
}

int vnet_datagram_open_port(struct vnet_datagram *d, uint32_t session,
	const struct vnet_endpoint *outside, const struct vnet_endpoint *inside)
{
	struct vnet_mapping want = {.session = session,
		.kind = VNET_MAPPING_UDP,
		.inside = *inside,
		.published = true,
		.outside = *outside,
		.used_ms = vnet_datagram_now()};
	struct vnet_mapping *m = find_port(d, session, outside, inside);

	/* A session that is back has it already. */
	if (m)
		return 0;
	want.fd = vnet_outside_udp(&want.outside);
	if (want.fd < 0)
		return want.fd;
	m = vnet_mappings_add(d->mappings, &want);
	if (!m) {
		close(want.fd);
		return -ENOBUFS;
	}
	return vnet_datagram_watch_mapping(d, m);
}

void vnet_datagram_close_port(struct vnet_datagram *d, uint32_t session,
	const struct vnet_endpoint *outside, const struct vnet_endpoint *inside)
{
	struct vnet_mapping *m = find_port(d, session, outside, inside);

	if (m)
		vnet_datagram_close(d, m);
}
