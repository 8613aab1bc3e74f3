// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      outbound    CONNECTING (outside) -> SHAKING (until the gate accepts) -> OPEN
 *      inbound     SHAKING (inside; the client is there already)            -> OPEN
 *
 * A flow is two records with one number: the translator's (vnet/vnat.h) and ours, with the sockets.
 * Ours begins later and ends earlier, so a number without ours is what a killed worker had not got
 * further with, and is dropped.
 *
 * A session's keepalives are answered by the inner kernel, so outside there are the gateway's own,
 * whether the session is there or away: no NAT on the way forgets a connection that is not used,
 * and one whose peer is gone ends.  Those that do not last are spared the calls.
 *
 * An end that one side sends is passed on when all before it was; a reset at once.  When both sides
 * have ended, the inner socket is kept until the session has acknowledged everything, however long
 * it is away.
 */
#include "vnet/gateway/flow.h"

#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/base.h"
#include "vnet/gateway/gateway.h"
#include "vnet/gateway/pump.h"
#include "vnet/gateway/veth.h"
#include "vnet/vnat.h"

/* Outside: with these a dead peer is noticed after two hours, as by most programs' own. */
#define KEEP_IDLE_S  120
#define KEEP_EVERY_S 60
#define KEEP_TIMES   127
#define ASK_TIMES    20
#define WATCHED	     (EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLET)
#define NO_PIPE_NS   20000000ull    /* until pipes are asked for again */
#define LASTS_NS     5000000000ull  /* the age from which a connection is kept alive */
#define STALE_NS     60000000000ull /* between two looks for those that do not come about */
/* connect() outside and the gate's handshake together take three minutes at most. */
#define SHAKING_NS 300000000000ull

struct flow_watch {
	struct gateway_watch side[2];
	struct gateway_later later, poked;
	struct vnet_gateway *g;
	bool for_room[2];   /* watched for EPOLLOUT as well */
	uint32_t missed[2]; /* events from before the flow was open */
	bool no_pipe;
	bool kept_alive;
};

struct gateway_flows {
	const struct gateway_flow_ops *ops[2];
	struct gateway_timer expire, no_pipe, stale, lasts;
	struct vnet_gateway *g;
	struct flow_watch watches[GATEWAY_MAX_FLOWS];
};

/* ---- ends -------------------------------------------------------------------------------- */

static void close_side(struct vnet_gateway *g, struct gateway_flow *f, unsigned side, bool reset)
{
	const struct linger hard = {.l_onoff = 1};
	int fd = f->fd[side];

	if (fd < 0)
		return;
	f->fd[side] = -1;
	if (reset)
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

void gateway_flow_close(struct vnet_gateway *g, uint32_t flow, bool reset)
{
	struct gateway_flow *f = &g->arena->flows[flow];

	gateway_loop_forget(g->loop, &g->flows->watches[flow].later);
	gateway_loop_forget(g->loop, &g->flows->watches[flow].poked);
	gateway_veth_flow_ends(g, flow);
	gateway_pump_release(g, flow);
	close_side(g, f, GATEWAY_INNER, reset);
	close_side(g, f, GATEWAY_OUTER, reset);
	f->state = GATEWAY_FLOW_FREE;
}

static void arm_expire(struct vnet_gateway *g)
{
	uint32_t seconds;

	vnet_vnat_set_clock(g->vnat, (uint32_t)(io_now_ns() / 1000000000u));
	seconds = vnet_vnat_expire(g->vnat);
	if (seconds != UINT32_MAX)
		gateway_loop_timer(g->loop, &g->flows->expire, (seconds + 1) * 1000000000ull);
}

static void on_expire(struct gateway_timer *t)
{
	arm_expire(gateway_container(t, struct gateway_flows, expire)->g);
}

static void ended(struct vnet_gateway *g, uint32_t flow)
{
	vnet_flow_linger(g->vnat, flow);
	if (!g->flows->expire.due)
		arm_expire(g);
	g->flow_ended(g, g->arena->flows[flow].session);
}

void gateway_flow_reset(struct vnet_gateway *g, uint32_t flow)
{
	gateway_flow_close(g, flow, true);
	ended(g, flow);
}

/* Has the session's kernel everything, the end included? */
static bool inner_delivered(const struct gateway_flow *f)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);
	int left = 0;

	if (ioctl(f->fd[GATEWAY_INNER], SIOCOUTQ, &left) == 0 && left == 0)
		return true;
	return getsockopt(f->fd[GATEWAY_INNER], IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_state == TCP_CLOSE;
}

