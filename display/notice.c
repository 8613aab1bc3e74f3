// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/notice.h"

#include <stdio.h>

#include "proto/display.pb-c.h"

void display_notice_put(
	struct buf *out, enum display_state state, const char *text, const char *name)
{
	struct display_message m = {.type = DISPLAY_NOTICE};
	Pb__DisplayNotice n = PB__DISPLAY_NOTICE__INIT;
	_cleanup_buf_ struct buf body = BUF_INIT;
	uint8_t *to;

	n.kind = (Pb__DisplayNotice__Kind)state;
	n.text = (char *)(text ? text : "");
	if (state == DISPLAY_STATE_MOVED)
		n.host = n.text;
	n.name = (char *)(name ? name : "");
	to = buf_grow(&body, pb__display_notice__get_packed_size(&n));
	if (to)
		pb__display_notice__pack(&n, to);
	m.data = (struct display_bytes){body.data, body.len};
	if (buf_error(&body) < 0)
		out->failed = true;
	else
		display_wire_put(out, &m);
}

enum display_state display_notice_state(const struct display_message *m, enum display_state before)
{
	Pb__DisplayNotice *n = m->type != DISPLAY_NOTICE
				       ? NULL
				       : pb__display_notice__unpack(
						 NULL, m->data.len, m->data.data);

	if (!n)
		return before;
	before = (enum display_state)n->kind;
	pb__display_notice__free_unpacked(n, NULL);
	return before;
}

bool display_notice_refuses(const struct display_message *m, char *ret, size_t size)
{
	Pb__DisplayNotice *n = m->type != DISPLAY_NOTICE
				       ? NULL
				       : pb__display_notice__unpack(
						 NULL, m->data.len, m->data.data);
	bool refuses = n && n->kind == PB__DISPLAY_NOTICE__KIND__REFUSED;

	if (refuses)
		snprintf(ret, size, "%s", n->text);
	for (char *p = ret; refuses && *p; p++)
		if ((unsigned char)*p < ' ' || *p == 127)
			*p = '?';
	if (n)
		pb__display_notice__free_unpacked(n, NULL);
	return refuses;
}
