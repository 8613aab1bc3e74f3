/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * block - bytes as lz4 blocks and zstd frames: each stands by itself, so that commands can be sent
 * in any order.
 */
#ifndef DISPLAY_CODEC_BLOCK_H
#define DISPLAY_CODEC_BLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

enum display_block_format {
	DISPLAY_BLOCK_LZ4,
	DISPLAY_BLOCK_ZSTD,
};

/* The compressors' memory. */
struct display_block;

/* -ENOMEM or 0. */
int display_block_new(struct display_block **ret_block);
/* Accepts NULL. */
void display_block_free(struct display_block *b);

/* In the place of a level: of left-deltas of a picture, in which little repeats but at length. */
#define DISPLAY_BLOCK_PICTURE 0

/*
 * Appends @n bytes (at most 64 MiB) of @data, compressed; @level is zstd's.  0, or -ENOMEM, then
 * @out is as it was.
 */
int display_block_pack(struct display_block *b, enum display_block_format format, int level,
	const void *data, size_t n, struct buf *out);

/* True if @data was exactly @n bytes, which are in @out then. */
bool display_block_unpack(struct display_block *b, enum display_block_format format,
	const void *data, size_t len, void *out, size_t n);

#endif
