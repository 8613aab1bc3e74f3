/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pace - how much may be on its way to one viewer.
 *
 * Between the server and a viewer there may be relays, ssh and long lines, each with room for
 * seconds of pictures; what has gone there can't be overtaken by what a person waits for.  So marks
 * are sent with the stream, which a viewer acknowledges at once, and no more than a *window* is
 * sent beyond the last one.  The window grows while it is full and acknowledgements come as
 * quickly as they can, and shrinks when they come later: then the bytes only wait somewhere, in the
 * manner of TCP Vegas (Brakmo, Peterson 1995).
 *
 * A viewer that never acknowledges anything is not limited here but by its socket.
 */
#ifndef DISPLAY_PACE_H
#define DISPLAY_PACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISPLAY_PACE_MARKS 32

struct display_pace {
	uint64_t sent, acked; /* bytes of the stream */
	uint64_t marked;      /* `sent` at the last mark */
	uint64_t window;      /* bytes */
	uint64_t kept;	      /* the window behind a probe */
	uint64_t base_ns;     /* the shortest time of late; 0: unknown */
	uint64_t base_until;  /* when it is to be taken anew */
	uint64_t changed_at;  /* bytes: before these are acknowledged the window stays as it is */
	bool answered;	      /* it does acknowledge */
	bool full;	      /* the window was, since it was changed */
	bool probing;	      /* the window is small, to find base_ns */
	bool steady;	      /* it has been too large before */
	uint32_t serial;      /* of the last mark */
	struct display_pace_mark {
		uint32_t serial;
		uint64_t sent, ns;
	} marks[DISPLAY_PACE_MARKS];
};

void display_pace_init(struct display_pace *p);
/* @n bytes have been put into the stream. */
void display_pace_sent(struct display_pace *p, size_t n);
/* Bytes that may be put into it now; 0 until that is worth while. */
size_t display_pace_room(struct display_pace *p);
/* Is a mark due?  To be asked when something was sent, and when there is no room. */
bool display_pace_due(const struct display_pace *p);
/* The serial of a mark that is put into the stream now, at @now nanoseconds. */
uint32_t display_pace_mark(struct display_pace *p, uint64_t now);
/* What a viewer says it has; anything that was not asked is ignored. */
void display_pace_ack(struct display_pace *p, uint32_t serial, uint64_t now);
/* Nothing is on its way, as far as is known. */
bool display_pace_idle(const struct display_pace *p);

#endif
