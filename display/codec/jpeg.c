// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/codec/jpeg.h"

#include <limits.h>
#include <turbojpeg.h>

#include "base/base.h"

#define FULL_COLOUR 90 /* the quality from which on colours keep their resolution */

struct display_jpeg {
	tjhandle pack, unpack;
};

int display_jpeg_new(struct display_jpeg **ret_jpeg)
{
	struct display_jpeg *j = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->pack = tjInitCompress();
	j->unpack = tjInitDecompress();
	if (!j->pack || !j->unpack) {
		display_jpeg_free(j);
		return -ENOMEM;
	}
	*ret_jpeg = j;
	return 0;
}

void display_jpeg_free(struct display_jpeg *j)
{
	if (!j)
		return;
	if (j->pack)
		tjDestroy(j->pack);
	if (j->unpack)
		tjDestroy(j->unpack);
	free(j);
}

/* Pixels of a frame as the library calls them. */
static int format(void)
{
	return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? TJPF_BGRX : TJPF_XRGB;
}

int display_jpeg_pack(struct display_jpeg *j, const struct display_frame *f,
	const struct display_rect *r, int quality, struct buf *out)
{
	const int sampling = quality >= FULL_COLOUR ? TJSAMP_444 : TJSAMP_420;
	unsigned long room = tjBufSize(r->w, r->h, sampling), len = room;
	unsigned char *to = buf_reserve(out, room);

	if (!to)
		return -ENOMEM;
	if (tjCompress2(j->pack, (void *)display_frame_at(f, r->x, r->y), r->w, f->stride * 4, r->h,
		    format(), &to, &len, sampling, quality, TJFLAG_NOREALLOC) < 0)
		return -ENOMEM; /* nothing else can be wrong */
	out->len += len;
	return 0;
}

static void clear_upper(const struct display_frame *f, const struct display_rect *r)
{
	for (int y = r->y; y < r->y + r->h; y++) {
		uint32_t *row = display_frame_at(f, r->x, y);

		for (int i = 0; i < r->w; i++)
			row[i] &= DISPLAY_RGB;
	}
}

bool display_jpeg_unpack(struct display_jpeg *j, const void *data, size_t len,
	const struct display_frame *f, const struct display_rect *r)
{
	uint32_t *to = display_frame_at(f, r->x, r->y);
	int w, h, sampling, space;

	if (len > INT_MAX ||
		tjDecompressHeader3(j->unpack, data, len, &w, &h, &sampling, &space) < 0 ||
		w != r->w || h != r->h)
		return false;
	/* What a truncated picture lacks is grey: no reason to give the whole session up. */
	if (tjDecompress2(j->unpack, data, len, (void *)to, w, f->stride * 4, h, format(), 0) < 0 &&
		tjGetErrorCode(j->unpack) != TJERR_WARNING)
		return false;
	clear_upper(f, r);
	return true;
}
