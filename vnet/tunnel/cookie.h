/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cookie - the two MACs under each handshake message, and what a busy responder answers instead
 * of computing (WireGuard paper, sections 5.3 and 5.4.4 to 5.4.7).
 *
 * mac1 says that the sender knows whom it talks to; who does not is not answered at all.  mac2
 * says that it receives what is sent to its address: the key is a *cookie*, which the responder
 * makes of that address with a secret that changes every two minutes, and hands out, sealed, when
 * it is too busy to believe addresses.  So a flood with false addresses costs it a MAC each.
 *
 * Times are nanoseconds of any monotonic clock.
 */
#ifndef VNET_TUNNEL_COOKIE_H
#define VNET_TUNNEL_COOKIE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vnet/tunnel/crypto.h"
#include "vnet/tunnel/message.h"

#define VNET_COOKIE_SECONDS 120

/* Who is asked. */
struct vnet_cookie_guard {
	uint8_t mac1_key[VNET_HASH_LEN], seal_key[VNET_HASH_LEN];
	uint8_t secret[VNET_HASH_LEN];
	uint64_t secret_since; /* 0: there is none yet */
};

/* Who asks, one for each peer. */
struct vnet_cookie_jar {
	uint8_t mac1_key[VNET_HASH_LEN], seal_key[VNET_HASH_LEN];
	uint8_t cookie[VNET_MAC_LEN];
	uint64_t cookie_since; /* 0: there is none */
	uint8_t last_mac1[VNET_MAC_LEN];
	bool asked; /* last_mac1 is there */
};

enum vnet_cookie_verdict {
	VNET_COOKIE_FALSE,   /* mac1 is wrong: no answer */
	VNET_COOKIE_WITHOUT, /* mac1 is right */
	VNET_COOKIE_WITH,    /* mac2, too: the address is the sender's */
};

int vnet_cookie_guard_init(struct vnet_cookie_guard *g, const uint8_t own[VNET_KEY_LEN]);
int vnet_cookie_jar_init(struct vnet_cookie_jar *j, const uint8_t peer[VNET_KEY_LEN]);

/* Sets the MACs at the end of @message (@len bytes with them), which goes to the jar's peer. */
int vnet_cookie_sign(struct vnet_cookie_jar *j, void *message, size_t len, uint64_t now);
/* @from is the sender's address and port, as any bytes. */
enum vnet_cookie_verdict vnet_cookie_check(struct vnet_cookie_guard *g, const void *message,
	size_t len, const void *from, size_t from_len, uint64_t now);
/* Makes an answer to @message (whose mac1 is right) for the sender's index @receiver. */
int vnet_cookie_answer(struct vnet_cookie_guard *g, const void *message, size_t len,
	uint32_t receiver, const void *from, size_t from_len, uint64_t now,
	struct vnet_cookie_reply *ret);
/* -EBADMSG: not an answer to what was signed last. */
int vnet_cookie_take(struct vnet_cookie_jar *j, const struct vnet_cookie_reply *m, uint64_t now);

#endif
