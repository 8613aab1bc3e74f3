// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One table says what is in front of the data of each type, a letter for each field (below), and
 * whether data follows: putting and taking walk along the same letters.
 */
#include "display/wire.h"

#include <string.h>

#include "base/base.h"

/*
 * Fields:  R rect   P u16 x, y of a COPY's source   c u32 colour[0]   C u32 colour[1]
 *          t u8 tw, th, u16 0   k u8 codec, u8 0   a u16 x, y   s u16 w, h   n u32 serial
 *          T u64 time   S u16 percent, u16 0   h u16 hot x, y, w, h   K key   p pointer
 *          V u16 stream, u16 0   v u8 format, u8 0, u16 fw, fh, u64 time   * data to the end
 */
static const char *const layouts[128] = {
	[DISPLAY_WELCOME] = "*",
	[DISPLAY_RAW] = "Rk*",
	[DISPLAY_COPY] = "PR",
	[DISPLAY_SFILL] = "Rc",
	[DISPLAY_BITMAP] = "RcC*",
	[DISPLAY_PFILL] = "Rt*",
	[DISPLAY_VIDEO] = "VRv*",
	[DISPLAY_CURSOR] = "h*",
	[DISPLAY_POINTER_AT] = "a",
	[DISPLAY_AUDIO] = "T*",
	[DISPLAY_CLIPBOARD] = "*",
	[DISPLAY_RESIZE] = "s",
	[DISPLAY_NOTICE] = "*",
	[DISPLAY_UPDATED] = "n",
	[DISPLAY_FILE] = "*",
	[DISPLAY_MARK] = "n",
	[DISPLAY_KEEP] = "R",
	[DISPLAY_UNCOVER] = "R",
	[DISPLAY_HELLO] = "*",
	[DISPLAY_KEY] = "K",
	[DISPLAY_POINTER] = "p",
	[DISPLAY_CLIPBOARD_IN] = "*",
	[DISPLAY_RESIZE_IN] = "s",
	[DISPLAY_REFRESH] = "R",
	[DISPLAY_ACK] = "n",
	[DISPLAY_FILE_IN] = "*",
	[DISPLAY_SCALE_IN] = "S",
};

/* ---- putting --------------------------------------------------------------------------------- */

static void put_u16(struct buf *out, int v)
{
	buf_put_u8(out, (uint8_t)v);
	buf_put_u8(out, (uint8_t)(v >> 8));
}

static void put_4_u16(struct buf *out, int a, int b, int c, int d)
{
	put_u16(out, a);
	put_u16(out, b);
	put_u16(out, c);
	put_u16(out, d);
}

static void put_pair(struct buf *out, int a, int b)
{
	put_u16(out, a);
	put_u16(out, b);
}

static void put_key(struct buf *out, const struct display_message *m)
{
	buf_put_u32(out, m->key.keysym);
	put_u16(out, m->key.scancode);
	buf_put_u8(out, m->key.down);
	buf_put_u8(out, 0);
}

static void put_pointer(struct buf *out, const struct display_message *m)
{
	put_pair(out, m->pointer.x, m->pointer.y);
	buf_put_u8(out, m->pointer.buttons);
	buf_put_u8(out, 0);
	buf_put_u8(out, (uint8_t)m->pointer.wheel_x);
	buf_put_u8(out, (uint8_t)m->pointer.wheel_y);
}

static void put_video(struct buf *out, const struct display_message *m)
{
	buf_put_u8(out, m->video.format);
	buf_put_u8(out, 0);
	put_pair(out, m->video.fw, m->video.fh);
	buf_put_u64(out, m->video.time);
}

