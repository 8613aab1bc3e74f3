// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sessions, and the physical addresses they have.
 *
 * An address says which record it belongs to and how often that was used:
 *
 *      198.18.0.0/15  | generation | record |      17 bits, of which the record's are as many as
 *                                                  max_sessions needs
 *      fd65::         | generation (32) | record (32) |
 */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>

#include "base/base.h"
#include "vnet/vnat_table.h"

#define V4_HOST_BITS (32 - VNET_PHYSICAL_V4_BITS)

static struct vnet_endpoint physical_v4(const struct vnet_vnat *v, uint32_t i, uint32_t generation)
{
	uint32_t host = generation * v->head->max_sessions + i;

	host = VNET_PHYSICAL_V4 | (host & ((1u << V4_HOST_BITS) - 1));
	return vnet_endpoint_v4((struct in_addr){htonl(host)}, 0);
}

static struct vnet_endpoint physical_v6(uint32_t i, uint32_t generation)
{
	struct vnet_endpoint ep = {.family = AF_INET6};
	uint32_t low[2] = {htonl(generation), htonl(i)};

	inet_pton(AF_INET6, VNET_PHYSICAL_V6, &ep.v6);
	memcpy(ep.v6.s6_addr + 8, low, sizeof(low));
	return ep;
}

/* 198.18.0.0 and 198.19.255.255 are no addresses of hosts. */
static bool is_host(const struct vnet_endpoint *v4)
{
	uint32_t host = ntohl(v4->v4.s_addr) & ((1u << V4_HOST_BITS) - 1);

	return host != 0 && host != (1u << V4_HOST_BITS) - 1;
}

int vnet_session_add(struct vnet_vnat *v, uint32_t session, const struct vnet_endpoint *v4,
	const struct vnet_endpoint *v6)
{
	struct vnet_session *s = &v->sessions[session];
	struct vnet_endpoint address;

	assert(session < v->head->max_sessions);
	if (s->state)
		return -EBUSY;
	/* Kept before anything else: an address is never given twice. */
	do {
		s->generation++;
		address = physical_v4(v, session, s->generation);
	} while (!is_host(&address));
	s->away = false;
	s->n_flows = 0;
	s->counters = (struct vnet_counters){0};
	s->physical_v4 = address;
	s->physical_v6 = physical_v6(session, s->generation);
	s->v4 = v4 ? vnet_endpoint_v4(v4->v4, 0) : (struct vnet_endpoint){0};
	s->v6 = v6 ? vnet_endpoint_v6(&v6->v6, 0) : (struct vnet_endpoint){0};
	atomic_store_explicit(&s->state, 1, memory_order_release);
	return 0;
}

struct vnet_session *vnet_session_get(struct vnet_vnat *v, uint32_t session)
{
	if (session >= v->head->max_sessions || !v->sessions[session].state)
		return NULL;
	return &v->sessions[session];
}

void vnet_session_remove(struct vnet_vnat *v, uint32_t session)
{
	struct vnet_session *s = vnet_session_get(v, session);
	uint32_t i = VNET_NONE;

	if (!s)
		return;
	while ((i = vnet_flow_next(v, session, i)) != VNET_NONE)
		vnat_table_release(v, i);
	atomic_store_explicit(&s->state, 0, memory_order_release);
}

void vnet_session_set_away(struct vnet_vnat *v, uint32_t session, bool away)
{
	struct vnet_session *s = vnet_session_get(v, session);

	if (s)
		s->away = away;
}
