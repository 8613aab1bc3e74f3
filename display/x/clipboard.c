// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Selections as ICCCM, section 2, has them.  XFixes tells when CLIPBOARD has another owner;
 * unless it is us, its text is asked for, and the answer comes as a property of our window, whole
 * or (INCR) in pieces, each of which is deleted to have the next.  What comes later replaces what
 * is under way.  Of one that is too long viewers are told that, once.
 *
 * A viewer's text makes us the owner, and whoever asks is answered the same two ways.  Ours ends
 * with the connection, so the text is kept and offered again on the next one, unless somebody has
 * copied something meanwhile: a freeze takes nothing away.  What comes during one is offered on the
 * next connection whoever is the owner then, for it is what was copied last.
 *
 * It makes us the owner of PRIMARY as well, which the middle button pastes.  The other way round
 * PRIMARY is left alone: whoever selects something to paste over it wants to keep what was copied.
 */
#include "display/x/clipboard.h"

#include <assert.h>
#include <string.h>
#include <xcb/xfixes.h>

#include "display/source.h"
#include "display/text.h"

#define PIECE_MAX (64u << 10)

static const char *const names[] = {
	[DISPLAY_X_CLIPBOARD] = "CLIPBOARD",
	[DISPLAY_X_UTF8_STRING] = "UTF8_STRING",
	[DISPLAY_X_TEXT_PLAIN] = "text/plain;charset=utf-8",
	[DISPLAY_X_TEXT] = "TEXT",
	[DISPLAY_X_TARGETS] = "TARGETS",
	[DISPLAY_X_TIMESTAMP] = "TIMESTAMP",
	[DISPLAY_X_INCR] = "INCR",
	[DISPLAY_X_PROPERTY] = "PODRUN_CLIPBOARD",
};
static_assert(ARRAY_SIZE(names) == DISPLAY_X_ATOMS, "an atom without a name");

/* ---- from the session ------------------------------------------------------------------------ */

static void forget_incoming(struct display_x_clipboard *b)
{
	buf_fini(&b->incoming);
	b->incoming = BUF_INIT;
	b->incremental = false;
}

static void ask(struct display_x_clipboard *b, xcb_timestamp_t time)
{
	forget_incoming(b);
	xcb_convert_selection(b->c, b->window, b->atoms[DISPLAY_X_CLIPBOARD],
		b->atoms[DISPLAY_X_UTF8_STRING], b->atoms[DISPLAY_X_PROPERTY], time);
	xcb_flush(b->c);
}

static void on_owner(struct display_x_clipboard *b, const xcb_xfixes_selection_notify_event_t *n)
{
	if (n->selection == XCB_ATOM_PRIMARY)
		b->primary = n->owner == b->window;
	if (n->selection != b->atoms[DISPLAY_X_CLIPBOARD])
		return;
	b->owner = n->owner == b->window;
	b->again = false;
	if (!b->owner && n->owner != XCB_NONE)
		ask(b, n->selection_timestamp);
}

/* What programs call text need not be any. */
static size_t valid_length(const uint8_t *p, size_t len)
{
	size_t i = 0;

	while (i < len) {
		size_t more = p[i] < 0x80 ? 0 : p[i] >= 0xf0 ? 3 : p[i] >= 0xe0 ? 2 : 1;

		if (!p[i] || (p[i] >= 0x80 && p[i] < 0xc2) || p[i] > 0xf4 || more >= len - i)
			break;
		for (size_t k = 1; k <= more; k++)
			if ((p[i + k] & 0xc0) != 0x80)
				return i;
		i += more + 1;
	}
	return i;
}

static void take_incoming(struct display_x_clipboard *b)
{
	size_t len = valid_length(b->incoming.data, b->incoming.len);

	bool known =
		b->again && len == b->told.len && memcmp(b->incoming.data, b->told.data, len) == 0;

	b->again = b->told_long = false;
	if (buf_error(&b->incoming) == 0 && len && !known) {
		b->told.len = 0;
		buf_put(&b->told, b->incoming.data, len);
		b->text(b->arg, (const char *)b->incoming.data, len);
	}
	forget_incoming(b);
}

/* It has failed so; what is too long is told, but not again for being asked for again. */
static void refuse_incoming(struct display_x_clipboard *b, int error)
{
	bool known = b->again && b->told_long;

	forget_incoming(b);
	b->again = false;
	b->told_long = error == -E2BIG;
	if (b->told_long && !known)
		b->text(b->arg, NULL, 0);
}

