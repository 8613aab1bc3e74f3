/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * buf - a growable byte buffer, and a bounded cursor for reading what somebody else wrote.
 *
 * A buf remembers that an allocation failed (`failed`), so a run of buf_put calls is checked once
 * at its end.  A cursor never reads past its end: after the first short read it is `bad`, and
 * every later read gives zeros, so a parser checks once as well.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	uint8_t *data;
	size_t len;
	size_t cap;
	bool failed; /* memory ran out; what came later is missing */
};

#define BUF_INIT ((struct buf){0})

/* Frees what it holds; it is empty then. */
void buf_fini(struct buf *b);
#define _cleanup_buf_ __attribute__((cleanup(buf_fini)))

/* Makes room for @n more bytes and returns where they go (uninitialised), or NULL. */
void *buf_reserve(struct buf *b, size_t n);
/* Appends @n uninitialised bytes and returns them, or NULL. */
void *buf_grow(struct buf *b, size_t n);
void buf_put(struct buf *b, const void *data, size_t n);
void buf_put_u8(struct buf *b, uint8_t v);
void buf_put_u32(struct buf *b, uint32_t v); /* little endian */
void buf_put_u64(struct buf *b, uint64_t v); /* little endian */
void buf_put_str(struct buf *b, const char *s); /* without its NUL */
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Removes @n bytes (<= len) from the front. */
void buf_consume(struct buf *b, size_t n);
/* Gives back the memory behind the contents. */
void buf_trim(struct buf *b);
/* Forgets the contents, keeps the memory. */
void buf_clear(struct buf *b);
/* The contents as a C string, owned by @b; NULL once it has failed. */
char *buf_cstr(struct buf *b);
/* -ENOMEM once an allocation has failed, else 0. */
int buf_error(const struct buf *b);

struct cursor {
	const uint8_t *p, *end;
	bool bad;
};

/* At the beginning of @len borrowed bytes. */
static inline struct cursor cursor_of(const void *data, size_t len)
{
	return (struct cursor){data, len ? (const uint8_t *)data + len : data, false};
}

/* How many bytes are still to be read. */
static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

/* The next @n bytes, in place, or NULL (and the cursor is bad). */
const void *cursor_take(struct cursor *c, size_t n);
uint8_t cursor_u8(struct cursor *c);
uint32_t cursor_u32(struct cursor *c); /* little endian */
uint64_t cursor_u64(struct cursor *c); /* little endian */

#endif
