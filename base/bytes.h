/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bytes - what stands at any address, in the host's order.  The caller knows that it is there. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bytes_u32(const void *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

static inline uint64_t bytes_u64(const void *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* Are all @n bytes zero?  True of none. */
static inline bool bytes_are_zero(const void *at, size_t n)
{
	const uint8_t *p = at;

	return n == 0 || (!*p && memcmp(p, p + 1, n - 1) == 0);
}

#endif
