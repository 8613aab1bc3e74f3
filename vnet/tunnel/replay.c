// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/tunnel/replay.h"

bool vnet_replay_accept(struct vnet_replay *r, uint64_t counter)
{
	const uint64_t word = counter / 64, bit = 1ULL << (counter % 64);
	uint64_t *seen = &r->seen[word % VNET_REPLAY_WORDS];

	if (counter > r->newest) {
		uint64_t now = r->newest / 64, steps = word - now;

		if (steps > VNET_REPLAY_WORDS)
			steps = VNET_REPLAY_WORDS;
		for (uint64_t i = 1; i <= steps; i++)
			r->seen[(now + i) % VNET_REPLAY_WORDS] = 0;
		r->newest = counter;
	} else if (r->newest - counter > VNET_REPLAY_WINDOW) {
		return false;
	}
	if (*seen & bit)
		return false;
	*seen |= bit;
	return true;
}
