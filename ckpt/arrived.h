/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arrived - memory that came ahead of its session, as the builder sees it.
 *
 * Theory of operation
 *
 * The pages of all rounds go into one nameless file, each to a place of its own that it keeps: what comes again
 * is written over it, so the file is never larger than the memory.  Where a page lies is found in a tree of
 * tables by its address, as a processor does it.
 */
#ifndef CKPT_ARRIVED_H
#define CKPT_ARRIVED_H

#include <stdbool.h>
#include <stdint.h>

struct ckpt_arrived;

bool ckpt_arrived_has(const struct ckpt_arrived *a, uint64_t space);
/*
 * How many bytes from @at on, up to @end, lie in one piece, and where (mapped, to be read); *ret is NULL if nothing
 * came for them.
 */
uint64_t ckpt_arrived_find(
	const struct ckpt_arrived *a, uint64_t space, uint64_t at, uint64_t end, const void **ret);

#endif