static void put_field(struct buf *out, char field, const struct display_message *m)
{
	switch (field) {
	case 'R':
		return put_4_u16(out, m->rect.x, m->rect.y, m->rect.w, m->rect.h);
	case 'P':
		return put_pair(out, m->sx, m->sy);
	case 'c':
		return buf_put_u32(out, m->colour[0]);
	case 'C':
		return buf_put_u32(out, m->colour[1]);
	case 't':
		return put_pair(out, m->tw | m->th << 8, 0);
	case 'k':
		return put_u16(out, m->codec);
	case 'a':
		return put_pair(out, m->at.x, m->at.y);
	case 's':
		return put_pair(out, m->size.w, m->size.h);
	case 'n':
		return buf_put_u32(out, m->serial);
	case 'S':
		return put_pair(out, m->percent, 0);
	case 'T':
		return buf_put_u64(out, m->time);
	case 'h':
		return put_4_u16(out, m->cursor.hot_x, m->cursor.hot_y, m->cursor.w, m->cursor.h);
	case 'K':
		return put_key(out, m);
	case 'p':
		return put_pointer(out, m);
	case 'V':
		return put_pair(out, m->video.stream, 0);
	case 'v':
		return put_video(out, m);
	}
}

size_t display_wire_begin(struct buf *out, const struct display_message *m)
{
	const char *layout = layouts[m->type & 127];
	size_t begin = out->len;

	buf_put_u8(out, (uint8_t)m->type);
	buf_put_u8(out, 0);
	put_u16(out, 0);
	buf_put_u32(out, 0);
	for (; layout && *layout && *layout != '*'; layout++)
		put_field(out, *layout, m);
	return begin;
}

void display_wire_end(struct buf *out, size_t begin)
{
	size_t len;

	if (out->failed)
		return;
	len = out->len - begin - DISPLAY_WIRE_HEAD;
	for (int i = 0; i < 4; i++)
		out->data[begin + 4 + (size_t)i] = (uint8_t)(len >> (8 * i));
}

void display_wire_put(struct buf *out, const struct display_message *m)
{
	size_t begin = display_wire_begin(out, m);
	const char *layout = layouts[m->type & 127];

	if (layout && strchr(layout, '*') && m->data.len)
		buf_put(out, m->data.data, m->data.len);
	display_wire_end(out, begin);
}

/* ---- taking ---------------------------------------------------------------------------------- */

static uint16_t take_u16(struct cursor *c)
{
	uint8_t low = cursor_u8(c);

	return (uint16_t)(low | cursor_u8(c) << 8);
}

static void take_pair(struct cursor *c, int *a, int *b)
{
	*a = take_u16(c);
	*b = take_u16(c);
}

static void take_rect(struct cursor *c, struct display_rect *r)
{
	take_pair(c, &r->x, &r->y);
	take_pair(c, &r->w, &r->h);
	if (!r->w || !r->h)
		c->bad = true;
}

static void take_tile(struct cursor *c, struct display_message *m)
{
	m->tw = cursor_u8(c);
	m->th = cursor_u8(c);
	take_u16(c);
	if (!m->tw || !m->th || m->tw > DISPLAY_TILE_MAX || m->th > DISPLAY_TILE_MAX)
		c->bad = true;
}

static void take_size(struct cursor *c, struct display_message *m)
{
	take_pair(c, &m->size.w, &m->size.h);
	if (!m->size.w || !m->size.h)
		c->bad = true;
}

static void take_cursor(struct cursor *c, struct display_message *m)
{
	take_pair(c, &m->cursor.hot_x, &m->cursor.hot_y);
	take_pair(c, &m->cursor.w, &m->cursor.h);
	if (m->cursor.w > DISPLAY_CURSOR_MAX || m->cursor.h > DISPLAY_CURSOR_MAX ||
		cursor_left(c) != (size_t)m->cursor.w * (size_t)m->cursor.h * 4)
		c->bad = true;
}

static void take_key(struct cursor *c, struct display_message *m)
{
	m->key.keysym = cursor_u32(c);
	m->key.scancode = take_u16(c);
	m->key.down = cursor_u8(c) != 0;
	cursor_u8(c);
}

