// SPDX-License-Identifier: GPL-2.0-or-later
/* See text.h. */
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The length of the UTF-8 sequence at @p (RFC 3629), 0 if it is none; *ret is what it says. */
static unsigned utf8(const unsigned char *p, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned n = *p < 0x80 ? 1 : *p < 0xc2 ? 0 : *p < 0xe0 ? 2 : *p < 0xf0 ? 3 : *p < 0xf5 ? 4 : 0;
	uint32_t c = n < 2 ? *p : *p & (0x7fu >> n);

	for (unsigned i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3f);
	}
	if (n == 0 || c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return 0;
	*ret = c;
	return n;
}

static bool is_control(uint32_t c)
{
	/* also what turns the direction of a line around (Unicode bidirectional controls) */
	return c < ' ' || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

void text_put(FILE *out, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	while (p && *p) {
		uint32_t c = 0;
		unsigned n = utf8(p, &c);

		if (n == 0 || is_control(c))
			putc('?', out);
		else
			fwrite(p, 1, n, out);
		p += n ? n : 1;
	}
}

void text_tame(char *s, size_t most)
{
	const unsigned char *from = (const unsigned char *)s;

	for (; *from && most; most--) {
		uint32_t c = 0;
		unsigned n = utf8(from, &c);
		bool shown = n && !is_control(c);

		memmove(s, shown ? (const void *)from : "?", shown ? n : 1);
		s += shown ? n : 1;
		from += n ? n : 1;
	}
	*s = '\0';
}

void text_put_json(FILE *out, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	while (p && *p) {
		uint32_t c = 0xfffd;
		unsigned n = utf8(p, &c);

		if (c == '"' || c == '\\')
			fprintf(out, "\\%c", (int)c);
		else if (n == 0 || is_control(c))
			fprintf(out, "\\u%04x", c);
		else
			fwrite(p, 1, n, out);
		p += n ? n : 1;
	}
}

char *text_utf8(const char *s)
{
	static const char none[] = "\357\277\275";
	const unsigned char *p = (const unsigned char *)s;
	char *copy = malloc(strlen(s) * (sizeof(none) - 1) + 1), *to = copy;

	while (copy && *p) {
		uint32_t c;
		unsigned n = utf8(p, &c);

		memcpy(to, n ? (const void *)p : none, n ? n : sizeof(none) - 1);
		to += n ? n : sizeof(none) - 1;
		p += n ? n : 1;
	}
	if (copy)
		*to = '\0';
	return copy;
}

void text_put_json_document(FILE *out, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	while (p && *p) {
		uint32_t c = 0xfffd;
		unsigned n = utf8(p, &c);

		/* those below it are outside of strings: ends of lines */
		if (n == 0 || (c > ' ' && is_control(c)))
			fprintf(out, "\\u%04x", c);
		else
			fwrite(p, 1, n, out);
		p += n ? n : 1;
	}
}
