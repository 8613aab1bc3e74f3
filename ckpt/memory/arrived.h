/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * arrived - memory that came ahead of its session, as the builder sees it.
 *
 * Theory of operation
 *
 * The pages of all rounds go into one nameless file, each to a place of its own that it keeps: what
 * comes again is written over it, so the file is never larger than the memory.  Chunks of 2 MiB of
 * addresses have places, in the order in which they came, and in each of them pages lie as they do
 * in memory.  So what lies together in memory lies together in the file, and can be mapped
 * (memory/kept.c); what never came is a hole.  Where a chunk lies is found in a tree of tables by
 * its address, as a processor does it.
 */
#ifndef CKPT_MEMORY_ARRIVED_H
#define CKPT_MEMORY_ARRIVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKPT_ARRIVED_CHUNK (2UL << 20)

struct ckpt_arrived;
struct err;

bool ckpt_arrived_has(const struct ckpt_arrived *a, uint64_t space);
/*
 * How many bytes from @at on, up to @end, lie in one piece, and where (mapped, to be read); *ret is
 * NULL if nothing came for them.
 */
uint64_t ckpt_arrived_find(
	const struct ckpt_arrived *a, uint64_t space, uint64_t at, uint64_t end, const void **ret);
/* Where in the file the page at @at is, or would be, with all that follows in its chunk.  -ENOENT:
 * nothing of the chunk came. */
int ckpt_arrived_place(
	const struct ckpt_arrived *a, uint64_t space, uint64_t at, uint64_t *ret_offset);
/* What came for [@at, @end) is zero from now on. */
int ckpt_arrived_clear(
	struct ckpt_arrived *a, uint64_t space, uint64_t at, uint64_t end, struct err *e);
/*
 * Puts @data to such a place of a chunk of which something came.  Who has it mapped sees it, but for
 * pages of his own.  @len: bytes.  The errors of pwrite(2), -ENOSPC in a hole.
 */
int ckpt_arrived_write(
	struct ckpt_arrived *a, uint64_t offset, const void *data, size_t len, struct err *e);
/* Who maps [@offset, + @len) may touch all of it: on a tmpfs also a hole takes room when it is
 * looked at, and whoever looks is killed if there is none.  -ENOSPC. */
int ckpt_arrived_fill(const struct ckpt_arrived *a, uint64_t offset, uint64_t len);
/* All chunks of all spaces of which something came, and how many pages;
 * those of a space by address. */
void ckpt_arrived_each(const struct ckpt_arrived *a,
	void (*each)(void *ctx, uint64_t addr, unsigned pages), void *ctx);

#endif
