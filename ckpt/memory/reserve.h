/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * reserve - memory of our own that a stopped session need not wait for.
 *
 * Theory of operation
 *
 * To be given memory takes several times as long as to fill it.  So what will be wanted (aside.c,
 * stash.h), as far as it can be told while the session runs, is asked for and touched then.
 *
 * It is taken from the host for as long as an image is written.  A part of what the host, and the
 * control groups that we are in, can spare is used: whoever runs there goes on, and may want some as
 * well.
 */
#ifndef CKPT_MEMORY_RESERVE_H
#define CKPT_MEMORY_RESERVE_H

#include <stddef.h>
#include <stdint.h>

struct ckpt_reserve {
	uint8_t *data; /* touched; NULL: none is left */
	size_t size;
	uint64_t more; /* how many bytes may be asked for besides */
};

/* While the session runs: for @bytes and some more, as far as the host can spare it. */
void ckpt_reserve_make(struct ckpt_reserve *ret, uint64_t bytes);
/*
 * @size bytes, whole pages, for the caller to unmap; touched or not.  NULL: there is no room for
 * them.
 */
uint8_t *ckpt_reserve_draw(struct ckpt_reserve *r, size_t size);
/*
 * @size bytes, whole pages, for the caller to unmap; the first @touched of them touched, if the
 * host can spare so many.  NULL: no memory.
 */
void *ckpt_reserve_map(size_t size, size_t touched);
/*
 * While the session runs: the next @bytes or so that malloc(3) gives to the first thread are touched,
 * and what is freed of them stays.  The process has no other thread yet.
 */
void ckpt_reserve_heap(size_t bytes);
/* What is left of it. */
void ckpt_reserve_fini(struct ckpt_reserve *r);

#endif
