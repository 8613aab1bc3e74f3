// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A published TCP port is one socket outside, bound as long as it is published.  It listens while
 * the session does: a client then sees what it would see of a program on the host itself, refused
 * included.  A listener is made to listen no more by shutdown(2), after which it keeps its port,
 * for itself alone (SO_REUSEADDR off): else any user of the host could listen there meanwhile.
 *
 * A session that is to take the place of another (resume --replace) is attached, frozen, while that
 * runs: ports of both wait until the other has let go of them.
 *
 * Whether the session listens is asked again and again (listening.h), at first after FIRST_NS,
 * then twice as rarely each time until EVERY_NS, and only while a session with published ports
 * runs.  It is also asked when the session sends data and a port of it is closed: that may be what
 * tells a client where to connect to, as FTP does.  Who sends much costs no more than others: that
 * is done once in SAID_NS on average, and as often as it is wanted for a short time (BURST_NS).
 */
#include "vnet/gateway/publish.h"

#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "vnet/gateway/datagram.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/inbound.h"
#include "vnet/gateway/listening.h"
#include "vnet/vnat.h"

#define FIRST_NS 20000000ull
#define EVERY_NS 1000000000ull
#define SAID_NS	 5000000ull
#define BURST_NS 250000000ull
#define BACKLOG	 1024
#define ACCEPTS	 64 /* in one turn */

struct port_watch {
	struct gateway_watch watch;
	struct gateway_rest rest;
	struct vnet_gateway *g;
};

struct gateway_publisher {
	struct vnet_gateway *g;
	struct gateway_timer look;
	uint64_t pause;
	struct {
		bool closed;	/* a port of it may be one at which it does not listen */
		uint64_t asked; /* when all that was asked would have been, at SAID_NS each */
	} sessions[GATEWAY_MAX_SESSIONS];
	struct port_watch watches[GATEWAY_MAX_SESSIONS][VNET_MAX_PORTS];
};

static struct gateway_published *port_at(struct vnet_gateway *g, uint32_t session, size_t i)
{
	return &g->arena->sessions[session].ports[i];
}

/* ---- clients ----------------------------------------------------------------------------- */

static void on_client(struct gateway_watch *w, uint32_t events)
{
	struct port_watch *pw = gateway_container(w, struct port_watch, watch);
	struct vnet_gateway *g = pw->g;
	size_t at = (size_t)(pw - &g->publisher->watches[0][0]);
	uint32_t session = (uint32_t)(at / VNET_MAX_PORTS);
	const struct gateway_published *p = port_at(g, session, at % VNET_MAX_PORTS);

	for (int i = 0; i < ACCEPTS && p->used && p->listening; i++) {
		struct sockaddr_storage sa;
		socklen_t len = sizeof(sa);
		struct vnet_endpoint client;
		int fd = accept4(p->fd, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			gateway_loop_rest(g->loop, &pw->rest, p->fd, w, errno);
			return;
		}
		if (vnet_endpoint_from_sockaddr(&sa, len, &client) < 0)
			close(fd);
		else
			gateway_inbound_client(g, session, p->port.session, fd, &client);
	}
}

bool gateway_publish_adopt(struct vnet_gateway *g, int fd)
{
	struct sockaddr_storage sa, peer;
	socklen_t len = sizeof(sa), peer_len = sizeof(peer);
	struct vnet_endpoint own, client;

	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0 ||
		getpeername(fd, (struct sockaddr *)&peer, &peer_len) < 0 ||
		vnet_endpoint_from_sockaddr(&sa, len, &own) < 0 ||
		vnet_endpoint_from_sockaddr(&peer, peer_len, &client) < 0)
		return false;
	for (uint32_t s = 0; s < GATEWAY_MAX_SESSIONS; s++)
		for (size_t i = 0; i < VNET_MAX_PORTS; i++) {
			const struct gateway_published *p = port_at(g, s, i);

			if (g->arena->sessions[s].state != GATEWAY_SESSION_ATTACHED || !p->used ||
				p->fd < 0 || p->port.outside != own.port)
				continue;
			gateway_inbound_client(g, s, p->port.session, fd, &client);
			return true;
		}
	return false;
}

