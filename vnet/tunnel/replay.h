/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * replay - which counters of a key were seen: a sliding window (RFC 6479).
 *
 * Bits lie in a ring of words; moving on clears whole words, so a packet costs the same however
 * far ahead it is.  Only packets that are authentic may be asked about: the window moves.
 */
#ifndef VNET_TUNNEL_REPLAY_H
#define VNET_TUNNEL_REPLAY_H

#include <stdbool.h>
#include <stdint.h>

#define VNET_REPLAY_WORDS  128
#define VNET_REPLAY_WINDOW ((VNET_REPLAY_WORDS - 1) * 64) /* so far behind the newest is taken */

struct vnet_replay { /* zeros: nothing was seen */
	uint64_t newest;
	uint64_t seen[VNET_REPLAY_WORDS];
};

/* True if @counter is new; it is seen then.  False for what was seen or is too old to tell. */
bool vnet_replay_accept(struct vnet_replay *r, uint64_t counter);

#endif
