// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      free --attach--> attached --detach(end), or connection ends--> ending --delivered--> free
 *                        ^    |
 *                 claim  |    '--detach(suspended), with connections--> suspended
 *                        '-------------------------------------------------'
 *
 * A session's connections belong to one epoch of its label.  Who attaches with the ticket of the
 * present epoch takes them over; the next epoch begins, with another ticket.  So of many copies of
 * an image only the first gets them, and any other, or one whose connections are gone, is told
 * "lost": it is a new session with a new label, and what its kernel still sends for old connections
 * is answered with RST.
 *
 * A claim counts from the moment that packets pass.  Whoever attached frozen and is gone before
 * that, a resume that failed, has changed nothing: the claim before it is good again.
 *
 * Of a line that was cut nobody hears for minutes, and so long a session that was coming by it is
 * attached, and stands still.  It is sent by one at a time, who has given that up when it attaches
 * once more, because it runs on there, or comes by another line.  So whoever has its id ends that
 * before anything of it, claim or ports, is in his way.
 *
 * A suspended session without connections is nothing that could be claimed and is forgotten at
 * once.  One whose image is removed ends: who removes it has the ticket.
 *
 * A host's kernel goes on sending what its programs had left in their sockets when they ended, and
 * so does a session's: one whose supervisor is gone keeps its TUN until each of its connections has
 * its end, or none of those is left in its kernel.  One that is told to let its connections go, and
 * one that was suspended, has no kernel to wait for.
 */
#include "vnet/gateway/session.h"

#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "vnet/gateway/capture.h"
#include "vnet/gateway/datagram.h"
#include "vnet/gateway/dynamic.h"
#include "vnet/gateway/flow.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/link.h"
#include "vnet/gateway/neighbour.h"
#include "vnet/gateway/outbound.h"
#include "vnet/gateway/publish.h"
#include "vnet/gateway/remote.h"
#include "vnet/gateway/removal.h"
#include "vnet/gateway/veth.h"
#include "vnet/gateway/wire.h"
#include "vnet/tun.h"
#include "vnet/vnat.h"

#define ENDING_NS 60000000000ull /* for what a session that has ended has sent */

struct gateway_sessions {
	struct vnet_gateway *g;
	struct gateway_later sweep;
	struct gateway_timer deadline;
};

static struct gateway_session *session_at(struct vnet_gateway *g, uint32_t index)
{
	return &g->arena->sessions[index];
}

/* ---- claims ------------------------------------------------------------------------------ */

