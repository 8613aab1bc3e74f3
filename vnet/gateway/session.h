/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * session - who is attached to the gateway, held, away, or back.
 */
#ifndef VNET_GATEWAY_SESSION_H
#define VNET_GATEWAY_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "vnet/client.h"

struct err;
struct vnet_gateway;

/* At a worker's start: watches the TUNs of those that are attached. */
int gateway_session_start(struct vnet_gateway *g, struct err *e);

/* What came with an attach beside the descriptors. */
struct gateway_session_wish {
	struct vnet_attach attach;
	int tun, diag; /* taken on success */
	int conn;
};
/*
 * A session that moves to another host is still attached, and held, on the one that it leaves when
 * it attaches from there: then it is detached from the first, whose connection is returned; -1
 * otherwise.
 */
int gateway_session_leave(struct vnet_gateway *g, const struct vnet_claim *c);
/*
 * The connection of one with this @id that is arriving, and has not been let run: that is not to be
 * any more, for who has its id attaches once more.  -1: there is none.
 */
int gateway_session_in_vain(struct vnet_gateway *g, const char *id);
/* The session's index.  *ret_lost, *ret_flows: of its claim. */
int gateway_session_attach(struct vnet_gateway *g, struct gateway_session_wish *w, bool *ret_lost,
	uint32_t *ret_flows, struct err *e);
/* How many connections it has. */
uint32_t gateway_session_hold(struct vnet_gateway *g, uint32_t session);
void gateway_session_go(struct vnet_gateway *g, uint32_t session);
/* Its connection has ended without a word. */
void gateway_session_lose(struct vnet_gateway *g, uint32_t session);
/* How many connections were kept. */
uint32_t gateway_session_detach(struct vnet_gateway *g, uint32_t session, bool suspended);
/* A suspended one that nobody will resume ends: how many connections it had. */
uint32_t gateway_session_forget(struct vnet_gateway *g, const struct vnet_claim *c);
uint32_t gateway_session_flows(struct vnet_gateway *g, uint32_t session);
/* The same, and those with its neighbours. */
uint32_t gateway_session_connections(struct vnet_gateway *g, uint32_t session);
/* Is any attached or suspended? */
bool gateway_session_any(const struct vnet_gateway *g);

#endif
