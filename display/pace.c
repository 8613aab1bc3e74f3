// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * The last DISPLAY_PACE_MARKS marks are kept in a ring; one that was pushed out is never
 * acknowledged, a later one is.  From each answer comes the time that the bytes before it took.
 * The shortest is the line's own; what is longer is waiting, the viewer's work included.  A line
 * may become another one: once in BASE_NS the window is small until its bytes have run off, and
 * then the time is taken anew (as in BBR; Cardwell and others, 2016).
 *
 * The window is changed once for every window that was acknowledged: it grows quickly until it was
 * too large for the first time, and slowly from then on.
 */
#include "display/pace.h"

#include "base/base.h"

#define WINDOW_FIRST (256u << 10)
#define WINDOW_LEAST (16u << 10)
#define WINDOW_MOST  (16u << 20)
#define BASE_NS	     10000000000ull /* a line's time is found anew so often */
#define WAIT_NS	     25000000ull    /* of waiting is not too much */

void display_pace_init(struct display_pace *p)
{
	*p = (struct display_pace){.window = WINDOW_FIRST};
}

void display_pace_sent(struct display_pace *p, size_t n)
{
	p->sent += n;
}

size_t display_pace_room(struct display_pace *p)
{
	uint64_t on_its_way = p->sent - p->acked, left;

	if (!p->answered)
		return WINDOW_FIRST;
	left = on_its_way < p->window ? p->window - on_its_way : 0;
	if (left >= p->window / 16)
		return left;
	p->full = true;
	return 0;
}

bool display_pace_due(const struct display_pace *p)
{
	uint64_t unmarked = p->sent - p->marked;

	/* Nothing is sent behind a full window: what is in it must be marked. */
	return unmarked >= MAX(p->window / 8, 4u << 10) ||
	       (unmarked && p->sent - p->acked >= p->window - p->window / 16);
}

uint32_t display_pace_mark(struct display_pace *p, uint64_t now)
{
	uint32_t serial = ++p->serial;

	p->marks[serial % DISPLAY_PACE_MARKS] = (struct display_pace_mark){serial, p->sent, now};
	p->marked = p->sent;
	return serial;
}

/* Lets what waits run off, to see what the line's time is without it. */
static void probe(struct display_pace *p)
{
	p->probing = true;
	p->kept = p->window;
	p->window = WINDOW_LEAST;
	p->changed_at = p->sent;
}

/* The window for what comes, by how long this took. */
static void adapt(struct display_pace *p, uint64_t took)
{
	if (took > p->base_ns + p->base_ns / 4 + WAIT_NS) {
		p->window = MAX(p->window - p->window / 4, WINDOW_LEAST);
		p->steady = true;
	} else if (p->full) {
		p->window += p->steady ? p->window / 16 : p->window / 2;
		p->window = MIN(p->window, WINDOW_MOST);
	} else {
		return;
	}
	p->changed_at = p->sent;
	p->full = false;
}

void display_pace_ack(struct display_pace *p, uint32_t serial, uint64_t now)
{
	const struct display_pace_mark m = p->marks[serial % DISPLAY_PACE_MARKS];
	uint64_t took;

	if (m.serial != serial || serial == 0 || m.sent < p->acked || now < m.ns)
		return;
	took = MAX(now - m.ns, 1u);
	p->acked = m.sent;
	p->answered = true;
	if (!p->base_ns || took < p->base_ns)
		p->base_ns = took;
	if (p->acked <= p->changed_at)
		return;
	if (p->probing) {
		p->probing = false;
		p->window = p->kept;
		p->base_ns = took;
		p->base_until = now + BASE_NS;
		p->changed_at = p->sent;
	} else if (now >= p->base_until && p->base_until) {
		probe(p);
	} else {
		p->base_until = p->base_until ? p->base_until : now + BASE_NS;
		adapt(p, took);
	}
}

bool display_pace_idle(const struct display_pace *p)
{
	return !p->answered || p->acked == p->sent;
}