void gateway_flow_refused(struct vnet_gateway *g, uint32_t flow)
{
	const struct gateway_flow *f = &g->arena->flows[flow];

	if (f->state == GATEWAY_FLOW_SHAKING && !f->inbound)
		gateway_flow_reset(g, flow);
}

void gateway_flow_forgotten(struct vnet_gateway *g, uint32_t flow)
{
	struct gateway_flow *f = &g->arena->flows[flow];

	if (vnet_flow_get(g->vnat, flow)->seen & VNET_SEEN_RST_INSIDE) {
		gateway_flow_reset(g, flow);
	} else if (f->state == GATEWAY_FLOW_OPEN && f->ended[0] && f->ended[1]) {
		close_side(g, f, GATEWAY_INNER, true);
		gateway_flow_close(g, flow, false);
		ended(g, flow);
	}
}

/*
 * What has happened may be an older socket's, that of the flow before this one in the same record.
 */
static bool is_connecting(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	return poll(&p, 1, 0) == 0;
}

/*
 * A session whose kernel never answers the gate, or has come back and does not send its SYN again;
 * one that stands still has time.
 */
static void on_stale(struct gateway_timer *t)
{
	struct vnet_gateway *g = gateway_container(t, struct gateway_flows, stale)->g;
	bool any = false;

	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS; i++) {
		const struct gateway_flow *f = &g->arena->flows[i];
		const struct gateway_session *s = &g->arena->sessions[f->session];

		if (f->inbound ||
			(f->state != GATEWAY_FLOW_SHAKING && f->state != GATEWAY_FLOW_CONNECTING))
			continue;
		any = true;
		if (!s->held && gateway_loop_now(g->loop) - f->since > SHAKING_NS &&
			!is_connecting(f->fd[GATEWAY_OUTER]))
			gateway_flow_reset(g, i);
	}
	if (any)
		gateway_loop_timer(g->loop, t, STALE_NS);
}

static void keep_alive(struct vnet_gateway *g, uint32_t flow)
{
	static const struct {
		int level, option, value;
	} all[] = {{SOL_SOCKET, SO_KEEPALIVE, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S},
		{IPPROTO_TCP, TCP_KEEPINTVL, KEEP_EVERY_S}, {IPPROTO_TCP, TCP_KEEPCNT, KEEP_TIMES}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		setsockopt(g->arena->flows[flow].fd[GATEWAY_OUTER], all[i].level, all[i].option,
			&all[i].value, sizeof(all[i].value));
	g->flows->watches[flow].kept_alive = true;
}

static void on_lasts(struct gateway_timer *t)
{
	struct vnet_gateway *g = gateway_container(t, struct gateway_flows, lasts)->g;

	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS; i++)
		if (g->arena->flows[i].state == GATEWAY_FLOW_OPEN &&
			!g->flows->watches[i].kept_alive)
			keep_alive(g, i);
}

static void expect_to_last(struct vnet_gateway *g, uint32_t flow)
{
	g->flows->watches[flow].kept_alive = false;
	if (!g->flows->lasts.due)
		gateway_loop_timer(g->loop, &g->flows->lasts, LASTS_NS);
}

static uint32_t flow_of(struct flow_watch *w)
{
	return (uint32_t)(w - w->g->flows->watches);
}

/* ---- events ------------------------------------------------------------------------------ */

/*
 * Watches a socket for room, or no more: most never need it, and an event that says no more than
 * "room" costs a turn.
 */
static void watch_for_room(struct vnet_gateway *g, uint32_t flow, unsigned side, bool on)
{
	struct flow_watch *w = &g->flows->watches[flow];

	if (w->for_room[side] == on || g->arena->flows[flow].fd[side] < 0)
		return;
	w->for_room[side] = on;
	gateway_loop_change(g->loop, g->arena->flows[flow].fd[side],
		on ? WATCHED | EPOLLOUT : WATCHED, &w->side[side]);
}

