/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compress - compression of one data frame, the only file of this room that knows libzstd (RFC
 * 8878).
 */
#ifndef PROTO_COMPRESS_H
#define PROTO_COMPRESS_H

#include <stddef.h>
#include <stdint.h>

struct proto_zstd; /* the tables of one thread, both directions, made as needed */

/* NULL without memory; freeing NULL is fine.  Not to be shared by threads. */
struct proto_zstd *proto_zstd_new(void);
void proto_zstd_free(struct proto_zstd *z);
/* Returns the compressed length, or 0 when @room is too small for it or memory is gone. */
size_t proto_zstd_pack(
	struct proto_zstd *z, int level, const void *data, size_t len, void *ret, size_t room);
/* -EBADMSG unless @data is one frame which gives exactly @len bytes. */
int proto_zstd_unpack(struct proto_zstd *z, const void *data, size_t stored, void *ret, size_t len);

#endif