/* ---- listening --------------------------------------------------------------------------- */

/*
 * With it we may listen again while connections of before are open; without it nobody else may be
 * bound to the port while we are, but do not listen.
 */
static void set_reuse(int fd, int on)
{
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

static void stand_by(int fd)
{
	shutdown(fd, SHUT_RDWR);
	set_reuse(fd, 0);
}

static int begin_listening(struct vnet_gateway *g, uint32_t session, size_t i)
{
	struct gateway_published *p = port_at(g, session, i);
	struct port_watch *w = &g->publisher->watches[session][i];

	set_reuse(p->fd, 1);
	if (listen(p->fd, BACKLOG) < 0) {
		int r = -errno;

		set_reuse(p->fd, 0);
		return r;
	}
	p->listening = true;
	w->g = g;
	w->watch.ready = on_client;
	return gateway_loop_add(g->loop, p->fd, EPOLLIN, &w->watch);
}

static void unwatch(struct vnet_gateway *g, uint32_t session, const struct gateway_published *p)
{
	size_t i = (size_t)(p - g->arena->sessions[session].ports);

	gateway_loop_rest_clear(g->loop, &g->publisher->watches[session][i].rest);
	gateway_loop_remove(g->loop, p->fd);
}

static void stop_listening(struct vnet_gateway *g, uint32_t session, struct gateway_published *p)
{
	unwatch(g, session, p);
	p->listening = false;
	stand_by(p->fd);
}

/* True if the session is one to be looked at. */
static bool look_at(struct vnet_gateway *g, uint32_t session)
{
	const struct gateway_session *s = &g->arena->sessions[session];
	uint8_t listens[GATEWAY_PORT_BYTES];
	bool any = false, closed = false;

	for (size_t i = 0; i < VNET_MAX_PORTS; i++)
		any |= s->ports[i].used && s->ports[i].port.protocol == IPPROTO_TCP;
	if (!any || s->state != GATEWAY_SESSION_ATTACHED || s->diag < 0) {
		g->publisher->sessions[session].closed = false;
		return false;
	}
	/* While it is frozen it listens as it did. */
	if (s->held || gateway_listening_ports(s, listens) < 0)
		return true;
	for (size_t i = 0; i < VNET_MAX_PORTS; i++) {
		struct gateway_published *p = port_at(g, session, i);
		bool now = listens[p->port.session / 8] & (1u << (p->port.session % 8));

		closed |= p->used && p->port.protocol == IPPROTO_TCP && !now;
		if (!p->used || p->fd < 0 || now == p->listening)
			continue;
		if (!now)
			stop_listening(g, session, p);
		else if (begin_listening(g, session, i) < 0)
			log_warn("%s: port %u outside is another's now", s->name, p->port.outside);
	}
	g->publisher->sessions[session].closed = closed;
	return true;
}

void gateway_publish_said(struct vnet_gateway *g, uint32_t session)
{
	uint64_t now = gateway_loop_now(g->loop), *asked = &g->publisher->sessions[session].asked;

	if (!g->publisher->sessions[session].closed || *asked > now + BURST_NS)
		return;
	*asked = MAX(*asked, now) + SAID_NS;
	look_at(g, session);
}

static void on_look(struct gateway_timer *t)
{
	struct gateway_publisher *pub = gateway_container(t, struct gateway_publisher, look);
	bool any = false;

	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		any |= look_at(pub->g, i);
	if (!any)
		return;
	gateway_loop_timer(pub->g->loop, t, pub->pause);
	pub->pause = MIN(2 * pub->pause, EVERY_NS);
}

void gateway_publish_expect(struct vnet_gateway *g)
{
	g->publisher->pause = FIRST_NS;
	gateway_loop_timer(g->loop, &g->publisher->look, 0);
}

/* ---- ports ------------------------------------------------------------------------------- */

static bool same_port(const struct vnet_port *a, const struct vnet_port *b)
{
	return a->protocol == b->protocol && a->family == b->family && a->outside == b->outside &&
	       a->session == b->session &&
	       memcmp(&a->address, &b->address, sizeof(a->address)) == 0;
}

static int explain(const struct vnet_port *p, int error, struct err *e)
{
	struct vnet_endpoint at = {.family = p->family};
	char text[VNET_ENDPOINT_TEXT];

	if (error == -EADDRINUSE)
		return err_set(e, ERR_FAILED, error, "port %u of this host is in use", p->outside);
	if (error == -EADDRNOTAVAIL) {
		memcpy(&at.v6, &p->address, sizeof(at.v6));
		return err_set(e, ERR_FAILED, error,
			"this host does not have %s, the address to publish at",
			vnet_endpoint_format(&at, text));
	}
	err_errno(e, error, "cannot publish port %u", p->outside);
	if (error == -EACCES && p->outside < 1024)
		err_hint(e, "a port below 1024 needs sysctl net.ipv4.ip_unprivileged_port_start=%u",
			p->outside);
	return error;
}

/* Bound; it has listened once, which fails if somebody else does there. */
static int bound_socket(const struct vnet_port *p, bool v6)
{
	struct vnet_endpoint at = {.family = p->family ? p->family
					     : v6      ? AF_INET6
						       : AF_INET,
		.port = p->outside};
	const int only = p->family == AF_INET6, inline_too = 1; /* as pump.c wants it */
	_cleanup_close_ int fd = socket(at.family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_storage sa;
	socklen_t len;

	if (fd < 0)
		return -errno;
	if (p->family == AF_INET)
		memcpy(&at.v4, &p->address, sizeof(at.v4));
	else if (p->family == AF_INET6)
		at.v6 = p->address;
	len = vnet_endpoint_to_sockaddr(&at, &sa);
	set_reuse(fd, 1);
	setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &inline_too, sizeof(inline_too));
	if (at.family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only));
	if (bind(fd, (struct sockaddr *)&sa, len) < 0 || listen(fd, BACKLOG) < 0)
		return -errno;
	return take_fd(&fd);
}

