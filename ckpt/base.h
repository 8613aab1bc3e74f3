/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * base - images that others refer to, as dump and restore see them.
 *
 * Theory of operation
 *
 * A snapshot may leave pages out that an earlier one in the same directory has: it names the file,
 * and for runs of pages where in it they are.  It refers to where they really are, never to another
 * reference: an image that was written from a base names those that the base names.
 *
 *      s.img@1   a b c d e f        (full)
 *      s.img@2   . . x . . .        refers to @1 for the rest
 *      s.img@3   . y . . . .        refers to @1 and @2
 *
 * There are at most MAX_BASES of them: those from which the fewest pages are left are
 * given up, and their pages written anew.  So the chain is never long, and an old image
 * is of no use at some time.
 *
 * Which pages are the same is found out by comparing them, in the copy of the memory
 * while the session runs on.
 */
#ifndef CKPT_BASE_H
#define CKPT_BASE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ckpt_base;
struct err;

#define CKPT_REF_LEN 32 /* bytes of an entry */

/* Pages of a process that are in another image: an entry of DATA of kind REFS (proto/SPEC.md). */
struct ckpt_ref {
	uint64_t addr, len;
	uint64_t base, offset; /* number of the base, from 1; in its file */
};
void ckpt_ref_encode(const struct ckpt_ref *r, uint8_t ret[CKPT_REF_LEN]);
/* As it is there, whatever that is: for what we have written ourselves. */
void ckpt_ref_decode(const uint8_t entry[CKPT_REF_LEN], struct ckpt_ref *ret);
/*
 * The entry at *@at of the @len bytes at @data, behind which *@at is moved: 1, 0 at their end.
 * -EBADMSG: they don't end with an entry, or it is not whole pages that @b (NULL: there is none)
 * has; *ret_pages are those, borrowed.
 */
int ckpt_ref_read(const struct ckpt_base *b, const void *data, size_t len, size_t *at,
	struct ckpt_ref *ret, const uint8_t **ret_pages, struct err *e);

/* The page of @vpid at @addr as it was, and where it is (base from 1, offset in its file);
 * NULL: there was none. */
const uint8_t *ckpt_base_find(
	struct ckpt_base *b, pid_t vpid, uint64_t addr, uint32_t *ret_base, uint64_t *ret_offset);
/* @len bytes in base @number, NULL if it does not have them. */
const uint8_t *ckpt_base_at(
	const struct ckpt_base *b, uint64_t number, uint64_t offset, uint64_t len);

#endif
