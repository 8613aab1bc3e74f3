/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * device - what the tunnel's own modules share: the tunnel, its peers, their keys.
 *
 *     peer --- handshake   ours, while it waits for a response
 *          |-- previous    the key pair before, for packets that are late
 *          |-- current     with which we send
 *          '-- next        made as a responder, until the initiator has shown that it has it, too
 */
#ifndef VNET_TUNNEL_DEVICE_H
#define VNET_TUNNEL_DEVICE_H

#include "vnet/tunnel/allowed.h"
#include "vnet/tunnel/carrier.h"
#include "vnet/tunnel/coalesce.h"
#include "vnet/tunnel/cookie.h"
#include "vnet/tunnel/flood.h"
#include "vnet/tunnel/index.h"
#include "vnet/tunnel/noise.h"
#include "vnet/tunnel/outside.h"
#include "vnet/tunnel/replay.h"
#include "vnet/tunnel/stamp.h"
#include "vnet/tunnel/socket.h"

#define SECONDS 1000000000ULL

/* The paper's section 6.1. */
#define VNET_REKEY_AFTER_MESSAGES  (1ULL << 60)
#define VNET_REJECT_AFTER_MESSAGES (UINT64_MAX - (1 << 13))
#define VNET_REKEY_AFTER	   (120 * SECONDS)
#define VNET_REJECT_AFTER	   (180 * SECONDS)
#define VNET_REKEY_ATTEMPT	   (90 * SECONDS)
#define VNET_REKEY_TIMEOUT	   (5 * SECONDS)
#define VNET_KEEPALIVE_TIMEOUT	   (10 * SECONDS)
#define VNET_INITIATION_PAUSE	   (SECONDS / 50) /* of one peer */

#define VNET_STAGED_PACKETS 128 /* that wait for keys, of one peer */
#define VNET_STAGED_BYTES   (512 << 10)

enum vnet_timer {
	VNET_TIMER_RETRANSMIT,	  /* no response has come */
	VNET_TIMER_KEEPALIVE,	  /* something came, and nothing went */
	VNET_TIMER_NEW_HANDSHAKE, /* something went, and nothing came */
	VNET_TIMER_FORGET,	  /* keys are too old for anything */
	VNET_TIMER_PERSISTENT,	  /* a NAT may forget us */
	VNET_TIMER_MAX
};

enum vnet_index_kind { VNET_INDEX_HANDSHAKE, VNET_INDEX_KEYS };

struct vnet_keypair {
	struct vnet_index_entry index; /* the owner is the peer */
	uint32_t remote;
	bool initiator; /* we were */
	uint64_t since;
	uint64_t counter; /* the next to be sent */
	struct vnet_cipher *send, *receive;
	struct vnet_replay replay;
};

struct vnet_staged { /* a packet without keys, or a place to go to */
	struct vnet_staged *next;
	struct vnet_packet p;
	uint8_t data[] __attribute__((aligned(8)));
};

struct vnet_peer {
	struct vnet_tunnel *tunnel;
	uint32_t number;
	struct vnet_noise_remote remote;
	struct vnet_cookie_jar jar;
	struct vnet_endpoint at;
	bool named; /* where it is will be said: packets wait for that */
	uint64_t persistent; /* nanoseconds; 0: none */

	struct vnet_noise_handshake handshake;
	struct vnet_index_entry handshake_index; /* in the table while a response is waited for */
	uint64_t initiated, consumed;		 /* when; 0: never */
	uint8_t newest_stamp[VNET_STAMP_LEN];
	struct vnet_keypair *previous, *current, *next;

	uint64_t timers[VNET_TIMER_MAX]; /* when; 0: not set */
	unsigned attempts;
	bool another_keepalive, last_minute;

	struct vnet_staged *staged, **staged_end;
	size_t n_staged, staged_bytes;
	struct vnet_tunnel_peer_stats stats;
};

struct vnet_tunnel {
	struct vnet_carrier carrier;
	struct vnet_noise_identity own;
	struct vnet_tunnel_clock clock;
	uint64_t now; /* of the call that is under way */
	uint64_t due; /* no timer is before this */
	unsigned mtu;
	struct vnet_socket *udp;
	struct vnet_coalesce *coalesce;
	struct vnet_cookie_guard guard;
	struct vnet_flood flood;
	struct vnet_index index;
	struct vnet_allowed allowed;
	struct vnet_stamp stamp;
	struct vnet_peer *peers;
	uint32_t n_peers;
};

/* timers.c: what has happened, and what follows from it */
void vnet_timers_data_sent(struct vnet_peer *p);
void vnet_timers_data_received(struct vnet_peer *p);
void vnet_timers_any_sent(struct vnet_peer *p);
void vnet_timers_any_received(struct vnet_peer *p);
void vnet_timers_initiated(struct vnet_peer *p);
void vnet_timers_complete(struct vnet_peer *p);
void vnet_timers_derived(struct vnet_peer *p);
void vnet_timers_run(struct vnet_tunnel *t);
void vnet_timers_set(struct vnet_peer *p, enum vnet_timer which, uint64_t after);

/* handshake.c */
/* Not within five seconds of the last one. */
void vnet_handshake_start(struct vnet_peer *p, bool again);
/* One of the first three messages. */
void vnet_handshake_receive(
	struct vnet_tunnel *t, const struct vnet_endpoint *from, const uint8_t *data, size_t len);
/* The initiator uses what we made as a responder. */
void vnet_handshake_confirm(struct vnet_peer *p);
/* Forgets all keys and the handshake. */
void vnet_handshake_forget(struct vnet_peer *p);

/* data.c */
void vnet_data_keepalive(struct vnet_peer *p);
int vnet_data_send(struct vnet_peer *p, const struct vnet_packet *packet);
void vnet_data_send_staged(struct vnet_peer *p);
void vnet_data_drop_staged(struct vnet_peer *p);
void vnet_data_receive(
	struct vnet_tunnel *t, const struct vnet_endpoint *from, const uint8_t *data, size_t len);

#endif