/* Nothing tells when there are pipes again. */
static void wait_for_pipe(struct vnet_gateway *g, uint32_t flow)
{
	g->flows->watches[flow].no_pipe = true;
	if (!g->flows->no_pipe.due)
		gateway_loop_timer(g->loop, &g->flows->no_pipe, NO_PIPE_NS);
}

static void on_no_pipe(struct gateway_timer *t)
{
	struct vnet_gateway *g = gateway_container(t, struct gateway_flows, no_pipe)->g;

	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS; i++) {
		struct flow_watch *w = &g->flows->watches[i];

		if (w->no_pipe && g->arena->flows[i].state == GATEWAY_FLOW_OPEN)
			gateway_loop_later(g->loop, &w->later);
		w->no_pipe = false;
	}
}

static void run_pump(struct vnet_gateway *g, uint32_t flow, int side, uint32_t events)
{
	const struct gateway_pump_cause why = {side, events};
	struct gateway_flow *f = &g->arena->flows[flow];
	bool ending = g->arena->sessions[f->session].state == GATEWAY_SESSION_ENDING;
	bool inner = false, blocked[2] = {false, false};
	enum gateway_pump_result r = gateway_pump_run(g, flow, &why, &inner, blocked);

	if (inner && g->inner_sends && !gateway_veth_is_fast(g, flow))
		g->inner_sends(g);
	if (r != GATEWAY_PUMP_RESET && r != GATEWAY_PUMP_OVER)
		gateway_veth_offer(g, flow);
	switch (r) {
	case GATEWAY_PUMP_IDLE:
		watch_for_room(g, flow, GATEWAY_INNER, blocked[GATEWAY_INNER]);
		if (blocked[GATEWAY_OUTER])
			watch_for_room(g, flow, GATEWAY_OUTER, true);
		if (ending && f->ended[GATEWAY_INNER])
			break;
		return;
	case GATEWAY_PUMP_MORE:
		gateway_loop_later(g->loop, &g->flows->watches[flow].later);
		return;
	case GATEWAY_PUMP_NO_PIPE:
		wait_for_pipe(g, flow);
		return;
	case GATEWAY_PUMP_RESET:
		gateway_flow_reset(g, flow);
		return;
	case GATEWAY_PUMP_OVER:
		if (!ending && !inner_delivered(f))
			return;
		break;
	}
	gateway_flow_close(g, flow, false);
	ended(g, flow);
}

void gateway_flow_poke(struct vnet_gateway *g, uint32_t flow)
{
	struct flow_watch *w = &g->flows->watches[flow];

	if (g->arena->flows[flow].state == GATEWAY_FLOW_OPEN)
		gateway_loop_later(g->loop, &w->poked);
	else
		w->missed[GATEWAY_INNER] |= EPOLLIN;
}

static void on_poked(struct gateway_later *l)
{
	struct flow_watch *fw = gateway_container(l, struct flow_watch, poked);
	uint32_t flow = flow_of(fw);

	if (fw->g->arena->flows[flow].state == GATEWAY_FLOW_OPEN)
		run_pump(fw->g, flow, GATEWAY_INNER, EPOLLIN);
}

static int socket_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
}

static void on_event(struct vnet_gateway *g, uint32_t flow, enum gateway_side side, uint32_t events)
{
	struct gateway_flow *f = &g->arena->flows[flow];
	enum gateway_side first = f->inbound ? GATEWAY_INNER : GATEWAY_OUTER;
	bool waits = f->state == (f->inbound ? GATEWAY_FLOW_SHAKING : GATEWAY_FLOW_CONNECTING);

	if (f->state == GATEWAY_FLOW_FREE)
		return;
	if (events & EPOLLPRI)
		f->urgent[side] = true;
	if (f->state == GATEWAY_FLOW_OPEN) {
		run_pump(g, flow, (int)side, events);
		return;
	}
	g->flows->watches[flow].missed[side] |= events;
	if (waits && side == first) {
		if (!is_connecting(f->fd[side]))
			g->flows->ops[f->inbound]->connected(g, flow, socket_error(f->fd[side]));
	} else if ((events & EPOLLERR) && f->fd[side] >= 0 && socket_error(f->fd[side])) {
		gateway_flow_reset(g, flow);
	}
}

