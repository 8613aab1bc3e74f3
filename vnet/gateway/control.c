// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A request is looked at, done, answered, and only then taken out of the socket (vnet/message.c),
 * so a worker that is killed in between leaves it to the next one.  Each row of the table below
 * does what doing it twice does not change; the client ignores a second answer.
 *
 * A connection that attached a session is that session's life: at its end the session's connections
 * are reset.
 */
#include "vnet/gateway/control.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/base.h"
#include "proto/gateway.pb-c.h"
#include "vnet/endpoint.h"
#include "vnet/gateway/capture.h"
#include "vnet/gateway/dynamic.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/publish.h"
#include "vnet/gateway/redo.h"
#include "vnet/gateway/session.h"
#include "vnet/gateway/veth.h"
#include "vnet/gateway/wire.h"
#include "vnet/message.h"
#include "vnet/ondemand.h"

#define MAX_UNSENT (32 << 20) /* more than any socket holds */

struct conn_watch {
	struct gateway_watch watch;
	struct vnet_gateway *g;
};

struct gateway_control {
	struct gateway_rest rest;
	struct conn_watch listener, conns[GATEWAY_MAX_CONNS];
};

/* One request on its way. */
struct request {
	struct vnet_gateway *g;
	int index; /* of the connection */
	struct gateway_conn *conn;
	const Pb__GatewayRequest *m;
	int fds[VNET_MESSAGE_MAX_FDS];
	size_t n_fds;
};

/* Nobody is connected, attached or away: the process has no purpose any more. */
static void maybe_end(struct vnet_gateway *g)
{
	if (gateway_session_any(g) || gateway_dynamic_any(g))
		return;
	for (int i = 0; i < GATEWAY_MAX_CONNS; i++)
		if (g->arena->conns[i].used)
			return;
	if (vnet_ondemand_retire(g->arena->directory, g->arena->listener))
		gateway_loop_stop(g->loop);
}

static void close_conn(struct vnet_gateway *g, int index)
{
	struct gateway_conn *c = &g->arena->conns[index];
	int fd = c->fd;

	if (c->session >= 0)
		gateway_session_lose(g, (uint32_t)c->session);
	c->session = -1;
	gateway_capture_forget(g, index);
	gateway_loop_remove(g->loop, fd);
	c->used = false;
	close(fd);
	maybe_end(g);
}

/* ---- answers ----------------------------------------------------------------------------- */

static void reply(struct request *r, Pb__GatewayReply *m)
{
	struct err e = {0};

	m->serial = r->m->serial;
	if (vnet_message_send(r->conn->fd, &m->base, NULL, 0, &e) < 0)
		shutdown(r->conn->fd, SHUT_RDWR);
}

static void reply_failure(struct request *r, const struct err *e)
{
	Pb__GatewayReply m = PB__GATEWAY_REPLY__INIT;
	Pb__GatewayFailure f = PB__GATEWAY_FAILURE__INIT;

	f.err_class = e->class ? e->class : ERR_FAILED;
	f.error = e->error ? e->error : -EIO;
	f.msg = (char *)e->msg;
	f.hint = (char *)e->hint;
	m.body_case = PB__GATEWAY_REPLY__BODY_FAILURE;
	m.failure = &f;
	reply(r, &m);
}

static int reply_done(struct request *r)
{
	Pb__GatewayReply m = PB__GATEWAY_REPLY__INIT;
	Pb__GatewayNothing nothing = PB__GATEWAY_NOTHING__INIT;

	m.body_case = PB__GATEWAY_REPLY__BODY_DONE;
	m.done = &nothing;
	reply(r, &m);
	return 0;
}

static int reply_flows(struct request *r, uint32_t n)
{
	Pb__GatewayReply m = PB__GATEWAY_REPLY__INIT;
	Pb__GatewayFlows flows = PB__GATEWAY_FLOWS__INIT;

	flows.flows = n;
	m.body_case = PB__GATEWAY_REPLY__BODY_FLOWS;
	m.flows = &flows;
	reply(r, &m);
	return 0;
}

static Pb__GatewayClaim claim_message(const struct vnet_claim *c)
{
	Pb__GatewayClaim m = PB__GATEWAY_CLAIM__INIT;

	m.label = c->label;
	m.epoch = c->epoch;
	m.ticket = (ProtobufCBinaryData){sizeof(c->ticket), (uint8_t *)c->ticket};
	m.gateway = (ProtobufCBinaryData){sizeof(c->gateway), (uint8_t *)c->gateway};
	return m;
}

