// SPDX-License-Identifier: GPL-2.0-or-later
/* Doubles when it must; the first failure is kept, so callers look once, at the end (buf_error). */
#include "base/buf.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buf_fini(struct buf *b)
{
	free(b->data);
	*b = BUF_INIT;
}

void *buf_reserve(struct buf *b, size_t n)
{
	size_t cap;
	void *p;

	if (b->failed)
		return NULL;
	if (b->cap && b->cap - b->len >= n)
		return b->data + b->len;
	if (n > SIZE_MAX / 4 || b->cap > SIZE_MAX / 4) {
		b->failed = true;
		return NULL;
	}
	cap = b->cap ? b->cap * 2 : 256;
	while (cap - b->len < n)
		cap *= 2;
	p = realloc(b->data, cap);
	if (!p) {
		b->failed = true;
		return NULL;
	}
	b->data = p;
	b->cap = cap;
	return b->data + b->len;
}

void *buf_grow(struct buf *b, size_t n)
{
	void *p = buf_reserve(b, n);

	if (p)
		b->len += n;
	return p;
}

void buf_put(struct buf *b, const void *data, size_t n)
{
	void *p = buf_grow(b, n);

	if (p && n)
		memcpy(p, data, n);
}

void buf_put_u8(struct buf *b, uint8_t v)
{
	buf_put(b, &v, 1);
}

void buf_put_u32(struct buf *b, uint32_t v)
{
	v = htole32(v);
	buf_put(b, &v, sizeof(v));
}

void buf_put_u64(struct buf *b, uint64_t v)
{
	v = htole64(v);
	buf_put(b, &v, sizeof(v));
}

void buf_put_str(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	char *p;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	assert(n >= 0);
	p = buf_reserve(b, (size_t)n + 1);
	if (!p)
		return;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

void buf_consume(struct buf *b, size_t n)
{
	assert(n <= b->len);
	if (n && n < b->len)
		memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
}

void buf_trim(struct buf *b)
{
	uint8_t *p;

	if (b->len == b->cap)
		return;
	if (!b->len) {
		free(b->data);
		b->data = NULL;
		b->cap = 0;
		return;
	}
	p = realloc(b->data, b->len);
	if (!p)
		return; /* it is as good with all of it */
	b->data = p;
	b->cap = b->len;
}

void buf_clear(struct buf *b)
{
	b->len = 0;
}

char *buf_cstr(struct buf *b)
{
	char *p = buf_reserve(b, 1);

	if (!p)
		return NULL;
	*p = '\0';
	return (char *)b->data;
}

int buf_error(const struct buf *b)
{
	return b->failed ? -ENOMEM : 0;
}

const void *cursor_take(struct cursor *c, size_t n)
{
	const void *p = c->p;

	if (c->bad || cursor_left(c) < n) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return p;
}

uint8_t cursor_u8(struct cursor *c)
{
	const uint8_t *p = cursor_take(c, 1);

	return p ? *p : 0;
}

uint32_t cursor_u32(struct cursor *c)
{
	const void *p = cursor_take(c, 4);
	uint32_t v = 0;

	if (p)
		memcpy(&v, p, 4);
	return le32toh(v);
}

uint64_t cursor_u64(struct cursor *c)
{
	const void *p = cursor_take(c, 8);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, 8);
	return le64toh(v);
}
