/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * message - the four messages of WireGuard as they lie in a datagram (paper, section 5.4).
 *
 * All numbers are little endian; use le32toh and friends.
 */
#ifndef VNET_TUNNEL_MESSAGE_H
#define VNET_TUNNEL_MESSAGE_H

#include <assert.h>
#include <stdint.h>

#include "vnet/tunnel/crypto.h"

#define VNET_STAMP_LEN 12 /* TAI64N */

enum vnet_message { /* the first 32 bits of each */
	VNET_INITIATION = 1,
	VNET_RESPONSE = 2,
	VNET_COOKIE_REPLY = 3,
	VNET_DATA = 4,
};

struct vnet_macs { /* at the end of the first two */
	uint8_t mac1[VNET_MAC_LEN], mac2[VNET_MAC_LEN];
};

struct vnet_initiation {
	uint32_t type, sender;
	uint8_t ephemeral[VNET_KEY_LEN];
	uint8_t remote_static[VNET_KEY_LEN + VNET_TAG_LEN];
	uint8_t stamp[VNET_STAMP_LEN + VNET_TAG_LEN];
	struct vnet_macs macs;
};
static_assert(sizeof(struct vnet_initiation) == 148, "as the paper has it");

struct vnet_response {
	uint32_t type, sender, receiver;
	uint8_t ephemeral[VNET_KEY_LEN];
	uint8_t nothing[VNET_TAG_LEN];
	struct vnet_macs macs;
};
static_assert(sizeof(struct vnet_response) == 92, "as the paper has it");

struct vnet_cookie_reply {
	uint32_t type, receiver;
	uint8_t nonce[VNET_XNONCE_LEN];
	uint8_t cookie[VNET_MAC_LEN + VNET_TAG_LEN];
};
static_assert(sizeof(struct vnet_cookie_reply) == 64, "as the paper has it");

struct vnet_data { /* the sealed packet follows, padded to a multiple of 16 */
	uint32_t type, receiver;
	uint64_t counter;
};
static_assert(sizeof(struct vnet_data) == 16, "as the paper has it");

#define VNET_DATA_OVERHEAD (sizeof(struct vnet_data) + VNET_TAG_LEN)

#endif
