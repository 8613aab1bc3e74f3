/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * base - images that others refer to, as dump and restore see them.
 *
 * Theory of operation
 *
 * A snapshot may leave pages out that an earlier one in the same directory has: it names the file, and for runs of
 * pages where in it they are.  It refers to where they really are, never to another reference: an image that was
 * written from a base names those that the base names.
 *
 *      s.img@1   a b c d e f        (full)
 *      s.img@2   . . x . . .        refers to @1 for the rest
 *      s.img@3   . y . . . .        refers to @1 and @2
 *
 * There are at most MAX_BASES of them: those from which the fewest pages are left are given up, and their pages
 * written anew.  So the chain is never long, and an old image is of no use at some time.
 *
 * Which pages are the same is found out by comparing them, in the copy of the memory while the session runs on.
 */
#ifndef CKPT_BASE_H
#define CKPT_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ckpt_base;

#define CKPT_REF_LEN 32 /* bytes of an entry */

/* The page of @vpid at @addr as it was, and where it is (base from 1, offset in its file); NULL: there was none. */
const uint8_t *ckpt_base_find(
	struct ckpt_base *b, pid_t vpid, uint64_t addr, uint32_t *ret_base, uint64_t *ret_offset);
/* @len bytes in base @number, NULL if it does not have them. */
const uint8_t *ckpt_base_at(const struct ckpt_base *b, uint64_t number, uint64_t offset, uint64_t len);

#endif
