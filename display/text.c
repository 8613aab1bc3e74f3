// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/text.h"

void display_text_put_lf(struct buf *out, const void *text, size_t len)
{
	const uint8_t *p = text;

	for (size_t i = 0; i < len; i++)
		if (p[i] != '\r' || i + 1 == len || p[i + 1] != '\n')
			buf_put_u8(out, p[i]);
}

void display_text_put_crlf(struct buf *out, const void *text, size_t len)
{
	const uint8_t *p = text;

	for (size_t i = 0; i < len; i++) {
		if (p[i] == '\n' && (i == 0 || p[i - 1] != '\r'))
			buf_put_u8(out, '\r');
		buf_put_u8(out, p[i]);
	}
}

void display_text_put_latin1(struct buf *out, const void *text, size_t len)
{
	const uint8_t *p = text;

	for (size_t i = 0; i < len; i++) {
		if (p[i] >= 0xc2 && p[i] <= 0xc3 && i + 1 < len) {
			buf_put_u8(out, (uint8_t)(p[i] << 6 | (p[i + 1] & 0x3f)));
			i++;
		} else if (p[i] < 0x80) {
			buf_put_u8(out, p[i]);
		} else if (p[i] >= 0xc0) {
			buf_put_u8(out, '?');
		}
	}
}

void display_text_put_utf8(struct buf *out, const void *text, size_t len)
{
	const uint8_t *p = text;

	for (size_t i = 0; i < len; i++) {
		if (p[i] >= 0x80)
			buf_put_u8(out, (uint8_t)(0xc0 | p[i] >> 6));
		buf_put_u8(out, p[i] >= 0x80 ? (uint8_t)(0x80 | (p[i] & 0x3f)) : p[i]);
	}
}