static void on_inner(struct gateway_watch *w, uint32_t events)
{
	struct flow_watch *fw = gateway_container(w, struct flow_watch, side[GATEWAY_INNER]);

	on_event(fw->g, flow_of(fw), GATEWAY_INNER, events);
}

static void on_outer(struct gateway_watch *w, uint32_t events)
{
	struct flow_watch *fw = gateway_container(w, struct flow_watch, side[GATEWAY_OUTER]);

	on_event(fw->g, flow_of(fw), GATEWAY_OUTER, events);
}

static void on_later(struct gateway_later *l)
{
	struct flow_watch *fw = gateway_container(l, struct flow_watch, later);

	if (fw->g->arena->flows[flow_of(fw)].state == GATEWAY_FLOW_OPEN)
		run_pump(fw->g, flow_of(fw), -1, 0);
}

/* ---- beginnings -------------------------------------------------------------------------- */

struct gateway_flow *gateway_flow_begin(
	struct vnet_gateway *g, uint32_t flow, uint32_t session, bool inbound)
{
	struct gateway_flow *f = &g->arena->flows[flow];
	uint32_t *missed = g->flows->watches[flow].missed;

	missed[GATEWAY_INNER] = missed[GATEWAY_OUTER] = 0;
	*f = (struct gateway_flow){.session = session,
		.fd = {-1, -1},
		.pipe = {-1, -1},
		.inbound = inbound,
		.since = gateway_loop_now(g->loop)};
	g->arena->sessions[session].counts.opened++;
	if (!inbound && !g->flows->stale.due)
		gateway_loop_timer(g->loop, &g->flows->stale, STALE_NS);
	return f;
}

/* The session's kernel is asked in short intervals whether it still knows of the connection. */
static void ask_inner(const struct gateway_flow *f)
{
	static const struct {
		int level, option, value;
	} all[] = {{IPPROTO_TCP, TCP_KEEPIDLE, 1}, {IPPROTO_TCP, TCP_KEEPINTVL, 1},
		{IPPROTO_TCP, TCP_KEEPCNT, ASK_TIMES}, {SOL_SOCKET, SO_KEEPALIVE, 1}};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		setsockopt(f->fd[GATEWAY_INNER], all[i].level, all[i].option, &all[i].value,
			sizeof(all[i].value));
}

int gateway_flow_watch(struct vnet_gateway *g, uint32_t flow, enum gateway_side side)
{
	struct flow_watch *w = &g->flows->watches[flow];
	const struct gateway_flow *f = &g->arena->flows[flow];

	w->g = g;
	w->later.run = on_later;
	w->poked.run = on_poked;
	w->side[side].ready = side == GATEWAY_INNER ? on_inner : on_outer;
	/* Room is how a socket tells that it is connected. */
	w->for_room[side] = side == (f->inbound ? GATEWAY_INNER : GATEWAY_OUTER);
	return gateway_loop_add(g->loop, f->fd[side],
		w->for_room[side] ? WATCHED | EPOLLOUT : WATCHED, &w->side[side]);
}

void gateway_flow_open(struct vnet_gateway *g, uint32_t flow)
{
	struct gateway_flow *f = &g->arena->flows[flow];
	const uint32_t *missed = g->flows->watches[flow].missed;

	f->state = GATEWAY_FLOW_OPEN;
	expect_to_last(g, flow);
	if (g->arena->sessions[f->session].state == GATEWAY_SESSION_ENDING)
		ask_inner(f);
	for (int side = 0; side < 2 && f->state == GATEWAY_FLOW_OPEN; side++)
		if ((missed[side] & ~(uint32_t)EPOLLOUT) || f->pipe[side] >= 0)
			run_pump(g, flow, side, missed[side] | EPOLLIN);
}

/* ---- sessions ---------------------------------------------------------------------------- */

