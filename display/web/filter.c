// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bodies but HELLO's are passed on as they come, so nothing is kept but a header that is not
 * complete.  Whether a body makes sense is the display server's to say: it trusts nobody either.
 */
#include "display/web/filter.h"

#include <errno.h>
#include <string.h>

#include "display/wire.h"
#include "proto/display.pb-c.h"

#define HELLO_MAX 4096 /* bytes of its body */

void display_filter_init(struct display_filter *f, bool view_only)
{
	*f = (struct display_filter){.view_only = view_only};
}

void display_filter_fini(struct display_filter *f)
{
	buf_fini(&f->begun);
}

/* What changes nothing in the session, though sizes of a picture are for the viewer alone. */
static bool is_harmless(unsigned type)
{
	return type == DISPLAY_HELLO || type == DISPLAY_ACK || type == DISPLAY_REFRESH;
}

static bool is_known(unsigned type)
{
	return type >= DISPLAY_HELLO && type <= DISPLAY_SCALE_IN;
}

/* The whole HELLO in f->begun. */
static int pass_hello(struct display_filter *f, struct buf *out)
{
	Pb__DisplayHello *hello = pb__display_hello__unpack(
		NULL, f->begun.len - DISPLAY_WIRE_HEAD, f->begun.data + DISPLAY_WIRE_HEAD);
	struct display_message m = {.type = DISPLAY_HELLO};
	size_t begin;
	uint8_t *body;

	if (!hello)
		return -EBADMSG;
	hello->view_only = hello->view_only || f->view_only;
	hello->token.len = 0; /* was for us */
	begin = display_wire_begin(out, &m);
	body = buf_grow(out, pb__display_hello__get_packed_size(hello));
	if (body)
		pb__display_hello__pack(hello, body);
	display_wire_end(out, begin);
	pb__display_hello__free_unpacked(hello, NULL);
	f->greeted = true;
	return buf_error(out);
}

/* A header is complete. */
static int begin_message(struct display_filter *f, struct buf *out)
{
	struct cursor c = cursor_of(f->begun.data, f->begun.len);
	unsigned type = cursor_u32(&c) & 0xff;
	uint32_t length = cursor_u32(&c);

	if (length > DISPLAY_WIRE_VIEWER_MAX)
		return -EMSGSIZE;
	if ((type == DISPLAY_HELLO) == f->greeted)
		return -EBADMSG;
	f->passing = length;
	f->dropped = !is_known(type) || (f->view_only && !is_harmless(type));
	if (type == DISPLAY_HELLO)
		return length <= HELLO_MAX ? 0 : -EMSGSIZE;
	if (!f->dropped)
		buf_put(out, f->begun.data, f->begun.len);
	buf_clear(&f->begun);
	return 0;
}

/* Takes up to @want bytes into f->begun. */
static size_t gather(struct display_filter *f, const uint8_t *data, size_t n, size_t want)
{
	size_t taken = MIN(n, want - f->begun.len);

	buf_put(&f->begun, data, taken);
	return taken;
}

int display_filter_feed(struct display_filter *f, const void *data, size_t n, struct buf *out)
{
	const uint8_t *p = data, *end = p + n;
	int r = 0;

	while (p < end && r == 0) {
		if (f->begun.len >= DISPLAY_WIRE_HEAD) { /* HELLO */
			p += gather(f, p, (size_t)(end - p), DISPLAY_WIRE_HEAD + f->passing);
		} else if (f->passing) {
			size_t taken = MIN((size_t)(end - p), f->passing);

			if (!f->dropped)
				buf_put(out, p, taken);
			f->passing -= taken;
			p += taken;
		} else {
			p += gather(f, p, (size_t)(end - p), DISPLAY_WIRE_HEAD);
			if (f->begun.len == DISPLAY_WIRE_HEAD)
				r = begin_message(f, out);
		}
		if (r == 0 && f->begun.len >= DISPLAY_WIRE_HEAD &&
			f->begun.len == DISPLAY_WIRE_HEAD + f->passing) {
			f->passing = 0;
			r = pass_hello(f, out);
			buf_clear(&f->begun);
		}
		if (r == 0 && (buf_error(out) < 0 || buf_error(&f->begun) < 0))
			r = -ENOMEM;
	}
	return r;
}
