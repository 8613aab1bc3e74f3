// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A PNG is a signature and chunks: IHDR, one IDAT with all rows as a zlib stream, IEND.  Each row
 * is told as differences to the pixel on the left (filter 1) or to the row above (2), whichever is
 * smaller.
 */
#include "display/viewer/picture.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <zlib.h>

#include "base/base.h"
#include "display/pixels.h"

#define LEVEL 6

enum { FILTER_SUB = 1, FILTER_UP = 2 };

static bool ends_in(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);

	return n > m && strcmp(path + n - m, suffix) == 0;
}

int display_picture_check(const char *path, struct err *e)
{
	if (ends_in(path, ".png") || ends_in(path, ".ppm"))
		return 0;
	return err_set(e, ERR_USAGE, -EINVAL, "%s: a picture's name ends in .png or .ppm", path);
}

static void put_rgb(const struct display_frame *f, int y, uint8_t *to)
{
	const uint32_t *p = display_frame_at(f, 0, y);

	for (int x = 0; x < f->width; x++, to += 3) {
		to[0] = (uint8_t)(p[x] >> 16);
		to[1] = (uint8_t)(p[x] >> 8);
		to[2] = (uint8_t)p[x];
	}
}

/* ---- PNG */

static void put_be32(uint8_t *to, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(v >> (24 - 8 * i));
}

static void put_chunk(struct buf *out, const char *type, const void *data, size_t n)
{
	size_t at = out->len;
	uint8_t *p = buf_grow(out, n + 12);

	if (!p)
		return;
	put_be32(p, (uint32_t)n);
	memcpy(p + 4, type, 4);
	if (n)
		memcpy(p + 8, data, n);
	p = out->data + at;
	put_be32(p + 8 + n, (uint32_t)crc32(0, p + 4, (uInt)(n + 4)));
}

/* The row's differences, and how large they are in sum. */
static unsigned long filter(const uint8_t *row, const uint8_t *other, size_t n, uint8_t *ret)
{
	unsigned long sum = 0;

	for (size_t i = 0; i < n; i++) {
		ret[i] = (uint8_t)(row[i] - other[i]);
		sum += (unsigned long)abs((int8_t)ret[i]);
	}
	return sum;
}

/* All rows, filtered. */
static uint8_t *filtered(const struct display_frame *f, size_t *ret_n)
{
	size_t width = (size_t)f->width * 3, n = (width + 1) * (size_t)f->height;
	_cleanup_free_ uint8_t *room = calloc(4, width + 3);
	uint8_t *out = malloc(n);
	uint8_t *above = room, *row = room + width + 3, *sub = row + width + 3,
		*up = sub + width + 3;

	if (!room || !out) {
		free(out);
		return NULL;
	}
	for (int y = 0; y < f->height; y++) {
		uint8_t *to = out + (size_t)y * (width + 1), *swap;
		bool is_up;

		/* Three bytes of 0 stand in front of each row. */
		put_rgb(f, y, row + 3);
		is_up = filter(row + 3, above + 3, width, up) < filter(row + 3, row, width, sub);
		to[0] = is_up ? FILTER_UP : FILTER_SUB;
		memcpy(to + 1, is_up ? up : sub, width);
		swap = above;
		above = row;
		row = swap;
	}
	*ret_n = n;
	return out;
}

static int put_png(struct buf *out, const struct display_frame *f)
{
	uint8_t head[13] = {[8] = 8 /* bits */, [9] = 2 /* RGB */};
	size_t n = 0;
	_cleanup_free_ uint8_t *rows = filtered(f, &n), *packed = NULL;
	uLongf len = compressBound(n);

	packed = rows ? malloc(len) : NULL;
	if (!packed || compress2(packed, &len, rows, n, LEVEL) != Z_OK)
		return -ENOMEM;
	put_be32(head, (uint32_t)f->width);
	put_be32(head + 4, (uint32_t)f->height);
	buf_put(out, "\x89PNG\r\n\x1a\n", 8);
	put_chunk(out, "IHDR", head, sizeof(head));
	put_chunk(out, "IDAT", packed, len);
	put_chunk(out, "IEND", NULL, 0);
	return buf_error(out);
}

static int put_ppm(struct buf *out, const struct display_frame *f)
{
	buf_printf(out, "P6\n%d %d\n255\n", f->width, f->height);
	for (int y = 0; y < f->height; y++) {
		uint8_t *to = buf_grow(out, (size_t)f->width * 3);

		if (to)
			put_rgb(f, y, to);
	}
	return buf_error(out);
}

int display_picture_write(const char *path, const struct display_frame *f, struct err *e)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r;

	if (display_picture_check(path, e) < 0)
		return e->error;
	r = ends_in(path, ".png") ? put_png(&out, f) : put_ppm(&out, f);
	if (r == 0)
		r = io_write_file(AT_FDCWD, path, out.data, out.len, 0666);
	return r < 0 ? err_errno(e, r, "can't write %s", path) : 0;
}
