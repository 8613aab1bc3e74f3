// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/codec/block.h"

#include <limits.h>
#include <lz4.h>
#include <zstd.h>

#include "base/base.h"

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

int display_block_pack(struct display_block *b, enum display_block_format format, int level,
	const void *data, size_t n, struct buf *out)
{
	const bool zstd = format == DISPLAY_BLOCK_ZSTD;
	size_t room = zstd ? ZSTD_compressBound(n) : (size_t)LZ4_compressBound((int)n), len;
	void *to = buf_reserve(out, room);

	if (!to)
		return -ENOMEM;
	if (zstd) {
		len = ZSTD_compressCCtx(b->pack, to, room, data, n, level);
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
