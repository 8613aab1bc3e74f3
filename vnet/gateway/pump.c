// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      socket --splice--> pipe --splice--> socket
 *
 * Pages go from one socket's queue to the other's.  A pipe is needed while something is in it,
 * which is seldom longer than one call: a flow takes one from the pool for each direction and gives
 * it back empty, so idle connections have no pipes.  Each pipe says in the arena whose bytes it
 * has: those of a worker that was killed are still in it, and are passed on by the next one.
 * Nothing is ever counted in memory that could be wrong by one call.
 *
 * Urgent data (TCP's, RFC 6093) is a mark in the stream at which splice(2) stops for good.  The
 * byte there is taken out of line, and sent as urgent again; where there is no room for that it
 * goes into the pipe as any other.  Sockets have SO_OOBINLINE, so it is where it was in the stream.
 * This is the one byte that a killed worker may take with it.
 *
 * Sockets are watched edge triggered, so a direction is run until it would wait - or until what
 * came was so little that there can't be more: a message there and back costs two calls each way.
 *
 * The last bytes before an end that is known to be there wait for it (SPLICE_F_MORE), for both fit
 * one packet, and so does the answer to them.
 */
#include "vnet/gateway/pump.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/base.h"
#include "vnet/gateway/gateway.h"

#define SLOTS	   256 /* of a pipe: each takes a page, or a byte */
#define PIPE_BYTES (SLOTS * 4096)
#define CHUNK	   (1u << 20)
#define TURNS	   16  /* of one direction before others have their turn */
#define DRAIN_RUNS 64  /* of what came from a side that has failed */
#define CACHED	   256 /* free pipes that stay open */
#define NO_PIPE	   2

struct gateway_pump {
	struct {
		uint64_t bytes, last; /* and when */
	} moved[GATEWAY_MAX_FLOWS];
	uint32_t n_free, n_unmade;
	int32_t free[GATEWAY_MAX_PIPES]; /* open, empty */
	uint16_t
		slots[GATEWAY_MAX_PIPES]; /* as far as known; a user's pipes together are limited */
	int32_t unmade[GATEWAY_MAX_PIPES]; /* not open */
};

/* ---- pipes ------------------------------------------------------------------------------- */

static size_t filled(const struct gateway_pipe *p)
{
	int n = 0;

	return ioctl(p->fd[0], FIONREAD, &n) < 0 ? 0 : (size_t)n;
}

static void put_pipe(struct vnet_gateway *g, int32_t index)
{
	struct gateway_pipe *p = &g->arena->pipes[index];
	struct gateway_pump *pump = g->pump;

	p->flow = -1;
	if (pump->n_free < CACHED) {
		pump->free[pump->n_free++] = index;
		return;
	}
	for (int end = 0; end < 2; end++) {
		int fd = p->fd[end];

		p->fd[end] = -1;
		close_fd(fd);
	}
	pump->unmade[pump->n_unmade++] = index;
}

static int32_t take_pipe(struct vnet_gateway *g, uint32_t flow, unsigned side)
{
	struct gateway_pump *pump = g->pump;
	struct gateway_pipe *p;
	int32_t index;
	int fd[2];

	if (pump->n_free) {
		index = pump->free[--pump->n_free];
		p = &g->arena->pipes[index];
	} else {
		if (!pump->n_unmade || pipe2(fd, O_CLOEXEC | O_NONBLOCK) < 0)
			return -1;
		index = pump->unmade[--pump->n_unmade];
		pump->slots[index] =
			fcntl(fd[1], F_SETPIPE_SZ, PIPE_BYTES) == PIPE_BYTES ? SLOTS : 1;
		p = &g->arena->pipes[index];
		p->fd[0] = fd[0];
		p->fd[1] = fd[1];
	}
	p->side = side;
	p->flow = (int32_t)flow;
	return index;
}

int gateway_pump_start(struct vnet_gateway *g, struct err *e)
{
	struct gateway_arena *a = g->arena;

	g->pump = calloc(1, sizeof(*g->pump));
	if (!g->pump)
		return err_errno(e, -ENOMEM, "gateway");
	for (size_t i = 0; i < GATEWAY_MAX_FLOWS; i++)
		a->flows[i].pipe[0] = a->flows[i].pipe[1] = -1;
	for (int32_t i = GATEWAY_MAX_PIPES - 1; i >= 0; i--) {
		struct gateway_pipe *p = &a->pipes[i];

		if (p->fd[0] < 0 || p->fd[1] < 0) {
			p->fd[0] = close_fd(p->fd[0]);
			p->fd[1] = close_fd(p->fd[1]);
			p->flow = -1;
			g->pump->unmade[g->pump->n_unmade++] = i;
		} else if (p->flow >= 0 && filled(p) &&
			   a->flows[p->flow].state != GATEWAY_FLOW_FREE) {
			a->flows[p->flow].pipe[p->side] = i;
		} else if (filled(p)) {
			/* Of a flow that is no more. */
			p->fd[0] = close_fd(p->fd[0]);
			p->fd[1] = close_fd(p->fd[1]);
			p->flow = -1;
			g->pump->unmade[g->pump->n_unmade++] = i;
		} else {
			put_pipe(g, i);
		}
	}
	return 0;
}

void gateway_pump_drop(struct vnet_gateway *g, int32_t pipe)
{
	struct gateway_pipe *p = pipe < 0 ? NULL : &g->arena->pipes[pipe];

	if (!p)
		return;
	for (int end = 0; end < 2; end++) {
		int fd = p->fd[end];

		p->fd[end] = -1;
		close_fd(fd);
	}
	p->flow = -1;
	g->pump->unmade[g->pump->n_unmade++] = pipe;
}

void gateway_pump_release(struct vnet_gateway *g, uint32_t flow)
{
	struct gateway_flow *f = &g->arena->flows[flow];

	for (int side = 0; side < 2; side++) {
		gateway_pump_drop(g, f->pipe[side]);
		f->pipe[side] = -1;
	}
	g->pump->moved[flow].bytes = g->pump->moved[flow].last = 0;
}

uint64_t gateway_pump_moved(const struct vnet_gateway *g, uint32_t flow)
{
	return g->pump->moved[flow].bytes;
}

static void count(struct vnet_gateway *g, uint32_t flow, size_t n)
{
	uint64_t now = gateway_loop_now(g->loop), *last = &g->pump->moved[flow].last;

	if (n < GATEWAY_PUMP_MESSAGE && now - *last < GATEWAY_PUMP_SOON_NS)
		n = GATEWAY_PUMP_MESSAGE;
	g->pump->moved[flow].bytes += n;
	*last = now;
}

int32_t gateway_pump_put_first(struct vnet_gateway *g, uint32_t flow, const void *data, size_t n)
{
	struct gateway_flow *f = &g->arena->flows[flow];
	int32_t index = take_pipe(g, flow, GATEWAY_OUTER), old = f->pipe[GATEWAY_OUTER];
	struct gateway_pipe *p = index < 0 ? NULL : &g->arena->pipes[index];
	bool fits = p && io_write_full(p->fd[1], data, n) == 0;

	if (p)
		p->flow = -1;
	while (fits && old >= 0 && filled(&g->arena->pipes[old]))
		fits = splice(g->arena->pipes[old].fd[0], NULL, p->fd[1], NULL, CHUNK,
			       SPLICE_F_MOVE | SPLICE_F_NONBLOCK) > 0;
	if (!fits) {
		gateway_pump_drop(g, index);
		return index < 0 ? -EMFILE : -ENOBUFS;
	}
	gateway_pump_drop(g, old);
	f->pipe[GATEWAY_OUTER] = -1;
	return index;
}

/* ---- one direction ----------------------------------------------------------------------- */

/* What can be had from the socket, into the pipe: as splice(2), with -errno. */
static ssize_t draw(const struct gateway_flow *f, const struct gateway_pipe *p, unsigned side)
{
	ssize_t n;

	do
		n = splice(f->fd[side], NULL, p->fd[1], NULL, CHUNK,
			SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/*
 * Of the @left bytes in the pipe as many as go.  Not one more is asked for: kernels from 6.5 on
 * take that for a promise when there are 16 pages, and keep the last bytes back (MSG_MORE) for 200
 * ms.
 */
static ssize_t push(const struct gateway_flow *f, const struct gateway_pipe *p, unsigned side,
	size_t left, bool ends)
{
	const unsigned flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK;
	ssize_t n;

	do
		n = splice(p->fd[0], NULL, f->fd[!side], NULL, left,
			ends ? flags | SPLICE_F_MORE : flags);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/*
 * splice(2) has given @drawn, nothing or an end (which it says at a mark, too): past the mark, if
 * there is one, with the pipe empty.  As draw(); *ret_moved: a byte went to the other side at once.
 */
static ssize_t pass_mark(struct gateway_flow *f, const struct gateway_pipe *p, unsigned side,
	ssize_t drawn, bool *ret_moved)
{
	ssize_t n;
	char byte;

	if (sockatmark(f->fd[side]) != 1)
		return drawn;
	n = recv(f->fd[side], &byte, 1, MSG_DONTWAIT);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	f->urgent[side] = false;
	*ret_moved = send(f->fd[!side], &byte, 1, MSG_OOB | MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
	if (*ret_moved)
		return 0;
	n = write(p->fd[1], &byte, 1);
	return n < 0 ? -errno : n;
}

static void give_back(struct vnet_gateway *g, struct gateway_flow *f, unsigned side)
{
	put_pipe(g, f->pipe[side]);
	f->pipe[side] = -1;
}

/* The pipe is empty and the socket has nothing (0) or is at its end. */
static int stop(struct vnet_gateway *g, struct gateway_flow *f, unsigned side, bool end)
{
	give_back(g, f, side);
	if (!end)
		return 0;
	if (shutdown(f->fd[!side], SHUT_WR) < 0)
		return -errno;
	f->ended[side] = true;
	return 0;
}

/*
 * From @side to the other one, *ret_moved bytes.  1: more at once; 0: as much as goes; NO_PIPE;
 * -errno: a side has failed.
 */
static int run_side(struct vnet_gateway *g, uint32_t flow, unsigned side,
	const struct gateway_pump_cause *why, bool *ret_moved)
{
	/* No end is to be expected; an end is all that comes behind what is there. */
	const bool quiet = why->side >= 0 && !(why->events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP)),
		   ends = why->side == (int)side && (why->events & EPOLLRDHUP) &&
			  !(why->events & EPOLLERR);
	struct gateway_flow *f = &g->arena->flows[flow];
	bool left_over = f->pipe[side] >= 0;
	struct gateway_pipe *p;
	bool last, marked = false;
	ssize_t left, n;

	if (!left_over)
		f->pipe[side] = take_pipe(g, flow, side);
	if (f->pipe[side] < 0)
		return NO_PIPE;
	p = &g->arena->pipes[f->pipe[side]];
	left = left_over ? (ssize_t)filled(p) : 0;
	for (int turn = 0; turn < TURNS; turn++) {
		if (left == 0)
			left = draw(f, p, side);
		if (left == 0 || (left == -EAGAIN && f->urgent[side]))
			left = pass_mark(f, p, side, left, &marked);
		if (marked) {
			*ret_moved = true;
			marked = false;
			continue;
		}
		if (left == 0 || left == -EAGAIN)
			return stop(g, f, side, left == 0);
		if (left < 0)
			return (int)left;
		/* Less than a byte for each slot: it was not the pipe that was full. */
		last = quiet && !left_over && !f->urgent[side] &&
		       left < g->pump->slots[f->pipe[side]];
		for (; left > 0; left -= n) {
			n = push(f, p, side, (size_t)left, ends);
			if (n <= 0)
				return n == -EAGAIN ? 0 : n ? (int)n : -EIO;
			count(g, flow, (size_t)n);
			*ret_moved = true;
		}
		if (last)
			return stop(g, f, side, false);
	}
	give_back(g, f, side);
	return 1;
}

/* Has something happened that lets bytes from @side go on? */
static bool concerns(const struct gateway_flow *f, const struct gateway_pump_cause *why, int side)
{
	if (f->ended[side])
		return false;
	if (why->side < 0 || (why->events & (EPOLLHUP | EPOLLERR)))
		return true;
	if (why->side == side)
		return why->events & (EPOLLIN | EPOLLPRI | EPOLLRDHUP);
	return (why->events & EPOLLOUT) && f->pipe[side] >= 0;
}

/*
 * A side has failed.  What came from it before its reset has arrived, as far as a program is
 * concerned that reads it (a refusal, and then a reset because of what it had sent meanwhile): it
 * goes on, as much as there is room for.
 */
static void drain(struct vnet_gateway *g, uint32_t flow, unsigned side, bool *ret_moved)
{
	const struct gateway_pump_cause all = {-1, 0};

	for (int i = 0; i < DRAIN_RUNS && !g->arena->flows[flow].ended[side]; i++)
		if (run_side(g, flow, side, &all, ret_moved) != 1)
			return;
}

enum gateway_pump_result gateway_pump_run(struct vnet_gateway *g, uint32_t flow,
	const struct gateway_pump_cause *why, bool *ret_inner, bool ret_blocked[2])
{
	struct gateway_flow *f = &g->arena->flows[flow];
	bool more = false, no_pipe = false, moved[2] = {false, false};

	for (int side = 0; side < 2; side++) {
		int r = 0;

		if (concerns(f, why, side))
			r = run_side(g, flow, (unsigned)side, why, &moved[side]);
		if (r < 0) {
			drain(g, flow, !side, &moved[!side]);
			*ret_inner = moved[GATEWAY_OUTER];
			return GATEWAY_PUMP_RESET;
		}
		more |= r == 1;
		no_pipe |= r == NO_PIPE;
		ret_blocked[!side] = f->pipe[side] >= 0 && r == 0;
	}
	*ret_inner = moved[GATEWAY_OUTER];
	if (f->ended[0] && f->ended[1])
		return GATEWAY_PUMP_OVER;
	if (no_pipe)
		return GATEWAY_PUMP_NO_PIPE;
	return more ? GATEWAY_PUMP_MORE : GATEWAY_PUMP_IDLE;
}
