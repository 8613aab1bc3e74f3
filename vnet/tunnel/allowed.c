// SPDX-License-Identifier: GPL-2.0-or-later
/* Nodes 0 and 1 are the roots of IPv4 and IPv6; as a link, 0 means none. */
#include "vnet/tunnel/allowed.h"

#include <errno.h>
#include <stdlib.h>

struct vnet_allowed_node {
	uint32_t peer, next[2];
};

void vnet_allowed_fini(struct vnet_allowed *t)
{
	free(t->nodes);
	*t = (struct vnet_allowed){0};
}

static unsigned bit_at(const uint8_t *address, unsigned i)
{
	return address[i / 8] >> (7 - i % 8) & 1;
}

static int reserve(struct vnet_allowed *t, uint32_t n)
{
	struct vnet_allowed_node *more;
	uint32_t room = 2 * t->room + n;

	if (t->room - t->n >= n)
		return 0;
	more = realloc(t->nodes, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	t->nodes = more;
	t->room = room;
	return 0;
}

static uint32_t node(struct vnet_allowed *t)
{
	t->nodes[t->n] = (struct vnet_allowed_node){.peer = VNET_ALLOWED_NOBODY};
	return t->n++;
}

int vnet_allowed_add(struct vnet_allowed *t, const struct vnet_prefix *prefix, uint32_t peer)
{
	uint32_t at = prefix->family == AF_INET6;
	int r = reserve(t, prefix->bits + 2);

	if (r < 0)
		return r;
	while (t->n < 2)
		node(t);
	for (unsigned i = 0; i < prefix->bits; i++) {
		unsigned bit = bit_at(prefix->address, i);

		if (!t->nodes[at].next[bit]) {
			uint32_t fresh = node(t);

			t->nodes[at].next[bit] = fresh;
		}
		at = t->nodes[at].next[bit];
	}
	t->nodes[at].peer = peer;
	return 0;
}

uint32_t vnet_allowed_find(const struct vnet_allowed *t, const struct vnet_endpoint *address)
{
	const bool v6 = address->family == AF_INET6;
	const uint8_t *bytes = v6 ? address->v6.s6_addr : (const uint8_t *)&address->v4;
	uint32_t at = v6, best = VNET_ALLOWED_NOBODY;

	if (!t->n || !address->family)
		return best;
	for (unsigned i = 0, bits = v6 ? 128 : 32;; i++) {
		if (t->nodes[at].peer != VNET_ALLOWED_NOBODY)
			best = t->nodes[at].peer;
		if (i == bits || !t->nodes[at].next[bit_at(bytes, i)])
			return best;
		at = t->nodes[at].next[bit_at(bytes, i)];
	}
}
