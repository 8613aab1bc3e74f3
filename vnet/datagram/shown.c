// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/datagram/shown.h"

#include "vnet/datagram/dns_message.h"

#define TRIES 64

static bool is_used(const struct vnet_shown *s, uint32_t port, uint64_t now_ms)
{
	return s->state && s->port == port && now_ms - s->used_ms <= VNET_SHOWN_MS;
}

static bool is_taken(
	const struct vnet_shown *all, uint32_t port, uint16_t as, uint8_t family, uint64_t now_ms)
{
	for (unsigned i = 0; i < VNET_SHOWN; i++)
		if (is_used(&all[i], port, now_ms) && all[i].as == as &&
			all[i].client.family == family)
			return true;
	return as == VNET_DNS_PORT; /* where the gateway itself answers */
}

/* The client's own port if that goes. */
static uint16_t choose(const struct vnet_shown *all, uint32_t port,
	const struct vnet_endpoint *client, uint64_t now_ms)
{
	uint16_t as = client->port;

	for (unsigned i = 1; i < TRIES && is_taken(all, port, as, client->family, now_ms); i++)
		as = (uint16_t)(1024 + (client->port + i * 7919u) % 64512u);
	return is_taken(all, port, as, client->family, now_ms) ? 0 : as;
}

uint16_t vnet_shown_as(struct vnet_shown all[VNET_SHOWN], uint32_t port,
	const struct vnet_endpoint *client, uint64_t now_ms)
{
	struct vnet_shown *place = NULL;
	uint16_t as;

	if (!client->port || (client->family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&client->v6)))
		return 0;
	for (unsigned i = 0; i < VNET_SHOWN; i++) {
		struct vnet_shown *s = &all[i];

		if (is_used(s, port, now_ms) && vnet_endpoint_equal(&s->client, client)) {
			s->used_ms = now_ms;
			return s->as;
		}
		if (!place || (place->state && (!s->state || s->used_ms < place->used_ms)))
			place = s;
	}
	as = choose(all, port, client, now_ms);
	if (!as)
		return 0;
	__atomic_store_n(&place->state, 0, __ATOMIC_RELEASE);
	*place = (struct vnet_shown){.port = port, .client = *client, .as = as, .used_ms = now_ms};
	__atomic_store_n(&place->state, 1, __ATOMIC_RELEASE);
	return as;
}

bool vnet_shown_client(const struct vnet_shown all[VNET_SHOWN], uint32_t port, uint16_t as,
	uint64_t now_ms, struct vnet_endpoint *ret)
{
	for (unsigned i = 0; i < VNET_SHOWN; i++)
		if (is_used(&all[i], port, now_ms) && all[i].as == as &&
			all[i].client.family == ret->family) {
			*ret = all[i].client;
			return true;
		}
	return false;
}

void vnet_shown_forget(struct vnet_shown all[VNET_SHOWN], uint32_t port)
{
	for (unsigned i = 0; i < VNET_SHOWN; i++)
		if (all[i].state && all[i].port == port)
			__atomic_store_n(&all[i].state, 0, __ATOMIC_RELEASE);
}
