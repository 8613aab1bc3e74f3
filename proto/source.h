/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * source - where an image is read from, strictly forwards: a file, a pipe, a socket.
 *
 * Short reads go through a buffer, long ones straight to where they belong.  A regular file is
 * read with pread from where its offset stood, so the descriptor's offset is left alone and two
 * processes may read one file.
 *
 * The last byte of a pipe is not taken out of it before proto_source_take: it is looked at with
 * tee(2).  Whoever wrote it can see that it is still there (FIONREAD) when we have gone away, and
 * so that we did not want what we read.
 */
#ifndef PROTO_SOURCE_H
#define PROTO_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct proto_worker;

struct proto_source {
	int fd;
	bool file;	   /* regular */
	uint64_t start;	   /* of the image in it */
	uint64_t size;	   /* of a file from start, as it was first seen */
	uint64_t position; /* in the image, of what is given next */
	uint8_t *buffer;
	size_t at, filled;
	int beside[2]; /* for a pipe: another one, to look at a byte through; else -1 */
	bool seen;     /* the next byte in the pipe has been given already */
	bool skipped; /* so little is wanted at a time */
};

/* @fd is borrowed. */
int proto_source_init(struct proto_source *s, int fd, struct err *e);
void proto_source_fini(struct proto_source *s);
/* Exactly @n bytes; ERR_IMAGE (-EBADMSG) when the stream ends before. */
int proto_source_read(
	struct proto_source *s, struct proto_worker *by, void *data, size_t n, struct err *e);
/* @n (< PROTO_ALIGN) bytes which must be zero. */
int proto_source_skip_zeros(
	struct proto_source *s, struct proto_worker *by, size_t n, struct err *e);
/* Passes over @n bytes of a file. */
int proto_source_skip(struct proto_source *s, size_t n, struct err *e);
/* True if @n bytes can be had without waiting for whoever writes. */
bool proto_source_has(const struct proto_source *s, size_t n);
/* How much is still to come: of a file; of anything else nobody knows, and it is UINT64_MAX. */
uint64_t proto_source_left(const struct proto_source *s);
/* Where the next byte is in a file, or -1. */
int64_t proto_source_file_offset(const struct proto_source *s);
/* What was read is kept: its last byte leaves the pipe.  False: it was fetched back. */
bool proto_source_take(struct proto_source *s);
/* True if something is left in a file.  A pipe may go on with something else. */
bool proto_source_trailing(const struct proto_source *s);

#endif