/* ---- what requests say ------------------------------------------------------------------- */

static bool take_bytes(void *ret, size_t n, ProtobufCBinaryData from)
{
	if (from.len && from.len != n)
		return false;
	if (from.len)
		memcpy(ret, from.data, n);
	return true;
}

static int take_port(struct vnet_port *ret, const Pb__GatewayPort *m, struct err *e)
{
	struct vnet_port p = {.protocol = (uint8_t)m->protocol};

	if ((m->protocol != IPPROTO_TCP && m->protocol != IPPROTO_UDP) || !m->outside ||
		m->outside > UINT16_MAX || !m->session || m->session > UINT16_MAX ||
		(m->address.len != 0 && m->address.len != 4 && m->address.len != 16))
		return err_set(e, ERR_USAGE, -EINVAL, "no such port");
	if (m->address.len) {
		p.family = m->address.len == 4 ? AF_INET : AF_INET6;
		memcpy(&p.address, m->address.data, m->address.len);
	}
	p.outside = (uint16_t)m->outside;
	p.session = (uint16_t)m->session;
	*ret = p;
	return 0;
}

static bool take_claim(struct vnet_claim *ret, const Pb__GatewayClaim *m)
{
	if (!m)
		return true;
	ret->label = m->label;
	ret->epoch = m->epoch;
	return m->ticket.len == sizeof(ret->ticket) && m->gateway.len == sizeof(ret->gateway) &&
	       take_bytes(ret->ticket, sizeof(ret->ticket), m->ticket) &&
	       take_bytes(ret->gateway, sizeof(ret->gateway), m->gateway);
}

static int take_attach(struct vnet_attach *ret, const Pb__GatewayAttach *m, struct err *e)
{
	struct vnet_attach a = {.name = m->name,
		.id = m->id,
		.mtu = m->mtu,
		.link_local = m->link_local,
		.wires = m->wires,
		.frozen = m->frozen,
		.arriving = m->arriving};

	if (!take_bytes(&a.address4, 4, m->address4) || !take_bytes(&a.gateway4, 4, m->gateway4) ||
		!take_bytes(&a.loopback4, 4, m->loopback4) ||
		!take_bytes(&a.address6, 16, m->address6) ||
		!take_bytes(&a.gateway6, 16, m->gateway6) ||
		!take_bytes(&a.loopback6, 16, m->loopback6) || !take_claim(&a.claim, m->claim) ||
		m->n_ports > VNET_MAX_PORTS || a.mtu < 1280 || a.mtu > 65535 || !m->name[0] ||
		strlen(m->name) >= 64 || strlen(m->id) >= 64)
		return err_set(e, ERR_FAILED, -EINVAL, "a request to the gateway makes no sense");
	if (strlen(m->remote) >= GATEWAY_REMOTE_MAX)
		return err_set(e, ERR_USAGE, -ENAMETOOLONG, "the gateway's name is too long");
	if (strlen(m->dns_update) >= GATEWAY_UPDATE_MAX)
		return err_set(e, ERR_USAGE, -ENAMETOOLONG, "--dns-update is too long");
	a.remote = m->remote;
	a.dns_update = m->dns_update;
	for (size_t i = 0; i < m->n_ports; i++)
		if (take_port(&a.ports[i], m->ports[i], e) < 0)
			return e->error;
	a.n_ports = m->n_ports;
	a.max_flows = m->max_flows;
	a.replaces = m->replaces;
	*ret = a;
	return 0;
}

/* ---- requests ---------------------------------------------------------------------------- */

static ProtobufCBinaryData bytes_of(const void *p, size_t n)
{
	static const uint8_t none[16];

	return (ProtobufCBinaryData){memcmp(p, none, n) ? n : 0, (uint8_t *)p};
}

