// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A client of XSETTINGS for tests, as toolkits are one: says "NAME VALUE" of each number when there
 * is a manager and at each change, "manager" before what a new one has, and "gone" if there is none
 * any more.
 * With an argument it owns the settings instead, says "own", and "lost" when it does not any more.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xcb/xcb.h>

static xcb_connection_t *x;
static xcb_window_t root, manager;
static xcb_atom_t selection, property, announced;

static xcb_atom_t atom(const char *name)
{
	xcb_intern_atom_reply_t *r =
		xcb_intern_atom_reply(x, xcb_intern_atom(x, 0, (uint16_t)strlen(name), name), NULL);
	xcb_atom_t a = r ? r->atom : XCB_NONE;

	free(r);
	return a;
}

static void watch(xcb_window_t window)
{
	const uint32_t mask = XCB_EVENT_MASK_STRUCTURE_NOTIFY | XCB_EVENT_MASK_PROPERTY_CHANGE;

	xcb_change_window_attributes(x, window, XCB_CW_EVENT_MASK, &mask);
}

static void say_settings(void)
{
	xcb_get_property_reply_t *r = xcb_get_property_reply(
		x, xcb_get_property(x, 0, manager, property, property, 0, 4096), NULL);
	const uint8_t *p = r ? xcb_get_property_value(r) : NULL;
	size_t n = r ? (size_t)xcb_get_property_value_length(r) : 0, at = 12;

	while (at + 4 <= n) {
		size_t name = p[at + 2] | (size_t)p[at + 3] << 8,
		       value = at + 4 + (name + 3) / 4 * 4 + 4;
		int32_t number;

		if (p[at] != 0 || value + 4 > n)
			break;
		memcpy(&number, p + value, 4);
		printf("%.*s %d\n", (int)name, (const char *)p + at + 4, number);
		at = value + 4;
	}
	printf("done\n");
	free(r);
}

static void look_for_manager(void)
{
	xcb_get_selection_owner_reply_t *r =
		xcb_get_selection_owner_reply(x, xcb_get_selection_owner(x, selection), NULL);

	manager = r ? r->owner : XCB_NONE;
	free(r);
	if (!manager)
		return;
	watch(manager);
	printf("manager\n");
	say_settings();
}

static void own(void)
{
	manager = xcb_generate_id(x);
	xcb_create_window(x, XCB_COPY_FROM_PARENT, manager, root, -1, -1, 1, 1, 0,
		XCB_WINDOW_CLASS_INPUT_ONLY, XCB_COPY_FROM_PARENT, 0, NULL);
	xcb_set_selection_owner(x, manager, selection, XCB_CURRENT_TIME);
	free(xcb_get_input_focus_reply(x, xcb_get_input_focus(x), NULL));
	printf("own\n");
}

int main(int argc, char **argv)
{
	xcb_generic_event_t *e;

	setvbuf(stdout, NULL, _IOLBF, 0);
	x = xcb_connect(NULL, NULL);
	if (xcb_connection_has_error(x))
		return 1;
	root = xcb_setup_roots_iterator(xcb_get_setup(x)).data->root;
	selection = atom("_XSETTINGS_S0");
	property = atom("_XSETTINGS_SETTINGS");
	announced = atom("MANAGER");
	if (argc > 1) {
		own();
	} else {
		watch(root);
		printf("ready\n");
		look_for_manager();
	}
	while (xcb_flush(x) > 0 && (e = xcb_wait_for_event(x))) {
		uint8_t type = e->response_type & 0x7f;
		const xcb_client_message_event_t *m = (const void *)e;

		if (type == XCB_CLIENT_MESSAGE && m->type == announced &&
			m->data.data32[1] == selection)
			look_for_manager();
		else if (type == XCB_PROPERTY_NOTIFY && manager &&
			 ((const xcb_property_notify_event_t *)(const void *)e)->window == manager)
			say_settings();
		else if (type == XCB_DESTROY_NOTIFY && manager &&
			 ((const xcb_destroy_notify_event_t *)(const void *)e)->window == manager)
			printf("gone\n");
		else if (type == XCB_SELECTION_CLEAR)
			printf("lost\n");
		free(e);
	}
	return 0;
}
