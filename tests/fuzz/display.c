// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Any bytes from a display server, and from a viewer.
 *
 * The first byte says in how many pieces they come (and, bit 7, that a viewer has sent them); then
 * a picture of 64x48 is welcomed, so that what follows can be drawn.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "display/display.h"
#include "tests/fuzz/fuzz.h"

#define SIDE_MAX 512 /* pixels; a screen that is larger says nothing new, and takes long */

static const uint8_t welcome[] = {
	DISPLAY_WELCOME, 0, 0, 0, 6, 0, 0, 0, 0x08, 1, 0x10, 64, 0x18, 48};

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void changed(void *ctx, const struct display_rect *r)
{
	struct display_decoder **d = ctx;
	const struct display_frame *f = display_decoder_frame(*d);

	must(display_rect_within(r, f->width, f->height));
	for (int y = r->y; y < r->y + r->h; y++)
		for (int x = r->x; x < r->x + r->w; x++)
			must((*display_frame_at(f, x, y) & ~DISPLAY_RGB) == 0);
}

static const struct display_decoder_ops ops = {.changed = changed};

/* What is taken can be put, and is the same again. */
static void take_all(const uint8_t *data, size_t n, bool from_server)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	struct display_message m, again;
	size_t used, used_again;

	while (display_wire_take(data, n, from_server, &m, &used, NULL) > 0) {
		data += used;
		n -= used;
		if (m.type == DISPLAY_SKIP)
			continue;
		buf_clear(&out);
		display_wire_put(&out, &m);
		must(out.len == used);
		must(display_wire_take(out.data, out.len, from_server, &again, &used_again, NULL) ==
			1);
		must(used_again == used && again.type == m.type && again.data.len == m.data.len);
	}
}

/* True if it asks for a screen that takes too long here. */
static bool is_large(const uint8_t *data, size_t n)
{
	struct display_message m;
	size_t used;

	while (display_wire_take(data, n, true, &m, &used, NULL) > 0) {
		if (m.type == DISPLAY_WELCOME ||
			(m.type == DISPLAY_RESIZE && (m.size.w > SIDE_MAX || m.size.h > SIDE_MAX)))
			return true;
		data += used;
		n -= used;
	}
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct display_decoder *d;
	size_t pieces;

	if (size < 1)
		return 0;
	take_all(data + 1, size - 1, !(data[0] & 0x80));
	if (data[0] & 0x80 || is_large(data + 1, size - 1))
		return 0;
	pieces = (data[0] & 0x7fu) + 1;
	must(display_decoder_new(&ops, &d, &d) == 0);
	must(display_decoder_feed(d, welcome, sizeof(welcome), NULL) == 0);
	data++;
	size--;
	for (size_t i = 0, n; i < pieces; i++, data += n, size -= n) {
		n = i + 1 < pieces ? size / (pieces - i) : size;
		if (display_decoder_feed(d, data, n, NULL) < 0)
			break;
	}
	display_decoder_free(d);
	return 0;
}
