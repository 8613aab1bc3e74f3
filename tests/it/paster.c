// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pastes what is long, as some programs do:
 *
 *      paster leave       asks for it and goes when it is about to come
 *      paster again       takes two pieces, asks again, and says how much has come of that
 *      paster as TARGET   says what there is as that, in hexadecimal digits
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xcb/xcb.h>

#define PATIENCE_S 60

static xcb_connection_t *x;
static xcb_window_t window;
static xcb_atom_t property;

static xcb_atom_t atom(const char *name)
{
	xcb_intern_atom_reply_t *r =
		xcb_intern_atom_reply(x, xcb_intern_atom(x, 0, (uint16_t)strlen(name), name), NULL);
	xcb_atom_t a = r ? r->atom : XCB_NONE;

	free(r);
	return a;
}

/* The next event of that kind; its contents. */
static xcb_generic_event_t next(uint8_t type)
{
	xcb_generic_event_t *e, found;

	do {
		e = xcb_wait_for_event(x);
		if (!e)
			exit(1);
		found = *e;
		free(e);
	} while ((found.response_type & 0x7f) != type);
	return found;
}

/* What the property has, deleted; the caller's. */
static xcb_get_property_reply_t *take(void)
{
	xcb_get_property_reply_t *r = xcb_get_property_reply(
		x, xcb_get_property(x, 1, window, property, XCB_ATOM_ANY, 0, 1 << 20), NULL);

	if (!r)
		exit(1);
	return r;
}

/* Whether there is an answer. */
static int ask(xcb_atom_t target)
{
	xcb_generic_event_t e;

	xcb_convert_selection(x, window, atom("CLIPBOARD"), target, property, XCB_CURRENT_TIME);
	xcb_flush(x);
	e = next(XCB_SELECTION_NOTIFY);
	return ((xcb_selection_notify_event_t *)&e)->property != XCB_NONE;
}

/* The next piece's length; 0 behind the last. */
static size_t take_piece(void)
{
	for (;;) {
		xcb_generic_event_t e = next(XCB_PROPERTY_NOTIFY);
		const xcb_property_notify_event_t *p = (const void *)&e;
		xcb_get_property_reply_t *r;
		size_t len;
		bool there;

		if (p->state != XCB_PROPERTY_NEW_VALUE || p->atom != property)
			continue;
		r = take();
		len = (size_t)xcb_get_property_value_length(r);
		there = r->type != XCB_NONE; /* else it was taken before this was heard of */
		free(r);
		if (there)
			return len;
	}
}

static void again(xcb_atom_t target)
{
	size_t all = 0, n;

	if (!ask(target))
		exit(1);
	free(take());
	take_piece();
	take_piece();
	if (!ask(target))
		exit(1);
	free(take());
	while ((n = take_piece()))
		all += n;
	printf("%zu\n", all);
}

static void as(xcb_atom_t target)
{
	xcb_get_property_reply_t *r;
	const uint8_t *p;

	if (!ask(target))
		exit(1);
	r = take();
	p = xcb_get_property_value(r);
	for (int i = 0; i < xcb_get_property_value_length(r); i++)
		printf("%02x", p[i]);
	printf("\n");
	free(r);
}

int main(int argc, char **argv)
{
	const uint32_t events = XCB_EVENT_MASK_PROPERTY_CHANGE;
	xcb_screen_t *screen;

	alarm(PATIENCE_S);
	x = xcb_connect(NULL, NULL);
	if (argc < 2 || xcb_connection_has_error(x))
		return 2;
	screen = xcb_setup_roots_iterator(xcb_get_setup(x)).data;
	property = atom("PASTED");
	window = xcb_generate_id(x);
	xcb_create_window(x, XCB_COPY_FROM_PARENT, window, screen->root, 0, 0, 1, 1, 0,
		XCB_WINDOW_CLASS_INPUT_ONLY, XCB_COPY_FROM_PARENT, XCB_CW_EVENT_MASK, &events);
	if (strcmp(argv[1], "again") == 0)
		again(atom("UTF8_STRING"));
	else if (strcmp(argv[1], "as") == 0 && argc > 2)
		as(atom(argv[2]));
	else if (!ask(atom("UTF8_STRING")))
		return 1;
	return 0;
}
