// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * state - mappings with their sockets, and which addresses are which.
 *
 * Of the host a session sees what the network shows, and its loopback only by an address of its own
 * (loopback4, loopback6), if it has one; of link-local addresses none, unless it may.  Addresses by
 * which a socket would reach this host in other ways - 0.0.0.0, an IPv4 address written as IPv6 -
 * are refused.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/datagram/shown.h"
#include "vnet/datagram/state.h"

uint64_t vnet_datagram_now(void)
{
	return io_now_ns() / 1000000;
}

int vnet_datagram_watch(struct vnet_datagram *d, int fd, uint32_t events,
	enum vnet_datagram_watch what, uint32_t index)
{
	struct epoll_event ev = {.events = events, .data.u64 = (uint64_t)what << 32 | index};

	if (epoll_ctl(d->epoll, EPOLL_CTL_ADD, fd, &ev) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	return epoll_ctl(d->epoll, EPOLL_CTL_MOD, fd, &ev) < 0 ? -errno : 0;
}

void vnet_datagram_unwatch(struct vnet_datagram *d, int fd)
{
	epoll_ctl(d->epoll, EPOLL_CTL_DEL, fd, NULL);
}

void vnet_datagram_tick(struct vnet_datagram *d)
{
	const struct itimerspec every = {.it_interval.tv_sec = 5, .it_value.tv_sec = 5};

	if (d->ticking)
		return;
	d->ticking = true;
	timerfd_settime(d->timer, 0, &every, NULL);
}

int vnet_datagram_watch_mapping(struct vnet_datagram *d, struct vnet_mapping *m)
{
	return vnet_datagram_watch(
		d, m->fd, EPOLLIN, VNET_DATAGRAM_MAPPING, vnet_mappings_index(d->mappings, m));
}

void vnet_datagram_close(struct vnet_datagram *d, struct vnet_mapping *m)
{
	const int fd = m->fd;

	if (d->run.mapping == m)
		d->run.mapping = NULL;
	if (m->published)
		vnet_shown_forget(d->shown, vnet_mappings_index(d->mappings, m));
	vnet_datagram_unwatch(d, fd);
	vnet_mappings_remove(d->mappings, m);
	close(fd);
}

static int open_socket(struct vnet_mapping *m)
{
	return m->kind == VNET_MAPPING_ECHO ? vnet_outside_ping(m->inside.family)
					    : vnet_outside_udp(&m->outside);
}

/* Makes room by what was unused for longest. */
static bool give_up_one(struct vnet_datagram *d, uint32_t session)
{
	struct vnet_mapping *m = vnet_mappings_oldest(d->mappings, session);

	if (m)
		vnet_datagram_close(d, m);
	return m;
}

static int open_mapping(
	struct vnet_datagram *d, struct vnet_mapping *want, struct vnet_mapping **ret)
{
	struct vnet_mapping *m;
	int r;

	want->fd = open_socket(want);
	if ((want->fd == -EMFILE || want->fd == -ENFILE) && give_up_one(d, want->session))
		want->fd = open_socket(want);
	if (want->fd < 0)
		return want->fd;
	m = vnet_mappings_add(d->mappings, want);
	if (!m && give_up_one(d, want->session))
		m = vnet_mappings_add(d->mappings, want);
	if (!m) {
		close(want->fd);
		return -ENOBUFS;
	}
	r = vnet_datagram_watch_mapping(d, m);
	if (r < 0) {
		vnet_datagram_close(d, m);
		return r;
	}
	*ret = m;
	vnet_datagram_tick(d);
	return 0;
}

int vnet_datagram_mapping(
	struct vnet_datagram *d, const struct vnet_mapping *want, const struct vnet_endpoint *to,
	struct vnet_mapping **ret)
{
	const uint64_t now = vnet_datagram_now();
	struct vnet_mapping m = *want;

	*ret = vnet_mappings_find(d->mappings, m.session, m.kind, &m.inside);
	while (*ret && (*ret)->published && vnet_endpoint_is_loopback(&(*ret)->outside) &&
		!vnet_endpoint_is_loopback(to))
		*ret = vnet_mappings_find_next(d->mappings, *ret);
	if (*ret) {
		(*ret)->used_ms = now;
		return 0;
	}
	m.used_ms = now;
	return open_mapping(d, &m, ret);
}

uint8_t vnet_datagram_ttl(const struct vnet_packet *p)
{
	const uint8_t left = p->version == 4 ? p->data[8] : p->data[7];

	return left > 1 ? left - 1 : 1;
}

struct vnet_endpoint vnet_datagram_gateway(const struct vnet_datagram_session *s, int family)
{
	return family == AF_INET ? vnet_endpoint_v4(s->gateway4, 0)
				 : vnet_endpoint_v6(&s->gateway6, 0);
}

/* The address by which the session reaches the host's loopback; false if it has none. */
static bool loopback_of(
	const struct vnet_datagram_session *s, int family, struct vnet_endpoint *ret)
{
	*ret = family == AF_INET ? vnet_endpoint_v4(s->loopback4, 0)
				 : vnet_endpoint_v6(&s->loopback6, 0);
	return family == AF_INET ? s->loopback4.s_addr : !IN6_IS_ADDR_UNSPECIFIED(&s->loopback6);
}

static bool may_reach(const struct vnet_datagram_session *s, const struct vnet_endpoint *to)
{
	if (!vnet_endpoint_is_unicast(to) || vnet_endpoint_is_loopback(to) ||
		(vnet_endpoint_is_of_host(to) && !s->link_local))
		return false;
	if (to->family == AF_INET)
		return ntohl(to->v4.s_addr) >> 24 != 0;
	return !IN6_IS_ADDR_V4MAPPED(&to->v6) && !IN6_IS_ADDR_V4COMPAT(&to->v6) &&
	       !IN6_IS_ADDR_LINKLOCAL(&to->v6);
}

int vnet_datagram_outside_of(const struct vnet_datagram_session *s, const struct vnet_endpoint *to,
	struct vnet_endpoint *ret)
{
	const struct vnet_endpoint gateway = vnet_datagram_gateway(s, to->family);
	struct vnet_endpoint loopback;

	*ret = *to;
	if (loopback_of(s, to->family, &loopback) && vnet_endpoint_same_address(to, &loopback)) {
		if (to->family == AF_INET)
			ret->v4.s_addr = htonl(INADDR_LOOPBACK);
		else
			ret->v6 = in6addr_loopback;
		return 0;
	}
	if (vnet_endpoint_same_address(to, &gateway))
		return -ECONNREFUSED;
	return may_reach(s, to) ? 0 : -EPERM;
}

bool vnet_datagram_inside_of(const struct vnet_datagram_session *s,
	const struct vnet_endpoint *from, struct vnet_endpoint *ret)
{
	const struct vnet_endpoint own = from->family == AF_INET
						 ? vnet_endpoint_v4(s->address4, 0)
						 : vnet_endpoint_v6(&s->address6, 0);
	const struct vnet_endpoint gateway = vnet_datagram_gateway(s, from->family);

	*ret = *from;
	if (vnet_endpoint_is_loopback(from)) {
		if (!loopback_of(s, from->family, ret))
			return false;
		ret->port = from->port;
		return true;
	}
	/* Somebody outside who has the session's or its gateway's own address. */
	return may_reach(s, from) && !vnet_endpoint_same_address(from, &own) &&
	       !vnet_endpoint_same_address(from, &gateway);
}

struct vnet_packet vnet_datagram_packet(struct vnet_datagram *d)
{
	return (struct vnet_packet){.data = d->out, .room = VNET_DATAGRAM_BUFFER};
}
