// SPDX-License-Identifier: GPL-2.0-or-later
/* Control sequences are those of ECMA-48 and xterm (ctlseqs), the keyboard's kitty's. */
#include "supervisor/modes.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define N_SCREENS 3 /* numbers of the same screen */

/* In the order in which they are switched on; off in the opposite one. */
static const struct {
	unsigned number;
	bool at_first;
} private_modes[] = {
	/* the alternate screen, which other modes may be kept with */
	{47, false}, {1047, false}, {1049, false},
	/* cursor keys, wrapping, the cursor */
	{1, false}, {7, true}, {25, true},
	/* the mouse, its encodings, the focus, what is pasted */
	{9, false}, {1000, false}, {1001, false}, {1002, false}, {1003, false}, {1005, false},
	{1006, false}, {1015, false}, {1016, false}, {1004, false}, {2004, false},
};

/* ---- what was written ------------------------------------------------------------------------ */

static void set_private(struct modes *m, unsigned number, bool on)
{
	bool leaves = !on && (number == 47 || number == 1047 || number == 1049);

	for (size_t i = 0; i < ARRAY_SIZE(private_modes); i++) {
		if (private_modes[i].number != number && !(leaves && i < N_SCREENS))
			continue;
		if (on == private_modes[i].at_first)
			m->changed &= ~(1u << i);
		else
			m->changed |= 1u << i;
	}
}

/* The parameter at *@at, and its end in *@at; @missing if it is none. */
static unsigned parameter(const char **at, unsigned missing)
{
	char *end;
	unsigned long n = strtoul(*at, &end, 10);

	if (end == *at)
		n = missing;
	*at = end;
	return (unsigned)MIN(n, 99999ul);
}

/* CSI > flags u pushes, CSI < N u pops, CSI = flags ; how u sets. */
static void set_keyboard(struct modes *m, const char *text)
{
	const char *at = text + (*text != '\0');
	unsigned n = parameter(&at, *text == '<'), how;

	if (*text == '>') {
		m->keyboard = n;
		m->depth++;
	} else if (*text == '<') {
		m->depth -= MIN(n, m->depth);
		if (!m->depth)
			m->keyboard = 0;
	} else if (*text == '=') {
		at += *at == ';';
		how = parameter(&at, 1);
		m->keyboard = how == 2 ? m->keyboard | n : how == 3 ? m->keyboard & ~n : n;
	}
}

/* Are all of its parameters those of a terminal at first? */
static bool is_plain(const char *text)
{
	return strspn(text, "0;") == strlen(text);
}

/* DECSTR: neither the screen nor reports. */
static void soft_reset(struct modes *m)
{
	set_private(m, 1, false);
	set_private(m, 7, true);
	set_private(m, 25, true);
	m->keypad = m->margins = m->rendition = false;
}

/* A control sequence; its parameters, with what stands before and behind them, are in m->sequence. */
static void control(struct modes *m, char final)
{
	const char *text = m->sequence, *at = text + (*text != '\0');

	switch (final) {
	case 'h':
	case 'l':
		if (*text != '?')
			break;
		for (; *at; at += *at == ';') {
			const char *before = at;

			set_private(m, parameter(&at, 0), final == 'h');
			if (at == before && *at != ';')
				break;
		}
		break;
	case 'm':
		if (*text == '>' && parameter(&at, 0) == 4)
			m->other_keys = *at == ';' ? (at++, parameter(&at, 0)) : 0;
		else if (*text != '>' && *text != '?')
			m->rendition = !is_plain(text);
		break;
	case 'r':
		if (*text != '?')
			m->margins = *text != '\0';
		break;
	case 'u':
		set_keyboard(m, text);
		break;
	case 'p':
		if (strcmp(text, "!") == 0)
			soft_reset(m);
		break;
	default:
		break;
	}
}

static void escape(struct modes *m, char c)
{
	m->state = MODES_TEXT;
	switch (c) {
	case '[':
		m->state = MODES_CONTROL;
		m->len = 0;
		break;
	case 'P': /* strings, which end at ST */
	case ']':
	case '^':
	case '_':
	case 'X':
		m->state = MODES_STRING;
		break;
	case '=':
	case '>':
		m->keypad = c == '=';
		break;
	case 'c':
		*m = (struct modes){0};
		break;
	case '\033':
		m->state = MODES_ESCAPE;
		break;
	default:
		break;
	}
}

static void one(struct modes *m, char c)
{
	switch (m->state) {
	case MODES_TEXT:
		if (c == '\033')
			m->state = MODES_ESCAPE;
		break;
	case MODES_ESCAPE:
		escape(m, c);
		break;
	case MODES_CONTROL:
		if (c == '\033') {
			m->state = MODES_ESCAPE;
		} else if (c >= 0x40 && c <= 0x7e) {
			m->sequence[MIN(m->len, (size_t)MODES_PARAMETERS)] = '\0';
			m->state = MODES_TEXT;
			if (m->len <= MODES_PARAMETERS)
				control(m, c);
		} else if (c >= 0x20 && m->len <= MODES_PARAMETERS) {
			m->sequence[m->len++] = c;
		}
		break;
	case MODES_STRING:
		if (c == '\033')
			m->state = MODES_STRING_ESCAPE;
		else if (c == '\a' || c == 030 || c == 032)
			m->state = MODES_TEXT;
		break;
	case MODES_STRING_ESCAPE: /* ST is ESC \ ; any other sequence ends the string, too */
		escape(m, c);
		break;
	}
}

void modes_feed(struct modes *m, const void *data, size_t n)
{
	const char *p = data, *end = p + n;

	while (p < end) {
		if (m->state == MODES_TEXT) {
			p = memchr(p, '\033', (size_t)(end - p));
			if (!p)
				return;
		}
		one(m, *p++);
	}
}

/* ---- what is to be written ------------------------------------------------------------------- */

static void put_private(const struct modes *m, size_t i, bool leave, struct buf *out)
{
	if (m->changed & 1u << i)
		buf_printf(out, "\033[?%u%c", private_modes[i].number,
			private_modes[i].at_first == leave ? 'h' : 'l');
}

void modes_leave(const struct modes *m, struct buf *out)
{
	if (m->rendition)
		buf_put_str(out, "\033[m");
	if (m->margins)
		buf_put_str(out, "\0337\033[r\0338"); /* which alone moves the cursor */
	if (m->keyboard)
		buf_put_str(out, "\033[=0u");
	if (m->other_keys)
		buf_put_str(out, "\033[>4m");
	if (m->keypad)
		buf_put_str(out, "\033>");
	for (size_t i = ARRAY_SIZE(private_modes); i-- > 0;)
		put_private(m, i, true, out);
}

void modes_enter(const struct modes *m, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(private_modes); i++)
		put_private(m, i, false, out);
	if (m->keypad)
		buf_put_str(out, "\033=");
	if (m->other_keys)
		buf_printf(out, "\033[>4;%um", m->other_keys);
	if (m->keyboard)
		buf_printf(out, "\033[=%uu", m->keyboard);
}