static int reply_attached(struct request *r, uint32_t session, bool lost, uint32_t flows)
{
	Pb__GatewayClaim claim = claim_message(&r->g->arena->sessions[session].claim);
	Pb__GatewayReply m = PB__GATEWAY_REPLY__INIT;
	Pb__GatewayAttached attached = PB__GATEWAY_ATTACHED__INIT;

	struct in_addr own4 = {0};
	struct in6_addr own6 = in6addr_any;

	/* Behind a tunnel the outside sees its server. */
	if (!r->g->arena->sessions[session].remote[0])
		gateway_dynamic_own(&own4, &own6);
	attached.outside4 = bytes_of(&own4, sizeof(own4));
	attached.outside6 = bytes_of(&own6, sizeof(own6));
	attached.claim = &claim;
	attached.lost = lost;
	attached.flows = flows;
	m.body_case = PB__GATEWAY_REPLY__BODY_ATTACHED;
	m.attached = &attached;
	reply(r, &m);
	return 0;
}

static int attach(struct request *r, struct err *e)
{
	struct gateway_session_wish w = {.conn = r->index, .diag = -1};
	int index, left;
	uint32_t flows;
	bool lost;

	/* Once more after a worker was killed: it is attached already. */
	if (r->conn->session >= 0 && r->conn->attached_by == r->m->serial) {
		index = r->conn->session;
		return reply_attached(r, (uint32_t)index, r->conn->lost, r->conn->kept);
	}
	if (r->conn->session >= 0)
		return err_set(e, ERR_STATE, -EBUSY, "a session is attached already");
	if (take_attach(&w.attach, r->m->attach, e) < 0)
		return e->error;
	if (r->n_fds < 1 || r->n_fds > 2)
		return err_set(e, ERR_FAILED, -EINVAL, "a session's TUN is missing");
	w.tun = r->fds[0];
	w.diag = r->n_fds > 1 ? r->fds[1] : -1;
	r->conn->attached_by = r->m->serial;
	while ((left = gateway_session_in_vain(r->g, w.attach.id)) >= 0)
		close_conn(r->g, left);
	left = gateway_session_leave(r->g, &w.attach.claim);
	if (left >= 0) {
		r->g->arena->conns[left].session = -1;
		close_conn(r->g, left);
	}
	index = gateway_session_attach(r->g, &w, &lost, &flows, e);
	if (index < 0)
		return index;
	r->n_fds = 0;
	r->conn->lost = lost;
	r->conn->kept = flows;
	return reply_attached(r, (uint32_t)index, lost, flows);
}

static int hold(struct request *r, struct err *e)
{
	return reply_flows(r, gateway_session_hold(r->g, (uint32_t)r->conn->session));
}

static int go(struct request *r, struct err *e)
{
	gateway_session_go(r->g, (uint32_t)r->conn->session);
	return reply_done(r);
}

static int detach(struct request *r, struct err *e)
{
	uint32_t session = (uint32_t)r->conn->session;
	uint32_t n = 0;

	r->conn->kept = gateway_session_connections(r->g, session);
	r->conn->detached_by = r->m->serial;
	if (r->m->detach->finish)
		gateway_session_lose(r->g, session);
	else
		n = gateway_session_detach(r->g, session, r->m->detach->suspended);
	r->conn->session = -1;
	return reply_flows(r, n);
}

static int forget(struct request *r, struct err *e)
{
	struct vnet_claim c = {0};

	if (!take_claim(&c, r->m->forget))
		return err_set(e, ERR_FAILED, -EINVAL, "a request to the gateway makes no sense");
	return reply_flows(r, gateway_session_forget(r->g, &c));
}

static int publish(struct request *r, struct err *e)
{
	struct vnet_port p;

	if (take_port(&p, r->m->publish, e) < 0 ||
		gateway_publish_add(r->g, (uint32_t)r->conn->session, &p, NULL, e) < 0)
		return e->error;
	return reply_done(r);
}

static int unpublish(struct request *r, struct err *e)
{
	struct vnet_port p;

	if (take_port(&p, r->m->unpublish, e) < 0 ||
		gateway_publish_remove(r->g, (uint32_t)r->conn->session, &p, e) < 0)
		return e->error;
	return reply_done(r);
}

static int rename_session(struct request *r, struct err *e)
{
	struct gateway_session *s = &r->g->arena->sessions[r->conn->session];
	const char *name = r->m->rename->name;

	if (!name[0] || strlen(name) >= sizeof(s->name))
		return err_set(e, ERR_FAILED, -EINVAL, "a request to the gateway makes no sense");
	snprintf(s->name, sizeof(s->name), "%s", name);
	return reply_done(r);
}