/* Where it is, or where there is room for it; -1. */
static int find_place(struct vnet_gateway *g, uint32_t session, const struct vnet_port *p)
{
	int free = -1;

	for (int i = VNET_MAX_PORTS - 1; i >= 0; i--) {
		const struct gateway_published *one = port_at(g, session, (size_t)i);

		if (one->used && same_port(&one->port, p))
			return i;
		if (!one->used)
			free = i;
	}
	return free;
}

/* The session that has the same address and port outside, or an overlapping one; NULL. */
static const struct gateway_session *whose(
	struct vnet_gateway *g, uint32_t session, const struct vnet_port *p)
{
	for (uint32_t s = 0; s < GATEWAY_MAX_SESSIONS; s++)
		for (size_t i = 0; i < VNET_MAX_PORTS; i++) {
			const struct gateway_published *one = port_at(g, s, i);
			const struct vnet_port *other = &one->port;

			if (g->arena->sessions[s].state == GATEWAY_SESSION_FREE || !one->used ||
				one->waits || s == session || other->protocol != p->protocol ||
				other->outside != p->outside)
				continue;
			if (!other->family || !p->family ||
				(other->family == p->family &&
					!memcmp(&other->address, &p->address, sizeof(p->address))))
				return &g->arena->sessions[s];
		}
	return NULL;
}