/* In a time that does not tell where they differ. */
static bool same_ticket(const uint8_t *a, const uint8_t *b)
{
	uint8_t differ = 0;

	for (size_t i = 0; i < VNET_TICKET_SIZE; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

static bool claims(const struct vnet_claim *c, const struct gateway_session *s)
{
	return s->claim.label == c->label && s->claim.epoch == c->epoch &&
	       !memcmp(s->claim.gateway, c->gateway, sizeof(c->gateway)) &&
	       same_ticket(s->claim.ticket, c->ticket);
}

/* The session that @c may take over, or -1. */
static int find_claimed(struct vnet_gateway *g, const struct vnet_claim *c)
{
	for (int i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		const struct gateway_session *s = session_at(g, (uint32_t)i);

		if (s->state == GATEWAY_SESSION_SUSPENDED && claims(c, s))
			return i;
	}
	return -1;
}

static bool label_taken(struct vnet_gateway *g, uint32_t label)
{
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (session_at(g, i)->state != GATEWAY_SESSION_FREE &&
			session_at(g, i)->claim.label == label)
			return true;
	return false;
}

/* The next epoch of @c, or with label 0 the first of a new one. */
static int next_epoch(struct vnet_gateway *g, struct vnet_claim *c, struct err *e)
{
	struct vnet_claim next = *c;

	next.epoch++;
	memcpy(next.gateway, g->arena->identity, sizeof(next.gateway));
	while (!next.label || (!c->label && label_taken(g, next.label)))
		if (getrandom(&next.label, sizeof(next.label), 0) != sizeof(next.label))
			return err_errno(e, -EIO, "random numbers");
	if (getrandom(next.ticket, sizeof(next.ticket), 0) != sizeof(next.ticket))
		return err_errno(e, -EIO, "random numbers");
	*c = next;
	return 0;
}

/* ---- attach ------------------------------------------------------------------------------ */

static bool can_be_own(const struct vnet_endpoint *ep)
{
	return vnet_endpoint_is_unicast(ep) && !vnet_endpoint_is_loopback(ep);
}

/* A record of the translator's, and ours with the same number. */
static int make_record(struct vnet_gateway *g, const struct vnet_attach *a, struct err *e)
{
	struct vnet_endpoint v4 = {0}, v6 = {0};
	uint32_t index = 0;
	int r;

	if (a->address4.s_addr)
		v4 = vnet_endpoint_v4(a->address4, 0);
	if (!IN6_IS_ADDR_UNSPECIFIED(&a->address6))
		v6 = vnet_endpoint_v6(&a->address6, 0);
	if (!v4.family && !v6.family)
		return err_set(e, ERR_USAGE, -EINVAL, "a session needs an address");
	/* An image may say anything; answers are made to these (vnet_packet_make_icmp_error). */
	if ((v4.family && !can_be_own(&v4)) || (v6.family && !can_be_own(&v6)))
		return err_set(e, ERR_USAGE, -EINVAL, "no host can have the session's address");
	while (index < GATEWAY_MAX_SESSIONS && session_at(g, index)->state != GATEWAY_SESSION_FREE)
		index++;
	if (index == GATEWAY_MAX_SESSIONS)
		return err_set(e, ERR_FAILED, -ENOSPC, "the gateway has %d sessions already",
			GATEWAY_MAX_SESSIONS);
	r = vnet_session_add(g->vnat, index, v4.family ? &v4 : NULL, v6.family ? &v6 : NULL);
	if (r < 0)
		return err_errno(e, r, "the session's addresses");
	/* Its ports of UDP are opened before the rest is known. */
	*session_at(g, index) = (struct gateway_session){.tun = -1,
		.diag = -1,
		.conn = -1,
		.address4 = a->address4,
		.address6 = a->address6};
	return (int)index;
}

static void close_tun(struct vnet_gateway *g, uint32_t index)
{
	struct gateway_session *s = session_at(g, index);
	int tun = s->tun;

	gateway_veth_leave(g, index);
	if (tun < 0)
		return;
	gateway_link_stop(g, index);
	s->tun = -1;
	gateway_removal_close(g, tun);
}

/* Not attached any more, and nothing is to be delivered. */
static void forget(struct vnet_gateway *g, uint32_t index)
{
	struct gateway_session *s = session_at(g, index);

	gateway_publish_remove_all(g, index);
	gateway_capture_end(g, index, 0);
	gateway_wire_forget(g, index);
	close_tun(g, index);
	gateway_datagram_end_session(g, index);
	gateway_dynamic_forget(g, index);
	vnet_session_remove(g->vnat, index);
	if (gateway_neighbour_forget(g, index))
		gateway_loop_later(g->loop, &g->sessions->sweep);
	s->state = GATEWAY_SESSION_FREE;
}

static void fill_in(struct gateway_session *s, const struct gateway_session_wish *w)
{
	const struct vnet_attach *a = &w->attach;

	snprintf(s->name, sizeof(s->name), "%s", a->name);
	snprintf(s->id, sizeof(s->id), "%s", a->id);
	snprintf(s->remote, sizeof(s->remote), "%s", a->remote ? a->remote : "");
	snprintf(s->dns_update, sizeof(s->dns_update), "%s", a->dns_update ? a->dns_update : "");
	s->address4 = a->address4;
	s->gateway4 = a->gateway4;
	s->loopback4 = a->loopback4;
	s->address6 = a->address6;
	s->gateway6 = a->gateway6;
	s->loopback6 = a->loopback6;
	s->link_local = a->link_local;
	s->wires = a->wires;
	s->tunnel = false;
	s->mtu = a->mtu;
	s->max_flows = a->max_flows ? MIN(a->max_flows, (uint32_t)GATEWAY_MAX_FLOWS)
				    : GATEWAY_SESSION_FLOWS;
	s->tun = w->tun;
	s->diag = w->diag;
	s->conn = w->conn;
	s->held = a->frozen;
	s->arriving = a->frozen && a->arriving;
	s->since = io_now_ns();
}

/* The session's diag socket tells where it listens: it must be there first. */
static int publish_all(
	struct vnet_gateway *g, uint32_t index, const struct vnet_attach *a, struct err *e)
{
	for (size_t i = 0; i < a->n_ports; i++)
		if (gateway_publish_add(g, index, &a->ports[i], a->replaces, e) < 0)
			return e->error;
	return 0;
}

int gateway_session_attach(struct vnet_gateway *g, struct gateway_session_wish *w, bool *ret_lost,
	uint32_t *ret_flows, struct err *e)
{
	bool claims = w->attach.claim.label != 0;
	int index = claims ? find_claimed(g, &w->attach.claim) : -1;
	bool kept = index >= 0;
	struct vnet_claim claim = {0}, before = {0};
	struct gateway_session *s;

	if (!kept)
		index = make_record(g, &w->attach, e);
	if (index < 0)
		return index;
	s = session_at(g, (uint32_t)index);
	s->diag = w->diag;
	if (kept)
		claim = before = s->claim;
	if (next_epoch(g, &claim, e) < 0) {
		if (!kept)
			vnet_session_remove(g->vnat, (uint32_t)index);
		return e->error;
	}
	if (publish_all(g, (uint32_t)index, &w->attach, e) < 0) {
		s->diag = -1; /* the caller's still */
		gateway_publish_remove_all(g, (uint32_t)index);
		if (!kept)
			vnet_session_remove(g->vnat, (uint32_t)index);
		return e->error;
	}
	fill_in(s, w);
	s->before = before;
	if (gateway_remote_open(g, (uint32_t)index, false, e) < 0) {
		s->tun = s->diag = s->conn = -1; /* the caller's still */
		gateway_publish_remove_all(g, (uint32_t)index);
		if (!kept)
			vnet_session_remove(g->vnat, (uint32_t)index);
		return e->error;
	}
	if (kept)
		gateway_outbound_came_back(g, (uint32_t)index);
	s->claim = claim;
	s->state = GATEWAY_SESSION_ATTACHED;
	g->arena->conns[w->conn].session = index;
	vnet_session_set_away(g->vnat, (uint32_t)index, false);
	if (!g->arena->whole)
		vnet_tun_set_segmentation(s->tun, false, NULL);
	if (!s->held)
		gateway_session_go(g, (uint32_t)index);
	/* Nothing of connections through a tunnel was ever here. */
	*ret_lost = claims && !kept && !s->remote[0];
	*ret_flows = gateway_session_connections(g, (uint32_t)index);
	return index;
}

/* ---- and after --------------------------------------------------------------------------- */

uint32_t gateway_session_hold(struct vnet_gateway *g, uint32_t session)
{
	/* What is lost on its way would be sent again a second after the resume: its kernel knows no
	 * round trips then. */
	gateway_link_hold(g, session);
	gateway_veth_hold(g, session);
	session_at(g, session)->held = true;
	session_at(g, session)->neighbour_flows = gateway_neighbour_count(g, session);
	return gateway_session_connections(g, session);
}

/*
 * What was sent to the session while it was away: its answers make the inner kernel go on at once.
 */
static void replay(struct vnet_gateway *g, uint32_t session)
{
	uint32_t room[VNET_KEPT / 4], flow = VNET_NONE;

	while ((flow = vnet_flow_next(g->vnat, session, flow)) != VNET_NONE) {
		struct vnet_packet p = {.data = (uint8_t *)room, .room = sizeof(room)};

		if (vnet_flow_replay(g->vnat, flow, &p) == 1 && !g->arena->flows[flow].anew)
			vnet_gateway_to_session(g, session, &p);
	}
}

void gateway_session_go(struct vnet_gateway *g, uint32_t session)
{
	bool moved = session_at(g, session)->before.label != 0;
	struct err e = {0};

	session_at(g, session)->held = false;
	session_at(g, session)->arriving = false;
	session_at(g, session)->neighbour_flows = 0;
	session_at(g, session)->before.label = 0;
	gateway_wire_flush(g, session);
	replay(g, session);
	if (!moved)
		gateway_outbound_go(g, session);
	gateway_publish_expect(g);
	gateway_datagram_go(g, session);
	gateway_dynamic_tell(g, session);
	if (gateway_link_read(g, session, &e) < 0)
		log_error("%s: %s", session_at(g, session)->name, e.msg);
}

static bool is_done(struct vnet_gateway *g, uint32_t index)
{
	const struct gateway_session *s = session_at(g, index);

	if (s->state == GATEWAY_SESSION_SUSPENDED)
		return !gateway_session_connections(g, index) && !gateway_datagram_count(g, index);
	return s->state == GATEWAY_SESSION_ENDING && !gateway_session_flows(g, index);
}

/* Sessions whose last flow has ended are no more. */
static void sweep(struct gateway_later *l)
{
	struct vnet_gateway *g = gateway_container(l, struct gateway_sessions, sweep)->g;

	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (is_done(g, i))
			forget(g, i);
	g->maybe_end(g);
}

static void on_flow_ended(struct vnet_gateway *g, uint32_t session)
{
	if (session_at(g, session)->state != GATEWAY_SESSION_ATTACHED)
		gateway_loop_later(g->loop, &g->sessions->sweep);
}

/* Who does not take what a session has sent has had time enough. */
static void on_deadline(struct gateway_timer *t)
{
	struct vnet_gateway *g = gateway_container(t, struct gateway_sessions, deadline)->g;
	bool more = false;

	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		const struct gateway_session *s = session_at(g, i);

		if (s->state != GATEWAY_SESSION_ENDING)
			continue;
		if (io_now_ns() - s->since >= ENDING_NS)
			gateway_flow_end_session(g, i, true);
		else
			more = true;
	}
	if (more)
		gateway_loop_timer(g->loop, t, ENDING_NS);
}

static void end(struct vnet_gateway *g, uint32_t session)
{
	struct gateway_session *s = session_at(g, session);

	s->state = GATEWAY_SESSION_ENDING;
	s->held = false;
	if (s->tun >= 0)
		gateway_flow_finish_session(g, session);
	else
		gateway_flow_end_session(g, session, false);
	if (!gateway_session_flows(g, session))
		forget(g, session);
	else if (!g->sessions->deadline.due)
		gateway_loop_timer(g->loop, &g->sessions->deadline, ENDING_NS);
}

/* @finish: its kernel may still have something to send. */
static uint32_t detach(struct vnet_gateway *g, uint32_t session, bool suspended, bool finish)
{
	struct gateway_session *s = session_at(g, session);
	uint32_t flows = gateway_session_connections(g, session);
	int diag = s->diag;

	if (finish) {
		gateway_veth_end(g, session);
		gateway_link_drain(g, session);
	} else {
		close_tun(g, session);
	}
	gateway_remote_close(g, session);
	gateway_dynamic_stop(g, session);
	gateway_publish_remove_all(g, session);
	s->held = true;
	s->tunnel = false;
	s->diag = s->conn = -1;
	close_fd(diag);
	s->since = io_now_ns();
	if (suspended && (flows || gateway_datagram_count(g, session))) {
		vnet_session_set_away(g->vnat, session, true);
		gateway_flow_keep_alive(g, session);
		s->state = GATEWAY_SESSION_SUSPENDED;
		return flows;
	}
	end(g, session);
	return 0;
}

void gateway_session_lose(struct vnet_gateway *g, uint32_t session)
{
	struct gateway_session *s = session_at(g, session);
	bool undone = s->before.label != 0;

	if (undone)
		s->claim = s->before;
	else
		gateway_dynamic_leave(g, session);
	s->before.label = 0;
	if (undone)
		gateway_wire_hand_over(g, session);
	detach(g, session, undone, !undone);
}

uint32_t gateway_session_detach(struct vnet_gateway *g, uint32_t session, bool suspended)
{
	if (suspended)
		gateway_wire_hand_over(g, session);
	else
		gateway_wire_forget(g, session);
	return detach(g, session, suspended, false);
}

int gateway_session_leave(struct vnet_gateway *g, const struct vnet_claim *c)
{
	for (int i = 0; c->label && i < GATEWAY_MAX_SESSIONS; i++) {
		const struct gateway_session *s = session_at(g, (uint32_t)i);
		int conn = s->conn;

		if (s->state != GATEWAY_SESSION_ATTACHED || !s->held || !claims(c, s))
			continue;
		gateway_wire_hand_over(g, (uint32_t)i);
		detach(g, (uint32_t)i, true, false);
		return conn;
	}
	return -1;
}

int gateway_session_in_vain(struct vnet_gateway *g, const char *id)
{
	for (uint32_t i = 0; id[0] && i < GATEWAY_MAX_SESSIONS; i++) {
		const struct gateway_session *s = session_at(g, i);

		if (s->state == GATEWAY_SESSION_ATTACHED && s->arriving && s->conn >= 0 &&
			strcmp(s->id, id) == 0)
			return s->conn;
	}
	return -1;
}

uint32_t gateway_session_forget(struct vnet_gateway *g, const struct vnet_claim *c)
{
	int index = c->label ? find_claimed(g, c) : -1;
	uint32_t flows;

	if (index < 0)
		return 0;
	flows = gateway_session_connections(g, (uint32_t)index);
	session_at(g, (uint32_t)index)->since = io_now_ns();
	end(g, (uint32_t)index);
	return flows;
}

uint32_t gateway_session_flows(struct vnet_gateway *g, uint32_t session)
{
	uint32_t n = 0;

	for (size_t i = 0; i < GATEWAY_MAX_FLOWS; i++)
		if (g->arena->flows[i].state != GATEWAY_FLOW_FREE &&
			g->arena->flows[i].session == session)
			n++;
	return n;
}

uint32_t gateway_session_connections(struct vnet_gateway *g, uint32_t session)
{
	const struct gateway_session *s = session_at(g, session);
	bool now = s->state == GATEWAY_SESSION_ATTACHED && !s->held;

	return gateway_session_flows(g, session) +
	       (now ? gateway_neighbour_count(g, session) : s->neighbour_flows);
}

bool gateway_session_any(const struct vnet_gateway *g)
{
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (g->arena->sessions[i].state != GATEWAY_SESSION_FREE)
			return true;
	return false;
}

/* A session whose record a worker had not got further with, or was just about to free. */
static void take_up(struct vnet_gateway *g, uint32_t i)
{
	struct gateway_session *s = session_at(g, i);
	struct err e = {0};

	if (s->state == GATEWAY_SESSION_FREE) {
		if (vnet_session_get(g->vnat, i))
			vnet_session_remove(g->vnat, i);
		return;
	}
	if (!vnet_session_get(g->vnat, i)) {
		s->state = GATEWAY_SESSION_FREE;
		return;
	}
	if (s->state == GATEWAY_SESSION_ATTACHED && gateway_remote_open(g, i, true, &e) < 0)
		log_error("%s: %s", s->name, e.msg);
	if (s->state == GATEWAY_SESSION_ATTACHED && !s->held && gateway_link_read(g, i, &e) < 0)
		log_error("%s: %s", s->name, e.msg);
	if (s->state == GATEWAY_SESSION_ATTACHED && !s->held)
		gateway_dynamic_tell(g, i);
	/* None: it was being detached, and its client's request or end is still to be seen. */
	if (s->state == GATEWAY_SESSION_ATTACHED && s->conn >= 0)
		g->arena->conns[s->conn].session = (int32_t)i;
	if (s->state == GATEWAY_SESSION_ENDING) {
		if (s->tun >= 0 && gateway_link_read(g, i, &e) < 0)
			log_error("%s: %s", s->name, e.msg);
		gateway_loop_timer(g->loop, &g->sessions->deadline, ENDING_NS);
	}
}

/*
 * Whoever detached a session, and whose record still has it: the next with that number is another.
 */
static void take_up_conns(struct gateway_arena *a)
{
	for (size_t i = 0; i < GATEWAY_MAX_CONNS; i++) {
		int32_t session = a->conns[i].session;

		if (a->conns[i].used && session >= 0 &&
			a->sessions[session].state != GATEWAY_SESSION_ATTACHED)
			a->conns[i].session = -1;
	}
}

int gateway_session_start(struct vnet_gateway *g, struct err *e)
{
	g->sessions = calloc(1, sizeof(*g->sessions));
	if (!g->sessions)
		return err_errno(e, -ENOMEM, "gateway");
	g->sessions->g = g;
	g->sessions->sweep.run = sweep;
	g->sessions->deadline.fire = on_deadline;
	g->flow_ended = on_flow_ended;
	for (uint32_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		take_up(g, i);
	take_up_conns(g->arena);
	gateway_loop_later(g->loop, &g->sessions->sweep);
	return 0;
}