/* Our property has a piece, or all; -EAGAIN: more will come, piece by piece. */
static int read_property(struct display_x_clipboard *b, size_t *ret_len)
{
	xcb_get_property_reply_t *r;
	size_t len;
	int done = 0;

	r = xcb_get_property_reply(b->c,
		xcb_get_property(b->c, true, b->window, b->atoms[DISPLAY_X_PROPERTY],
			XCB_GET_PROPERTY_TYPE_ANY, 0, DISPLAY_CLIPBOARD_MAX / 4),
		NULL);
	if (!r)
		return -EIO;
	len = (size_t)xcb_get_property_value_length(r);
	if (len > (size_t)r->length * 4)
		done = -EBADMSG; /* it says to have more than it has sent */
	else if (r->type == b->atoms[DISPLAY_X_INCR])
		done = -EAGAIN;
	else if (r->format != 8)
		done = -EBADMSG;
	else if (b->incoming.len + len > DISPLAY_CLIPBOARD_MAX || r->bytes_after)
		done = -E2BIG;
	else
		buf_put(&b->incoming, xcb_get_property_value(r), len);
	/* Not deleted by being read in part. */
	if (r->bytes_after)
		xcb_delete_property(b->c, b->window, b->atoms[DISPLAY_X_PROPERTY]);
	*ret_len = len;
	free(r);
	xcb_flush(b->c);
	return done;
}

static void on_answer(struct display_x_clipboard *b, const xcb_selection_notify_event_t *n)
{
	size_t len;
	int r;

	if (n->property == XCB_NONE || n->requestor != b->window)
		return;
	forget_incoming(b);
	r = read_property(b, &len);
	if (r == 0)
		take_incoming(b);
	else if (r == -EAGAIN)
		b->incremental = true;
	else
		refuse_incoming(b, r);
}

static void on_piece(struct display_x_clipboard *b)
{
	size_t len = 0;
	int r = read_property(b, &len);

	if (r == 0 && len == 0)
		take_incoming(b);
	else if (r < 0)
		refuse_incoming(b, r);
}

/* ---- for the session ------------------------------------------------------------------------- */

static void put_property(struct display_x_clipboard *b, xcb_window_t window, xcb_atom_t property,
	xcb_atom_t type, uint8_t format, const void *data, size_t n)
{
	xcb_change_property(
		b->c, XCB_PROP_MODE_REPLACE, window, property, type, format, (uint32_t)n, data);
}

/*
 * Who asks again has forgotten what it asked for before; and whoever has not taken all may be gone,
 * so that the oldest has to make room for others.
 */
static unsigned choose_request(
	const struct display_x_clipboard *b, xcb_window_t window, xcb_atom_t property)
{
	unsigned found = 0;

	for (unsigned i = 0; i < DISPLAY_X_REQUESTS; i++) {
		if (b->requests[i].window == window && b->requests[i].property == property)
			return i;
		if (b->requests[i].begun < b->requests[found].begun)
			found = i;
	}
	return found;
}

/* The first of a text in pieces: how long it is at least. */
static bool begin_pieces(struct display_x_clipboard *b, const xcb_selection_request_event_t *q,
	xcb_atom_t property, xcb_atom_t type, struct buf *text)
{
	const uint32_t events = XCB_EVENT_MASK_PROPERTY_CHANGE;
	unsigned i = choose_request(b, q->requestor, property);
	uint32_t size = (uint32_t)text->len;

	buf_fini(&b->requests[i].text);
	b->requests[i].text = *text;
	*text = BUF_INIT;
	b->requests[i].window = q->requestor;
	b->requests[i].property = property;
	b->requests[i].type = type;
	b->requests[i].sent = 0;
	b->requests[i].begun = ++b->n_begun;
	xcb_change_window_attributes(b->c, q->requestor, XCB_CW_EVENT_MASK, &events);
	put_property(b, q->requestor, property, b->atoms[DISPLAY_X_INCR], 32, &size, 1);
	return true;
}

static void end_pieces(struct display_x_clipboard *b, unsigned i)
{
	buf_fini(&b->requests[i].text);
	b->requests[i].text = BUF_INIT;
	b->requests[i].window = XCB_NONE;
	b->requests[i].begun = 0;
}