/* A session and its ports as a message. */
struct session_message {
	Pb__GatewaySession m;
	Pb__GatewayPort ports[VNET_MAX_PORTS], *pointers[VNET_MAX_PORTS];
	protobuf_c_boolean listening[VNET_MAX_PORTS];
};

static void list_ports(struct session_message *ret, const struct gateway_session *s)
{
	size_t n = 0;

	for (size_t i = 0; i < VNET_MAX_PORTS; i++) {
		const struct vnet_port *p = &s->ports[i].port;

		if (!s->ports[i].used)
			continue;
		pb__gateway_port__init(&ret->ports[n]);
		ret->ports[n].protocol = p->protocol;
		ret->ports[n].outside = p->outside;
		ret->ports[n].session = p->session;
		if (p->family)
			ret->ports[n].address = (ProtobufCBinaryData){
				p->family == AF_INET ? 4 : 16, (uint8_t *)&p->address};
		/* One of UDP is open as long as it is published. */
		ret->listening[n] = s->ports[i].listening ||
				     (p->protocol == IPPROTO_UDP && !s->ports[i].waits);
		ret->pointers[n] = &ret->ports[n];
		n++;
	}
	ret->m.ports = ret->pointers;
	ret->m.listening = ret->listening;
	ret->m.n_ports = ret->m.n_listening = n;
}

static void list_session(struct session_message *ret, struct vnet_gateway *g, uint32_t index)
{
	const struct gateway_session *s = &g->arena->sessions[index];

	gateway_veth_count(g, index);
	pb__gateway_session__init(&ret->m);
	ret->m.name = (char *)s->name;
	ret->m.id = (char *)s->id;
	ret->m.label = s->claim.label;
	ret->m.epoch = s->claim.epoch;
	ret->m.suspended = s->state == GATEWAY_SESSION_SUSPENDED;
	ret->m.held = s->held;
	ret->m.address4 = bytes_of(&s->address4, 4);
	ret->m.address6 = bytes_of(&s->address6, 16);
	ret->m.mtu = s->mtu;
	ret->m.flows = gateway_session_connections(g, index);
	ret->m.tunnel = s->tunnel;
	ret->m.fast = gateway_veth_flows(g, index);
	ret->m.from_packets = s->counts.from_packets;
	ret->m.from_bytes = s->counts.from_bytes;
	ret->m.to_packets = s->counts.to_packets;
	ret->m.to_bytes = s->counts.to_bytes;
	ret->m.dropped = s->counts.dropped;
	ret->m.refused = s->counts.refused;
	ret->m.opened = s->counts.opened;
	list_ports(ret, s);
}

static int list(struct request *r, struct err *e)
{
	_cleanup_free_ struct session_message *all = calloc(GATEWAY_MAX_SESSIONS, sizeof(*all));
	Pb__GatewaySession *pointers[GATEWAY_MAX_SESSIONS];
	Pb__GatewayReply m = PB__GATEWAY_REPLY__INIT;
	Pb__GatewaySessions sessions = PB__GATEWAY_SESSIONS__INIT;
	const struct gateway_arena *a = r->g->arena;
	const char *name = r->m->list->name;

	if (!all)
		return err_errno(e, -ENOMEM, "list of sessions");
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		if (a->sessions[i].state == GATEWAY_SESSION_FREE ||
			(name[0] && strcmp(name, a->sessions[i].name) != 0))
			continue;
		list_session(&all[sessions.n_sessions], r->g, i);
		pointers[sessions.n_sessions] = &all[sessions.n_sessions].m;
		sessions.n_sessions++;
	}
	if (name[0] && !sessions.n_sessions)
		return err_set(
			e, ERR_NOT_FOUND, -ENOENT, "'%s' is not attached to the gateway", name);
	sessions.sessions = pointers;
	sessions.restarts = a->restarts;
	sessions.worker = a->worker;
	sessions.keeper = a->keeper;
	sessions.flows_max = GATEWAY_MAX_FLOWS;
	m.body_case = PB__GATEWAY_REPLY__BODY_SESSIONS;
	m.sessions = &sessions;
	reply(r, &m);
	return 0;
}

static int wired(struct request *r, struct err *e)
{
	gateway_veth_made(r->g, (uint32_t)r->conn->session, r->m->wired->name[0]);
	return reply_done(r);
}

