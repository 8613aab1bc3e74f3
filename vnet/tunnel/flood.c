// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/tunnel/flood.h"

#define SECOND 1000000000ULL
#define TOKEN  (SECOND / VNET_FLOOD_PER_ADDRESS)

bool vnet_flood_count(struct vnet_flood *f, uint64_t now)
{
	if (!f->window || now - f->window >= SECOND) {
		f->window = now;
		f->count = 0;
	}
	if (++f->count > VNET_FLOOD_PER_SECOND)
		f->busy_until = now + SECOND;
	return now < f->busy_until;
}

bool vnet_flood_allow(struct vnet_flood *f, const struct vnet_endpoint *from, uint64_t now)
{
	struct vnet_endpoint key = *from;
	uint64_t *spent;

	key.port = 0;
	if (key.family == AF_INET6)
		memset(key.v6.s6_addr + 8, 0, 8);
	spent = &f->spent[vnet_endpoint_hash(&key, f->seed) % VNET_FLOOD_BUCKETS];
	if (*spent < now)
		*spent = now;
	if (*spent + TOKEN > now + VNET_FLOOD_BURST * TOKEN)
		return false;
	*spent += TOKEN;
	return true;
}
