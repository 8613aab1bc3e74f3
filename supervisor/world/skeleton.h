/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * skeleton - user-owned copies of the host's directories, and of what in them root inside changes.
 *
 * They lie between the host's files and the session's own layer.  The cache is shared by all
 * sessions of a user: $XDG_CACHE_HOME/podrun/skeleton/{tree,etc}-KEY.
 */
#ifndef SUPERVISOR_WORLD_SKELETON_H
#define SUPERVISOR_WORLD_SKELETON_H

#include <limits.h>

struct err;

enum skeleton_part { SKELETON_TREE, SKELETON_ETC, SKELETON_PART_MAX };

struct skeleton {
	char *path[SKELETON_PART_MAX];
	int lock[SKELETON_PART_MAX]; /* held while a session stands on it */
};

/* Builds what fits the host as it is now, unless it is there.  Takes seconds, and on a busy host
 * many. */
int skeleton_build(struct err *e);
/* Opens what was built; 1 if nothing was that fits the host as it is now. */
int skeleton_open(struct skeleton *ret, struct err *e);
/* The same parts by descriptors, for when a mount covers their paths; @ret is to be freed, too. */
int skeleton_hold(const struct skeleton *s, struct skeleton *ret, struct err *e);
/* Also of one that was never opened, if its locks are -1. */
void skeleton_fini(struct skeleton *s);

/* The skeleton's directory for the host's @path, or 1 if it has none. */
int skeleton_find(const struct skeleton *s, const char *path, char ret[PATH_MAX]);

#endif