/* Of whoever carries a session's packets here, who waits for no answer. */
static int carrier(struct request *r, struct err *e)
{
	if (r->conn->session >= 0)
		r->g->arena->sessions[r->conn->session].tunnel = r->m->carrier->tunnel;
	return 0;
}

/* The same, where the session is held. */
static int unsent(struct request *r, struct err *e)
{
	_cleanup_free_ uint8_t *data = NULL;
	struct stat st;

	if (r->n_fds != 1 || fstat(r->fds[0], &st) < 0 || st.st_size < 0 || st.st_size > MAX_UNSENT)
		return err_set(e, ERR_FAILED, -EINVAL, "a request to the gateway makes no sense");
	data = malloc((size_t)st.st_size + 1);
	if (!data || io_pread_full(r->fds[0], data, (size_t)st.st_size, 0) != st.st_size)
		return err_set(e, ERR_FAILED, -EIO, "packets that can't be read");
	if (!gateway_wire_take_back(
		    r->g, (uint32_t)r->conn->session, data, (size_t)st.st_size))
		return err_set(e, ERR_FAILED, -EINVAL, "packets that make no sense");
	return 0;
}

static int redo(struct request *r, struct err *e)
{
	const Pb__GatewayRedo *m = r->m->redo;
	struct vnet_endpoint client = {.family = m->client.len == 4 ? AF_INET : AF_INET6,
		.port = (uint16_t)m->client_port};

	if (r->n_fds != 1 || (m->client.len != 4 && m->client.len != 16) ||
		m->client_port > UINT16_MAX || m->session_port > UINT16_MAX)
		return err_set(e, ERR_FAILED, -EINVAL, "a request to the gateway makes no sense");
	memcpy(&client.v6, m->client.data, m->client.len);
	if (gateway_redo_flow(r->g, (uint32_t)r->conn->session, &client, (uint16_t)m->session_port,
		    r->fds[0], e) < 0)
		return e->error;
	return reply_done(r);
}

static int take_capture(struct request *r, uint32_t session, struct err *e)
{
	r->n_fds = 0;
	return gateway_capture_begin(r->g, session, r->index, r->fds[0], r->fds[1], e);
}

static int capture(struct request *r, struct err *e)
{
	const Pb__GatewayCapture *m = r->m->capture;
	const struct gateway_arena *a = r->g->arena;
	uint32_t i = 0;

	while (i < GATEWAY_MAX_SESSIONS && (a->sessions[i].state == GATEWAY_SESSION_FREE ||
						   strcmp(a->sessions[i].name, m->name) != 0))
		i++;
	if (i == GATEWAY_MAX_SESSIONS)
		return err_set(e, ERR_NOT_FOUND, -ENOENT, "'%.64s' is not attached to the gateway",
			m->name);
	if (m->stop)
		gateway_capture_end(r->g, i, 0);
	else if (r->n_fds != 2)
		return err_set(e, ERR_FAILED, -EINVAL, "nothing to write a capture to");
	else if (take_capture(r, i, e) < 0)
		return e->error;
	else
		gateway_veth_end(r->g, i); /* what the kernel carries is not seen */
	return reply_done(r);
}

static const struct handler {
	int (*handle)(struct request *r, struct err *e);
	bool attached; /* only where a session is */
} handlers[] = {
	[PB__GATEWAY_REQUEST__BODY_ATTACH] = {attach, false},
	[PB__GATEWAY_REQUEST__BODY_HOLD] = {hold, true},
	[PB__GATEWAY_REQUEST__BODY_GO] = {go, true},
	[PB__GATEWAY_REQUEST__BODY_DETACH] = {detach, true},
	[PB__GATEWAY_REQUEST__BODY_PUBLISH] = {publish, true},
	[PB__GATEWAY_REQUEST__BODY_UNPUBLISH] = {unpublish, true},
	[PB__GATEWAY_REQUEST__BODY_RENAME] = {rename_session, true},
	[PB__GATEWAY_REQUEST__BODY_REDO] = {redo, true},
	[PB__GATEWAY_REQUEST__BODY_WIRED] = {wired, true},
	[PB__GATEWAY_REQUEST__BODY_CARRIER] = {carrier, false},
	[PB__GATEWAY_REQUEST__BODY_UNSENT] = {unsent, true},
	[PB__GATEWAY_REQUEST__BODY_LIST] = {list, false},
	[PB__GATEWAY_REQUEST__BODY_CAPTURE] = {capture, false},
	[PB__GATEWAY_REQUEST__BODY_FORGET] = {forget, false},
};

