/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view/target - where a volume is in a root of the session's own.  Private to rewrite/.
 *
 * A mount namespace would resolve the path once, when the volume is mounted.  So symlinks in it are
 * the root's, and followed here at the start; what is not there is made, to be listed.
 */
#ifndef SUPERVISOR_REWRITE_VIEW_TARGET_H
#define SUPERVISOR_REWRITE_VIEW_TARGET_H

#include <limits.h>
#include <stdbool.h>

/*
 * Makes @target (absolute, without "..") in the directory @root, a file or a directory, and what
 * leads there.  What the user may not make is left.
 */
void view_target_make(const char *root, const char *target, bool dir);
/* The same path without symlinks; @target itself if it is not there. */
void view_target_settle(const char *root, const char *target, char ret[PATH_MAX]);

#endif