static int open_port(struct vnet_gateway *g, uint32_t session, size_t i,
	const struct vnet_port *p, struct err *e)
{
	int fd = p->protocol == IPPROTO_UDP ? gateway_datagram_publish(g, session, p)
					    : bound_socket(p, g->arena->v6);

	if (fd < 0)
		return explain(p, fd, e);
	*port_at(g, session, i) = (struct gateway_published){
		.port = *p, .fd = p->protocol == IPPROTO_UDP ? -1 : fd, .used = true};
	if (p->protocol == IPPROTO_UDP)
		return 0;
	if (g->arena->sessions[session].diag >= 0)
		stand_by(fd);
	else
		begin_listening(g, session, i);
	gateway_publish_expect(g);
	return 0;
}

int gateway_publish_add(struct vnet_gateway *g, uint32_t session, const struct vnet_port *p,
	const char *replaces, struct err *e)
{
	const struct gateway_session *other;
	int i = find_place(g, session, p);
	struct gateway_published *slot;

	if (i < 0)
		return err_set(e, ERR_USAGE, -E2BIG, "more than %d ports", VNET_MAX_PORTS);
	slot = port_at(g, session, (size_t)i);
	if (slot->used)
		return 0;
	other = whose(g, session, p);
	if (!other)
		return open_port(g, session, (size_t)i, p, e);
	if (!replaces || !replaces[0] || strcmp(other->id, replaces) != 0)
		return err_set(e, ERR_FAILED, -EADDRINUSE,
			"port %u of this host is published by '%s'", p->outside, other->name);
	*slot = (struct gateway_published){.port = *p, .fd = -1, .used = true, .waits = true};
	return 0;
}

static void remove_one(struct vnet_gateway *g, uint32_t session, struct gateway_published *p)
{
	int fd = p->fd;

	if (p->waits)
		;
	else if (p->port.protocol == IPPROTO_UDP)
		gateway_datagram_unpublish(g, session, &p->port);
	else
		unwatch(g, session, p);
	p->used = p->listening = p->waits = false;
	close_fd(fd);
}

/* Somebody has let go of ports. */
static void hand_over(struct vnet_gateway *g)
{
	for (uint32_t s = 0; s < GATEWAY_MAX_SESSIONS; s++)
		for (size_t i = 0; i < VNET_MAX_PORTS; i++) {
			const struct gateway_published *p = port_at(g, s, i);
			struct vnet_port port = p->port;
			struct err e = {0};

			if (!p->used || !p->waits || whose(g, s, &port))
				continue;
			remove_one(g, s, port_at(g, s, i));
			if (open_port(g, s, i, &port, &e) < 0)
				log_warn("%s: %s", g->arena->sessions[s].name, e.msg);
		}
}

int gateway_publish_remove(
	struct vnet_gateway *g, uint32_t session, const struct vnet_port *p, struct err *e)
{
	for (size_t i = 0; i < VNET_MAX_PORTS; i++) {
		struct gateway_published *one = port_at(g, session, i);

		if (!one->used || !same_port(&one->port, p))
			continue;
		remove_one(g, session, one);
		hand_over(g);
		return 0;
	}
	return err_set(e, ERR_NOT_FOUND, -ENOENT, "port %u is not published", p->outside);
}

void gateway_publish_remove_all(struct vnet_gateway *g, uint32_t session)
{
	for (size_t i = 0; i < VNET_MAX_PORTS; i++)
		if (port_at(g, session, i)->used)
			remove_one(g, session, port_at(g, session, i));
	hand_over(g);
}

int gateway_publish_start(struct vnet_gateway *g, struct err *e)
{
	g->publisher = calloc(1, sizeof(*g->publisher));
	if (!g->publisher)
		return err_errno(e, -ENOMEM, "gateway");
	g->publisher->g = g;
	g->publisher->look.fire = on_look;
	for (uint32_t s = 0; s < GATEWAY_MAX_SESSIONS; s++)
		for (size_t i = 0; i < VNET_MAX_PORTS; i++)
			if (g->arena->sessions[s].state == GATEWAY_SESSION_ATTACHED &&
				port_at(g, s, i)->used && port_at(g, s, i)->listening)
				begin_listening(g, s, i);
	gateway_publish_expect(g);
	return 0;
}