/* The one before has been taken: the next, and at last an empty one. */
static void next_piece(struct display_x_clipboard *b, const xcb_property_notify_event_t *n)
{
	for (unsigned i = 0; i < DISPLAY_X_REQUESTS; i++) {
		size_t rest;

		if (b->requests[i].window != n->window || b->requests[i].property != n->atom)
			continue;
		rest = MIN(b->requests[i].text.len - b->requests[i].sent, (size_t)b->max);
		put_property(b, n->window, n->atom, b->requests[i].type, 8,
			b->requests[i].text.data + b->requests[i].sent, rest);
		b->requests[i].sent += rest;
		if (!rest)
			end_pieces(b, i);
		break;
	}
	xcb_flush(b->c);
}

/* True if @target is one that text can be had as. */
static bool is_text(const struct display_x_clipboard *b, xcb_atom_t target)
{
	return target == b->atoms[DISPLAY_X_UTF8_STRING] ||
	       target == b->atoms[DISPLAY_X_TEXT_PLAIN] || target == b->atoms[DISPLAY_X_TEXT] ||
	       target == XCB_ATOM_STRING;
}

static bool answer_text(
	struct display_x_clipboard *b, const xcb_selection_request_event_t *q, xcb_atom_t property)
{
	xcb_atom_t type = q->target == b->atoms[DISPLAY_X_TEXT] ? b->atoms[DISPLAY_X_UTF8_STRING]
								: q->target;
	_cleanup_buf_ struct buf text = BUF_INIT;

	/* ICCCM, section 2.6.2: a STRING is Latin-1. */
	if (type == XCB_ATOM_STRING)
		display_text_put_latin1(&text, b->own.data, b->own.len);
	else
		buf_put(&text, b->own.data, b->own.len);
	if (buf_error(&text) < 0)
		return false;
	if (text.len > b->max)
		return begin_pieces(b, q, property, type, &text);
	put_property(b, q->requestor, property, type, 8, text.data, text.len);
	return true;
}

static bool answer(
	struct display_x_clipboard *b, const xcb_selection_request_event_t *q, xcb_atom_t property)
{
	const xcb_atom_t targets[] = {b->atoms[DISPLAY_X_TARGETS], b->atoms[DISPLAY_X_UTF8_STRING],
		b->atoms[DISPLAY_X_TEXT_PLAIN], b->atoms[DISPLAY_X_TEXT], XCB_ATOM_STRING};

	if (!(b->owner && q->selection == b->atoms[DISPLAY_X_CLIPBOARD]) &&
		!(b->primary && q->selection == XCB_ATOM_PRIMARY))
		return false;
	if (q->target == b->atoms[DISPLAY_X_TARGETS]) {
		put_property(
			b, q->requestor, property, XCB_ATOM_ATOM, 32, targets, ARRAY_SIZE(targets));
		return true;
	}
	return is_text(b, q->target) && answer_text(b, q, property);
}

static void on_request(struct display_x_clipboard *b, const xcb_selection_request_event_t *q)
{
	/* Clients of old say no property: ICCCM, section 2.2. */
	xcb_atom_t property = q->property ? q->property : q->target;
	union {
		xcb_selection_notify_event_t n;
		char bytes[32];
	} reply = {.n = {.response_type = XCB_SELECTION_NOTIFY,
			   .time = q->time,
			   .requestor = q->requestor,
			   .selection = q->selection,
			   .target = q->target}};

	if (answer(b, q, property))
		reply.n.property = property;
	xcb_send_event(b->c, false, q->requestor, XCB_EVENT_MASK_NO_EVENT, reply.bytes);
	xcb_flush(b->c);
}

static void become_owner(struct display_x_clipboard *b, bool primary)
{
	b->owner = true;
	b->primary = primary;
	xcb_set_selection_owner(b->c, b->window, b->atoms[DISPLAY_X_CLIPBOARD], XCB_CURRENT_TIME);
	if (primary)
		xcb_set_selection_owner(b->c, b->window, XCB_ATOM_PRIMARY, XCB_CURRENT_TIME);
	xcb_flush(b->c);
}

