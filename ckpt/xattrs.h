/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xattrs - extended attributes of a session's files.  Private to ckpt.
 *
 * Those of the "user." namespace: others are not a user's to set.
 */
#ifndef CKPT_XATTRS_H
#define CKPT_XATTRS_H

#include <stddef.h>

struct err;
struct Pb__TreeXattr;

/* A fresh array of @fd's attributes, NULL where there are none.  0 or -errno. */
int ckpt_xattrs_read(int fd, struct Pb__TreeXattr ***ret, size_t *ret_n);
void ckpt_xattrs_free(struct Pb__TreeXattr **all, size_t n);
/* What an image says of them may be any nonsense: ERR_IMAGE; ERR_HOST where they can't be set. */
int ckpt_xattrs_set(int fd, struct Pb__TreeXattr *const *all, size_t n, struct err *e);

#endif
