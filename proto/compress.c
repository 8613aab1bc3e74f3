// SPDX-License-Identifier: GPL-2.0-or-later
/* One context of each direction, kept: making one costs more than a small frame. */
#include "proto/compress.h"

#include <errno.h>
#include <stdlib.h>
#include <zstd.h>

struct proto_zstd {
	ZSTD_CCtx *pack;
	ZSTD_DCtx *unpack;
};

struct proto_zstd *proto_zstd_new(void)
{
	return calloc(1, sizeof(struct proto_zstd));
}

void proto_zstd_free(struct proto_zstd *z)
{
	if (!z)
		return;
	ZSTD_freeCCtx(z->pack);
	ZSTD_freeDCtx(z->unpack);
	free(z);
}

size_t proto_zstd_pack(
	struct proto_zstd *z, int level, const void *data, size_t len, void *ret, size_t room)
{
	size_t n;

	if (!z->pack)
		z->pack = ZSTD_createCCtx();
	if (!z->pack)
		return 0;
	n = ZSTD_compressCCtx(z->pack, ret, room, data, len, level);
	return ZSTD_isError(n) ? 0 : n;
}

int proto_zstd_unpack(struct proto_zstd *z, const void *data, size_t stored, void *ret, size_t len)
{
	size_t n;

	if (!z->unpack)
		z->unpack = ZSTD_createDCtx();
	if (!z->unpack)
		return -ENOMEM;
	/* A second frame behind the first would be decompressed as well: ask for exactly one. */
	if (ZSTD_findFrameCompressedSize(data, stored) != stored)
		return -EBADMSG;
	n = ZSTD_decompressDCtx(z->unpack, ret, len, data, stored);
	return ZSTD_isError(n) || n != len ? -EBADMSG : 0;
}
