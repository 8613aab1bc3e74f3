/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * locked_dir - directories of the host, beside others', that are to go with the rewriter, however
 * that ends.
 *
 * Such a directory has a name nobody can foresee, is nobody else's to look into, and is locked
 * (flock(2)) as long as it is in use; systemd-tmpfiles(8) leaves what is locked alone, too.
 * Whatever nobody has locked somebody has left who was killed.
 */
#ifndef SUPERVISOR_REWRITE_LOCKED_DIR_H
#define SUPERVISOR_REWRITE_LOCKED_DIR_H

#include <limits.h>

/*
 * A new directory in @top whose name begins with @prefix, its path in @ret.  Returns a descriptor,
 * to be kept open for as long as it is in use, or a negative errno.
 */
int locked_dir_make(const char *top, const char *prefix, char ret[PATH_MAX]);
/* Removes those of this user's that nobody uses any more. */
void locked_dir_sweep(const char *top, const char *prefix);

#endif
