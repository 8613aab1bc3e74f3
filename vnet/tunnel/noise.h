/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * noise - the handshake of WireGuard: Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s.
 *
 * (Donenfeld, WireGuard: Next Generation Kernel Network Tunnel, section 5.4; the names of values
 * are the paper's.)
 *
 *     initiator                                              responder
 *     vnet_noise_initiate          -- initiation -->         vnet_noise_consume  whose static key?
 *                                                            vnet_noise_admit    is it true?
 *     vnet_noise_finish            <-- response ---          vnet_noise_respond
 *
 * Functions of bytes: no descriptor, no clock, no random number - the caller brings the ephemeral
 * key and the time stamp.  What does not verify changes nothing, for anybody may send it.  The two
 * MACs at the end of each message are cookie.h's.
 */
#ifndef VNET_TUNNEL_NOISE_H
#define VNET_TUNNEL_NOISE_H

#include "vnet/tunnel/crypto.h"
#include "vnet/tunnel/message.h"

/* Ours. */
struct vnet_noise_identity {
	uint8_t private[VNET_KEY_LEN], public[VNET_KEY_LEN];
};

/* What is known of somebody before a handshake. */
struct vnet_noise_remote {
	uint8_t public[VNET_KEY_LEN], preshared[VNET_KEY_LEN]; /* zeros: there is none */
	uint8_t shared[VNET_KEY_LEN];			       /* of both static keys */
};

/* Between two messages. */
struct vnet_noise_handshake {
	uint8_t hash[VNET_HASH_LEN], chain[VNET_HASH_LEN];
	uint8_t ephemeral[VNET_KEY_LEN];	/* our private one */
	uint8_t remote_ephemeral[VNET_KEY_LEN]; /* their public one */
	uint8_t remote_static[VNET_KEY_LEN];
	uint8_t stamp[VNET_STAMP_LEN]; /* theirs (TAI64N) */
	uint32_t local, remote;	       /* indices of the session to be, in host order */
};

/* What comes of it. */
struct vnet_noise_keys {
	uint8_t send[VNET_KEY_LEN], receive[VNET_KEY_LEN];
};

/* The identity of a private key, which is clamped as RFC 7748 says. */
int vnet_noise_identity(struct vnet_noise_identity *ret, const uint8_t private[VNET_KEY_LEN]);
/* -EBADMSG for a public key with which nothing can be shared. */
int vnet_noise_remote(struct vnet_noise_remote *ret, const struct vnet_noise_identity *own,
	const uint8_t public[VNET_KEY_LEN], const uint8_t preshared[VNET_KEY_LEN]);

/* Fills @m but for its MACs. */
int vnet_noise_initiate(struct vnet_noise_handshake *h, const struct vnet_noise_identity *own,
	const struct vnet_noise_remote *to, const uint8_t ephemeral[VNET_KEY_LEN],
	const uint8_t stamp[VNET_STAMP_LEN], uint32_t local, struct vnet_initiation *m);
/* h->remote_static says who @m claims to be from.  -EBADMSG: nobody who knows us. */
int vnet_noise_consume(struct vnet_noise_handshake *h, const struct vnet_noise_identity *own,
	const struct vnet_initiation *m);
/*
 * True once this has returned 0, and h->stamp is theirs; whether it is new is the caller's
 * affair.
 */
int vnet_noise_admit(struct vnet_noise_handshake *h, const struct vnet_noise_remote *from,
	const struct vnet_initiation *m);
/* Fills @m but for its MACs. */
int vnet_noise_respond(struct vnet_noise_handshake *h, const struct vnet_noise_remote *to,
	const uint8_t ephemeral[VNET_KEY_LEN], uint32_t local, struct vnet_response *m,
	struct vnet_noise_keys *ret);
/* -EBADMSG: not an answer to what was initiated, and @h is as before. */
int vnet_noise_finish(struct vnet_noise_handshake *h, const struct vnet_noise_identity *own,
	const struct vnet_noise_remote *from, const struct vnet_response *m,
	struct vnet_noise_keys *ret);

#endif
