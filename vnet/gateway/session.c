// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      free --attach--> attached --detach(end), or the connection ends--> free
 *                        ^    |
 *                 claim  |    '--detach(suspended), with connections--> suspended
 *                        '-------------------------------------------------'
 *
 * A session's connections belong to one epoch of its label.  Who attaches with the ticket of the present epoch takes
 * them over; the next epoch begins, with another ticket.  So of many copies of an image only the first gets
 * them, and any other, or one whose connections are gone, is told "lost": it is a new session with a new
 * label, and what its kernel still sends for old connections is answered with RST.
 *
 * A suspended session without connections is nothing that could be claimed and is forgotten at once.
 */
#include "vnet/gateway/session.h"

#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "vnet/gateway/gateway.h"

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

/* The session that @c may take over, or -1. */
static int find_claimed(struct vnet_gateway *g, const struct vnet_claim *c)
{
	for (int i = 0; i < GATEWAY_MAX_SESSIONS; i++) {
		const struct gateway_session *s = session_at(g, (uint32_t)i);

		if (s->state == GATEWAY_SESSION_SUSPENDED && s->claim.label == c->label)
			return s->claim.epoch == c->epoch &&
					       !memcmp(s->claim.gateway, c->gateway,
						       sizeof(c->gateway)) &&
					       same_ticket(s->claim.ticket, c->ticket)
				       ? i
				       : -1;
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

static int find_free(struct vnet_gateway *g, struct err *e)
{
	for (int i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (session_at(g, (uint32_t)i)->state == GATEWAY_SESSION_FREE)
			return i;
	return err_set(e, ERR_FAILED, -EMFILE, "the gateway has %d sessions already",
		GATEWAY_MAX_SESSIONS);
}

static void fill_in(struct gateway_session *s, const struct gateway_session_wish *w)
{
	const struct vnet_attach *a = &w->attach;

	snprintf(s->name, sizeof(s->name), "%s", a->name);
	snprintf(s->id, sizeof(s->id), "%s", a->id);
	s->address4 = a->address4;
	s->gateway4 = a->gateway4;
	s->loopback4 = a->loopback4;
	s->address6 = a->address6;
	s->gateway6 = a->gateway6;
	s->loopback6 = a->loopback6;
	s->mtu = a->mtu;
	s->max_flows = a->max_flows ? MIN(a->max_flows, (uint32_t)GATEWAY_MAX_FLOWS)
				    : GATEWAY_SESSION_FLOWS;
	s->tun = w->tun;
	s->diag = w->diag;
	s->conn = w->conn;
	s->held = a->frozen;
	s->since = io_now_ns();
}

int gateway_session_attach(struct vnet_gateway *g, struct gateway_session_wish *w, bool *ret_lost,
	uint32_t *ret_flows, struct err *e)
{
	bool claims = w->attach.claim.label != 0;
	int index = claims ? find_claimed(g, &w->attach.claim) : -1;
	bool kept = index >= 0;
	struct vnet_claim claim = {0};
	struct gateway_session *s;

	if (!kept)
		index = find_free(g, e);
	if (index < 0)
		return index;
	s = session_at(g, (uint32_t)index);
	if (kept)
		claim = s->claim;
	else
		*s = (struct gateway_session){0};
	if (next_epoch(g, &claim, e) < 0)
		return e->error;
	fill_in(s, w);
	s->claim = claim;
	s->state = GATEWAY_SESSION_ATTACHED;
	g->arena->conns[w->conn].session = index;
	*ret_lost = claims && !kept;
	*ret_flows = gateway_session_flows(g, (uint32_t)index);
	return index;
}

/* ---- and after --------------------------------------------------------------------------- */

uint32_t gateway_session_hold(struct vnet_gateway *g, uint32_t session)
{
	session_at(g, session)->held = true;
	return gateway_session_flows(g, session);
}

void gateway_session_go(struct vnet_gateway *g, uint32_t session)
{
	session_at(g, session)->held = false;
}

uint32_t gateway_session_detach(struct vnet_gateway *g, uint32_t session, bool suspended)
{
	struct gateway_session *s = session_at(g, session);
	uint32_t flows = gateway_session_flows(g, session);
	int tun = s->tun, diag = s->diag;

	s->held = true;
	s->tun = s->diag = s->conn = -1;
	close_fd(tun);
	close_fd(diag);
	s->since = io_now_ns();
	s->state = suspended && flows ? GATEWAY_SESSION_SUSPENDED : GATEWAY_SESSION_FREE;
	return suspended ? flows : 0;
}

int gateway_session_publish(
	struct vnet_gateway *g, uint32_t session, const struct vnet_port *p, struct err *e)
{
	return err_set(e, ERR_HOST, -EOPNOTSUPP, "publishing ports is not supported");
}

int gateway_session_unpublish(
	struct vnet_gateway *g, uint32_t session, const struct vnet_port *p, struct err *e)
{
	return err_set(e, ERR_NOT_FOUND, -ENOENT, "port %u is not published", p->outside);
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

bool gateway_session_any(const struct vnet_gateway *g)
{
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (g->arena->sessions[i].state != GATEWAY_SESSION_FREE)
			return true;
	return false;
}

int gateway_session_start(struct vnet_gateway *g, struct err *e)
{
	return 0;
}