void display_x_clipboard_set(struct display_x_clipboard *b, const char *text, size_t len)
{
	b->own.len = 0;
	buf_put(&b->own, text, MIN(len, DISPLAY_CLIPBOARD_MAX));
	if (buf_error(&b->own) < 0)
		return;
	b->primary = true;
	b->fresh = !b->c;
	if (b->c)
		become_owner(b, true);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static int intern(struct display_x_clipboard *b)
{
	xcb_intern_atom_cookie_t cookies[DISPLAY_X_ATOMS];
	int r = 0;

	for (unsigned i = 0; i < DISPLAY_X_ATOMS; i++)
		cookies[i] = xcb_intern_atom(b->c, false, (uint16_t)strlen(names[i]), names[i]);
	for (unsigned i = 0; i < DISPLAY_X_ATOMS; i++) {
		xcb_intern_atom_reply_t *reply = xcb_intern_atom_reply(b->c, cookies[i], NULL);

		if (reply)
			b->atoms[i] = reply->atom;
		else
			r = -EIO;
		free(reply);
	}
	return r;
}

static bool is_owned(struct display_x_clipboard *b)
{
	xcb_get_selection_owner_reply_t *r = xcb_get_selection_owner_reply(
		b->c, xcb_get_selection_owner(b->c, b->atoms[DISPLAY_X_CLIPBOARD]), NULL);
	bool owned = r && r->owner != XCB_NONE;

	free(r);
	return owned;
}

int display_x_clipboard_open(struct display_x_clipboard *b, xcb_connection_t *c, struct err *e)
{
	const xcb_screen_t *screen = xcb_setup_roots_iterator(xcb_get_setup(c)).data;
	const xcb_query_extension_reply_t *x = xcb_get_extension_data(c, &xcb_xfixes_id);
	const uint32_t events = XCB_EVENT_MASK_PROPERTY_CHANGE;

	b->c = c;
	b->owner = false;
	if (!x || !x->present || intern(b) < 0) {
		b->c = NULL;
		return err_set(e, ERR_FAILED, -EIO, "the X server has no clipboard");
	}
	b->first_event = x->first_event;
	b->max = MIN(PIECE_MAX, xcb_get_maximum_request_length(c) * 2);
	b->window = xcb_generate_id(c);
	xcb_create_window(c, XCB_COPY_FROM_PARENT, b->window, screen->root, -1, -1, 1, 1, 0,
		XCB_WINDOW_CLASS_INPUT_ONLY, XCB_COPY_FROM_PARENT, XCB_CW_EVENT_MASK, &events);
	xcb_xfixes_select_selection_input(c, screen->root, b->atoms[DISPLAY_X_CLIPBOARD],
		XCB_XFIXES_SELECTION_EVENT_MASK_SET_SELECTION_OWNER);
	xcb_xfixes_select_selection_input(c, screen->root, XCB_ATOM_PRIMARY,
		XCB_XFIXES_SELECTION_EVENT_MASK_SET_SELECTION_OWNER);
	b->again = !b->fresh && is_owned(b);
	b->fresh = false;
	if (b->again)
		ask(b, XCB_CURRENT_TIME);
	if (b->again || !b->own.len)
		b->primary = false;
	else
		become_owner(b, b->primary);
	return 0;
}

bool display_x_clipboard_event(struct display_x_clipboard *b, const xcb_generic_event_t *event)
{
	uint8_t type = event->response_type & 0x7f;
	const xcb_property_notify_event_t *n = (const void *)event;

	if (!b->c)
		return false;
	if (type == b->first_event + XCB_XFIXES_SELECTION_NOTIFY) {
		on_owner(b, (const void *)event);
	} else if (type == XCB_SELECTION_NOTIFY) {
		on_answer(b, (const void *)event);
	} else if (type == XCB_SELECTION_REQUEST) {
		on_request(b, (const void *)event);
	} else if (type == XCB_PROPERTY_NOTIFY && n->state == XCB_PROPERTY_DELETE) {
		next_piece(b, n);
	} else if (type == XCB_PROPERTY_NOTIFY) {
		if (b->incremental && n->window == b->window &&
			n->atom == b->atoms[DISPLAY_X_PROPERTY])
			on_piece(b);
	} else {
		return type == XCB_SELECTION_CLEAR;
	}
	return true;
}

void display_x_clipboard_close(struct display_x_clipboard *b)
{
	forget_incoming(b);
	for (unsigned i = 0; i < DISPLAY_X_REQUESTS; i++)
		end_pieces(b, i);
	b->owner = false;
	b->c = NULL;
}

void display_x_clipboard_fini(struct display_x_clipboard *b)
{
	display_x_clipboard_close(b);
	buf_fini(&b->own);
	buf_fini(&b->told);
	b->own = b->told = BUF_INIT;
}
