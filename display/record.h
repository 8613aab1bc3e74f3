/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record - a display's stream in a file, with times: what a viewer was sent, to be looked at again.
 *
 * "podrun display\n" and a version byte, 1; then pieces, little endian:
 *
 *      u64 microseconds since the beginning | u32 length, 1..DISPLAY_RECORD_PIECE | bytes
 *
 * Pieces end anywhere; together they are one stream of the wire (wire.h), from WELCOME on.
 */
#ifndef DISPLAY_RECORD_H
#define DISPLAY_RECORD_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define DISPLAY_RECORD_PIECE (1u << 20)

/* Into or from a file that somebody else opens and closes. */
struct display_record {
	int fd;
	uint64_t began_ns; /* writing */
	uint64_t us;	   /* reading: of the last piece */
};

/* Writes the beginning.  -errno as write(2). */
int display_record_begin(struct display_record *r, int fd, struct err *e);
/* Appends @n bytes that came at @now nanoseconds, CLOCK_MONOTONIC. */
int display_record_put(
	struct display_record *r, uint64_t now, const void *data, size_t n, struct err *e);

/* Reads the beginning.  -EBADMSG if it is no such file. */
int display_record_open(struct display_record *r, int fd, struct err *e);
/*
 * Appends the next piece to @piece and says when it came, in microseconds.  1, or 0 at the end, or
 * -EBADMSG; a piece that was cut off (its writer was killed) is the end.
 */
int display_record_next(
	struct display_record *r, struct buf *piece, uint64_t *ret_us, struct err *e);

#endif
