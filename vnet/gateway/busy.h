/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * busy - which TCP connections between sessions carry much, without a record of each.
 */
#ifndef VNET_GATEWAY_BUSY_H
#define VNET_GATEWAY_BUSY_H

#include <stdbool.h>
#include <stdint.h>

#define GATEWAY_BUSY_SLOTS 1024

/* A connection between two sessions, of which [0] has the lower number. */
struct gateway_ends {
	uint32_t sessions[2];
	uint16_t ports[2];
	uint8_t family;
};

bool gateway_ends_equal(const struct gateway_ends *a, const struct gateway_ends *b);

/* Zeroed at first. */
struct gateway_busy {
	struct gateway_busy_slot {
		struct gateway_ends ends;
		uint32_t bytes; /* 0: nobody's */
		uint64_t last;	/* when some were counted */
	} slots[GATEWAY_BUSY_SLOTS];
};

/*
 * So many more of its bytes have passed, by the loop's clock at @now; few of them that come soon
 * after the last count as gateway_pump_moved has it.  True if that makes @much, which is counted
 * anew then.
 */
bool gateway_busy_count(struct gateway_busy *b, const struct gateway_ends *ends, uint32_t bytes,
	uint64_t now, uint32_t much);

#endif
