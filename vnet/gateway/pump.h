/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pump - moves the bytes of a connection between its two sockets, without touching them.
 */
#ifndef VNET_GATEWAY_PUMP_H
#define VNET_GATEWAY_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct vnet_gateway;

/* A message costs what so many bytes do, however few it has. */
#define GATEWAY_PUMP_MESSAGE 2048u
/* If it follows the last so soon: programs talk to each other, and nobody thinks. */
#define GATEWAY_PUMP_SOON_NS 1000000u

enum gateway_pump_result {
	GATEWAY_PUMP_IDLE,    /* nothing to do before the next event */
	GATEWAY_PUMP_MORE,    /* there may be more: call again, after others had their turn */
	GATEWAY_PUMP_NO_PIPE, /* descriptors are short: call again after a while */
	GATEWAY_PUMP_OVER,    /* both sides have sent their end, and everything was passed on */
	GATEWAY_PUMP_RESET,   /* one side has failed */
};

/* At a worker's start: pipes with bytes in them belong to the flows that they say. */
int gateway_pump_start(struct vnet_gateway *g, struct err *e);
/*
 * What epoll has said of one side, or -1 and 0 for all there is; as much as goes without waiting.
 */
struct gateway_pump_cause {
	int side; /* enum gateway_side */
	uint32_t events;
};
/*
 * *ret_inner: bytes went to the inner socket.  *ret_blocked, by side: bytes wait for that socket to
 * take more.
 */
enum gateway_pump_result gateway_pump_run(struct vnet_gateway *g, uint32_t flow,
	const struct gateway_pump_cause *why, bool *ret_inner, bool ret_blocked[2]);
/*
 * Bytes that this worker has passed on, either way.  Less than GATEWAY_PUMP_MESSAGE are counted as
 * so many where they came soon after the last.
 */
uint64_t gateway_pump_moved(const struct vnet_gateway *g, uint32_t flow);
/* Bytes on their way are dropped, and the flow's pipes are free for others. */
void gateway_pump_release(struct vnet_gateway *g, uint32_t flow);

/*
 * A pipe with @n bytes in it, and behind them what was on its way from the flow's outer side, which
 * has no pipe then.  Nobody's until its record says whose; its index or a negative errno.
 */
int32_t gateway_pump_put_first(struct vnet_gateway *g, uint32_t flow, const void *data, size_t n);
/* Accepts -1. */
void gateway_pump_drop(struct vnet_gateway *g, int32_t pipe);

#endif