static void take_pointer(struct cursor *c, struct display_message *m)
{
	m->pointer.x = (int16_t)take_u16(c);
	m->pointer.y = (int16_t)take_u16(c);
	m->pointer.buttons = cursor_u8(c);
	cursor_u8(c);
	m->pointer.wheel_x = (int8_t)cursor_u8(c);
	m->pointer.wheel_y = (int8_t)cursor_u8(c);
}

static void take_video(struct cursor *c, struct display_message *m)
{
	m->video.format = cursor_u8(c);
	cursor_u8(c);
	m->video.fw = take_u16(c);
	m->video.fh = take_u16(c);
	m->video.time = cursor_u64(c);
	if (!m->video.fw || !m->video.fh)
		c->bad = true;
}

static void take_field(struct cursor *c, char field, struct display_message *m)
{
	switch (field) {
	case 'R':
		return take_rect(c, &m->rect);
	case 'P':
		return take_pair(c, &m->sx, &m->sy);
	case 'c':
		m->colour[0] = cursor_u32(c) & DISPLAY_RGB;
		return;
	case 'C':
		m->colour[1] = cursor_u32(c) & DISPLAY_RGB;
		return;
	case 't':
		return take_tile(c, m);
	case 'k':
		m->codec = cursor_u8(c);
		cursor_u8(c);
		return;
	case 'a':
		return take_pair(c, &m->at.x, &m->at.y);
	case 's':
		return take_size(c, m);
	case 'n':
		m->serial = cursor_u32(c);
		return;
	case 'S':
		m->percent = take_u16(c);
		take_u16(c);
		return;
	case 'T':
		m->time = cursor_u64(c);
		return;
	case 'h':
		return take_cursor(c, m);
	case 'K':
		return take_key(c, m);
	case 'p':
		return take_pointer(c, m);
	case 'V':
		m->video.stream = take_u16(c);
		take_u16(c);
		return;
	case 'v':
		return take_video(c, m);
	}
}

static bool takes(enum display_type type, bool from_server)
{
	return type < ARRAY_SIZE(layouts) && layouts[type] && (type < DISPLAY_HELLO) == from_server;
}

/* True if the body is one of this type. */
static bool take_body(struct cursor *c, struct display_message *m)
{
	const char *layout = layouts[m->type];

	for (; *layout && *layout != '*'; layout++)
		take_field(c, *layout, m);
	if (*layout == '*') {
		m->data.len = cursor_left(c);
		m->data.data = cursor_take(c, m->data.len);
	}
	return !c->bad && cursor_left(c) == 0;
}

int display_wire_take(const void *data, size_t len, bool from_server,
	struct display_message *ret_message, size_t *ret_used, struct err *e)
{
	const uint32_t max = from_server ? DISPLAY_WIRE_SERVER_MAX : DISPLAY_WIRE_VIEWER_MAX;
	struct cursor head = cursor_of(data, len), body;
	struct display_message m = {0};
	uint32_t body_len;

	*ret_used = DISPLAY_WIRE_HEAD;
	if (len < DISPLAY_WIRE_HEAD)
		return 0;
	m.type = cursor_u8(&head);
	cursor_take(&head, 3);
	body_len = cursor_u32(&head);
	if (body_len > max)
		return err_set(e, ERR_FAILED, -EMSGSIZE,
			"a display message of type %d has %u bytes", (int)m.type, body_len);
	*ret_used += body_len;
	if (len < *ret_used)
		return 0;
	body = cursor_of((const uint8_t *)data + DISPLAY_WIRE_HEAD, body_len);
	if (!takes(m.type, from_server))
		m.type = DISPLAY_SKIP;
	else if (!take_body(&body, &m))
		return err_set(e, ERR_FAILED, -EBADMSG, "a display message of type %d is malformed",
			(int)m.type);
	*ret_message = m;
	return 1;
}
