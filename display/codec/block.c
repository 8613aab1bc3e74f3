// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/codec/block.h"

#include <limits.h>
#include <lz4.h>
#include <zstd.h>

#include "base/base.h"

/* Short matches are not worth their place in what is nearly noise; a small table is in the cache. */
#define PICTURE_LEVEL 1
#define PICTURE_HASH  10 /* bits */
#define PICTURE_MATCH 7	 /* bytes */

struct display_block {
	ZSTD_CCtx *pack;
	ZSTD_DCtx *unpack;
};

int display_block_new(struct display_block **ret_block)
{
	struct display_block *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->pack = ZSTD_createCCtx();
	b->unpack = ZSTD_createDCtx();
	if (!b->pack || !b->unpack) {
		display_block_free(b);
		return -ENOMEM;
	}
	*ret_block = b;
	return 0;
}

void display_block_free(struct display_block *b)
{
	if (!b)
		return;
	ZSTD_freeCCtx(b->pack);
	ZSTD_freeDCtx(b->unpack);
	free(b);
}

/* The number of bytes, or an error of zstd's. */
static size_t pack_zstd(
	struct display_block *b, int level, const void *data, size_t n, void *to, size_t room)
{
	const bool picture = level == DISPLAY_BLOCK_PICTURE;

	/* 0 is what the level says. */
	ZSTD_CCtx_setParameter(b->pack, ZSTD_c_compressionLevel, picture ? PICTURE_LEVEL : level);
	ZSTD_CCtx_setParameter(b->pack, ZSTD_c_hashLog, picture ? PICTURE_HASH : 0);
	ZSTD_CCtx_setParameter(b->pack, ZSTD_c_minMatch, picture ? PICTURE_MATCH : 0);
	return ZSTD_compress2(b->pack, to, room, data, n);
}

int display_block_pack(struct display_block *b, enum display_block_format format, int level,
	const void *data, size_t n, struct buf *out)
{
	const bool zstd = format == DISPLAY_BLOCK_ZSTD;
	size_t room = zstd ? ZSTD_compressBound(n) : (size_t)LZ4_compressBound((int)n), len;
	void *to = buf_reserve(out, room);

	if (!to)
		return -ENOMEM;
	if (zstd) {
		len = pack_zstd(b, level, data, n, to, room);
		if (ZSTD_isError(len))
			return -ENOMEM; /* nothing else can be wrong */
	} else {
		len = (size_t)LZ4_compress_default(data, to, (int)n, (int)room);
	}
	out->len += len;
	return 0;
}

bool display_block_unpack(struct display_block *b, enum display_block_format format,
	const void *data, size_t len, void *out, size_t n)
{
	if (len > INT_MAX || n > INT_MAX)
		return false;
	if (format == DISPLAY_BLOCK_ZSTD)
		return ZSTD_decompressDCtx(b->unpack, out, n, data, len) == n;
	return LZ4_decompress_safe(data, out, (int)len, (int)n) == (int)n;
}
