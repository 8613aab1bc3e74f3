// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * There are few slots, and each connection has but one of them, by a hash of its ends.  Whoever
 * finds another there takes half as much from that one's count as it carries itself, and the slot
 * when nothing is left.  So of several who have the same slot the one that carries most gets it, of
 * two who take turns one does, and one that has ended is forgotten for the next who comes.
 */
#include "vnet/gateway/busy.h"

#include "base/base.h"
#include "vnet/gateway/pump.h"

static uint32_t slot_of(const struct gateway_ends *e)
{
	uint64_t h = (uint64_t)e->ports[0] << 32 | (uint64_t)e->ports[1] << 16 |
		     (uint64_t)e->sessions[0] << 8 | e->sessions[1];

	h = (h ^ e->family) * 0x9e3779b97f4a7c15u; /* Fibonacci hashing */
	return (uint32_t)(h >> 32) % GATEWAY_BUSY_SLOTS;
}

bool gateway_ends_equal(const struct gateway_ends *a, const struct gateway_ends *b)
{
	return a->sessions[0] == b->sessions[0] && a->sessions[1] == b->sessions[1] &&
	       a->ports[0] == b->ports[0] && a->ports[1] == b->ports[1] && a->family == b->family;
}

bool gateway_busy_count(struct gateway_busy *b, const struct gateway_ends *ends, uint32_t bytes,
	uint64_t now, uint32_t much)
{
	struct gateway_busy_slot *s = &b->slots[slot_of(ends)];

	if (s->bytes && !gateway_ends_equal(&s->ends, ends)) {
		if (s->bytes > bytes / 2) {
			s->bytes -= bytes / 2;
			return false;
		}
		s->bytes = 0;
	}
	if (s->bytes && now - s->last < GATEWAY_PUMP_SOON_NS)
		bytes = MAX(bytes, GATEWAY_PUMP_MESSAGE);
	s->last = now;
	s->ends = *ends;
	s->bytes += bytes;
	if (s->bytes < much)
		return false;
	s->bytes = 0;
	return true;
}