static void handle(struct request *r)
{
	unsigned which = (unsigned)r->m->body_case;
	const struct handler *h = which < ARRAY_SIZE(handlers) ? &handlers[which] : NULL;
	struct err e = {0};

	/* Done by a worker that could not say so any more. */
	if (which == PB__GATEWAY_REQUEST__BODY_DETACH && r->conn->session < 0 &&
		r->conn->detached_by == r->m->serial) {
		reply_flows(r, r->conn->kept);
		return;
	}
	if (!h || !h->handle)
		err_set(&e, ERR_FAILED, -ENOSYS, "the gateway does not know this request");
	else if (h->attached && r->conn->session < 0)
		err_set(&e, ERR_STATE, -ENOTCONN, "no session is attached");
	else
		h->handle(r, &e);
	if (err_is(&e))
		reply_failure(r, &e);
}

/* ---- connections ------------------------------------------------------------------------- */

static void on_request(struct gateway_watch *w, uint32_t events)
{
	struct conn_watch *cw = gateway_container(w, struct conn_watch, watch);
	struct vnet_gateway *g = cw->g;
	struct request r = {.g = g, .index = (int)(cw - g->control->conns)};
	ProtobufCMessage *m = NULL;
	struct err e = {0};
	int n;

	r.conn = &g->arena->conns[r.index];
	if (!r.conn->used)
		return;
	n = vnet_message_receive(
		r.conn->fd, true, &pb__gateway_request__descriptor, &m, r.fds, &r.n_fds, &e);
	if (n < 0)
		close_conn(g, r.index);
	if (n <= 0)
		return;
	r.m = (Pb__GatewayRequest *)m;
	handle(&r);
	while (r.n_fds)
		close_fd(r.fds[--r.n_fds]);
	protobuf_c_message_free_unpacked(m, NULL);
	vnet_message_consume(r.conn->fd);
}

static int watch_conn(struct vnet_gateway *g, int index)
{
	struct conn_watch *w = &g->control->conns[index];

	w->g = g;
	w->watch.ready = on_request;
	return gateway_loop_add(g->loop, g->arena->conns[index].fd, EPOLLIN, &w->watch);
}

/* @fd is taken. */
static void add_conn(struct vnet_gateway *g, int fd)
{
	for (int i = 0; i < GATEWAY_MAX_CONNS; i++) {
		struct gateway_conn *c = &g->arena->conns[i];

		if (c->used)
			continue;
		*c = (struct gateway_conn){.fd = fd, .session = -1};
		c->used = true;
		if (watch_conn(g, i) < 0)
			close_conn(g, i);
		return;
	}
	close(fd);
}

static void on_connection(struct gateway_watch *w, uint32_t events)
{
	struct vnet_gateway *g = gateway_container(w, struct conn_watch, watch)->g;
	int fd = accept4(g->arena->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd >= 0)
		add_conn(g, fd);
	else
		gateway_loop_rest(g->loop, &g->control->rest, g->arena->listener, w, errno);
}

bool gateway_control_adopt(struct vnet_gateway *g, int fd)
{
	int type = 0, domain = 0, listens = 1;
	socklen_t len = sizeof(int);

	getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len);
	getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len);
	getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len);
	if (domain != AF_UNIX || type != SOCK_SEQPACKET || listens)
		return false;
	add_conn(g, fd);
	return true;
}

int gateway_control_start(struct vnet_gateway *g, struct err *e)
{
	int r;

	g->control = calloc(1, sizeof(*g->control));
	if (!g->control)
		return err_errno(e, -ENOMEM, "control socket");
	g->maybe_end = maybe_end;
	g->control->listener = (struct conn_watch){{on_connection}, g};
	r = gateway_loop_add(g->loop, g->arena->listener, EPOLLIN, &g->control->listener.watch);
	for (int i = 0; r == 0 && i < GATEWAY_MAX_CONNS; i++)
		if (g->arena->conns[i].used)
			r = watch_conn(g, i);
	return r < 0 ? err_errno(e, r, "control socket") : 0;
}