/* Has the session's kernel sent its end? */
static bool inner_ended(const struct gateway_flow *f)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	if (f->ended[GATEWAY_INNER])
		return true;
	if (getsockopt(f->fd[GATEWAY_INNER], IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return false;
	return info.tcpi_state == TCP_CLOSE_WAIT || info.tcpi_state == TCP_LAST_ACK ||
	       info.tcpi_state == TCP_CLOSING || info.tcpi_state == TCP_TIME_WAIT;
}

uint32_t gateway_flow_end_session(struct vnet_gateway *g, uint32_t session, bool now)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS; i++) {
		struct gateway_flow *f = &g->arena->flows[i];

		if (f->state == GATEWAY_FLOW_FREE || f->session != session)
			continue;
		if (now || f->state != GATEWAY_FLOW_OPEN || !inner_ended(f))
			gateway_flow_reset(g, i);
		else
			run_pump(g, i, -1, 0);
		left += f->state != GATEWAY_FLOW_FREE;
	}
	return left;
}

void gateway_flow_finish_session(struct vnet_gateway *g, uint32_t session)
{
	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS; i++) {
		struct gateway_flow *f = &g->arena->flows[i];

		if (f->state == GATEWAY_FLOW_FREE || f->session != session)
			continue;
		if (f->state == GATEWAY_FLOW_CONNECTING ||
			(f->inbound && f->state != GATEWAY_FLOW_OPEN))
			gateway_flow_reset(g, i);
		else if (f->state == GATEWAY_FLOW_OPEN && inner_ended(f))
			run_pump(g, i, -1, 0);
		else if (f->state == GATEWAY_FLOW_OPEN)
			ask_inner(f);
	}
}

void gateway_flow_keep_alive(struct vnet_gateway *g, uint32_t session)
{
	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS; i++)
		if (g->arena->flows[i].state != GATEWAY_FLOW_FREE &&
			g->arena->flows[i].session == session)
			keep_alive(g, i);
}

/* ---- the worker's start ------------------------------------------------------------------ */

int gateway_flow_start(struct vnet_gateway *g, struct err *e)
{
	g->flows = calloc(1, sizeof(*g->flows));
	if (!g->flows)
		return err_errno(e, -ENOMEM, "gateway");
	g->flows->g = g;
	g->flows->expire.fire = on_expire;
	g->flows->no_pipe.fire = on_no_pipe;
	g->flows->stale.fire = on_stale;
	g->flows->lasts.fire = on_lasts;
	return 0;
}

void gateway_flow_set_ops(struct vnet_gateway *g, bool inbound, const struct gateway_flow_ops *ops)
{
	g->flows->ops[inbound] = ops;
}

static void take_up(struct vnet_gateway *g, uint32_t i)
{
	struct gateway_flow *f = &g->arena->flows[i];
	const struct vnet_flow *v = vnet_flow_get(g->vnat, i);

	if (f->state == GATEWAY_FLOW_FREE) {
		if (v && v->state != VNET_FLOW_LINGER)
			vnet_flow_drop(g->vnat, i);
		return;
	}
	if (!v || v->state == VNET_FLOW_LINGER || v->session != f->session) {
		gateway_flow_close(g, i, true);
		return;
	}
	/* Between two name servers: the session's next SYN begins anew. */
	if (f->state == GATEWAY_FLOW_CONNECTING && f->fd[GATEWAY_OUTER] < 0) {
		gateway_flow_close(g, i, true);
		vnet_flow_drop(g->vnat, i);
		return;
	}
	/* The SYN has been let go, and perhaps not been written: the session sends it again. */
	if (f->state == GATEWAY_FLOW_CONNECTING && v->state == VNET_FLOW_OPEN)
		f->state = GATEWAY_FLOW_SHAKING;
	for (int side = 0; side < 2; side++)
		if (f->fd[side] >= 0)
			gateway_flow_watch(g, i, (enum gateway_side)side);
	/* Accepted by a worker that could not say so any more. */
	if (f->state == GATEWAY_FLOW_SHAKING && !f->inbound && f->fd[GATEWAY_INNER] >= 0)
		f->state = GATEWAY_FLOW_OPEN;
	if (f->state == GATEWAY_FLOW_OPEN) {
		g->flows->watches[i].later.run = on_later;
		gateway_loop_later(g->loop, &g->flows->watches[i].later);
		expect_to_last(g, i);
	}
}

void gateway_flow_take_up(struct vnet_gateway *g)
{
	for (uint32_t i = 0; i < GATEWAY_MAX_FLOWS; i++)
		take_up(g, i);
	arm_expire(g);
	gateway_loop_timer(g->loop, &g->flows->stale, STALE_NS);
}
