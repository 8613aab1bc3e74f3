// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * When a peer is to be spoken to (paper, sections 6.2 to 6.5).
 *
 * Events set and clear times in the peer; nothing is called before its time has come.  The tunnel
 * keeps one time that no timer is before, so that an event costs an assignment, and a wake-up for
 * a timer that was cleared meanwhile costs a look at all of them.
 */
#include "vnet/tunnel/device.h"

#include "base/base.h"

#define ATTEMPTS_MAX (VNET_REKEY_ATTEMPT / VNET_REKEY_TIMEOUT)
#define JITTER	     (SECONDS / 3) /* so that two who have tried at once do not do so again */

void vnet_timers_set(struct vnet_peer *p, enum vnet_timer which, uint64_t after)
{
	p->timers[which] = p->tunnel->now + after;
	p->tunnel->due = MIN(p->tunnel->due, p->timers[which]);
}

static uint64_t jitter(void)
{
	uint32_t random = 0;

	(void)vnet_crypto_random(&random, sizeof(random));
	return random % JITTER;
}

void vnet_timers_data_sent(struct vnet_peer *p)
{
	if (!p->timers[VNET_TIMER_NEW_HANDSHAKE])
		vnet_timers_set(p, VNET_TIMER_NEW_HANDSHAKE,
			VNET_KEEPALIVE_TIMEOUT + VNET_REKEY_TIMEOUT + jitter());
}

void vnet_timers_data_received(struct vnet_peer *p)
{
	if (!p->timers[VNET_TIMER_KEEPALIVE])
		vnet_timers_set(p, VNET_TIMER_KEEPALIVE, VNET_KEEPALIVE_TIMEOUT);
	else
		p->another_keepalive = true;
}

static void any_traversal(struct vnet_peer *p)
{
	if (p->persistent)
		vnet_timers_set(p, VNET_TIMER_PERSISTENT, p->persistent);
}

void vnet_timers_any_sent(struct vnet_peer *p)
{
	p->timers[VNET_TIMER_KEEPALIVE] = 0;
	any_traversal(p);
}

void vnet_timers_any_received(struct vnet_peer *p)
{
	p->timers[VNET_TIMER_NEW_HANDSHAKE] = 0;
	any_traversal(p);
}

void vnet_timers_initiated(struct vnet_peer *p)
{
	vnet_timers_set(p, VNET_TIMER_RETRANSMIT, VNET_REKEY_TIMEOUT + jitter());
}

void vnet_timers_complete(struct vnet_peer *p)
{
	p->timers[VNET_TIMER_RETRANSMIT] = 0;
	p->attempts = 0;
	p->last_minute = false;
	p->stats.handshake = p->tunnel->now;
}

void vnet_timers_derived(struct vnet_peer *p)
{
	vnet_timers_set(p, VNET_TIMER_FORGET, 3 * VNET_REJECT_AFTER);
}

static void retransmit(struct vnet_peer *p)
{
	if (p->attempts >= ATTEMPTS_MAX) {
		/* Nobody is there.  The next packet begins anew. */
		p->timers[VNET_TIMER_KEEPALIVE] = 0;
		vnet_data_drop_staged(p);
		if (!p->timers[VNET_TIMER_FORGET])
			vnet_timers_set(p, VNET_TIMER_FORGET, 3 * VNET_REJECT_AFTER);
		return;
	}
	p->attempts++;
	vnet_handshake_start(p, true);
}

static void keepalive(struct vnet_peer *p)
{
	vnet_data_keepalive(p);
	if (p->another_keepalive) {
		p->another_keepalive = false;
		vnet_timers_set(p, VNET_TIMER_KEEPALIVE, VNET_KEEPALIVE_TIMEOUT);
	}
}

static void new_handshake(struct vnet_peer *p)
{
	vnet_handshake_start(p, false);
}

static void forget(struct vnet_peer *p)
{
	vnet_data_drop_staged(p);
	vnet_handshake_forget(p);
}

static void persistent(struct vnet_peer *p)
{
	if (p->persistent)
		vnet_data_keepalive(p);
}

static void (*const actions[])(struct vnet_peer *p) = {
	[VNET_TIMER_RETRANSMIT] = retransmit,
	[VNET_TIMER_KEEPALIVE] = keepalive,
	[VNET_TIMER_NEW_HANDSHAKE] = new_handshake,
	[VNET_TIMER_FORGET] = forget,
	[VNET_TIMER_PERSISTENT] = persistent,
};
static_assert(ARRAY_SIZE(actions) == VNET_TIMER_MAX, "a timer without an action");

static void run_peer(struct vnet_peer *p)
{
	for (unsigned i = 0; i < VNET_TIMER_MAX; i++) {
		if (!p->timers[i] || p->timers[i] > p->tunnel->now)
			continue;
		p->timers[i] = 0;
		actions[i](p);
	}
	for (unsigned i = 0; i < VNET_TIMER_MAX; i++)
		if (p->timers[i])
			p->tunnel->due = MIN(p->tunnel->due, p->timers[i]);
}

void vnet_timers_run(struct vnet_tunnel *t)
{
	if (t->now < t->due)
		return;
	t->due = VNET_CARRIER_NEVER;
	for (uint32_t i = 0; i < t->n_peers; i++)
		run_peer(&t->peers[i]);
}
