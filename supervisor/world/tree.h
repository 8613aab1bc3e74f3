/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree - the host's directory tree as a session's root is put together from it: what is mounted
 * where, what the user may change, what is never shown.
 */
#ifndef SUPERVISOR_WORLD_TREE_H
#define SUPERVISOR_WORLD_TREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;
struct world_config;

/* A mount of the host: where, and whether looking at it would trigger something. */
struct host_mount {
	char *path;
	bool autofs;
};

struct tree {
	const struct world_config *c;
	const char *
		source; /* prefix to reach the tree by: "" for the host's own, or a path of /proc */
	char *real;	/* the same as mountinfo spells it */
	struct host_mount *mounts;
	size_t n_mounts;
};

/* @c and @source are borrowed.  Reads the mount table, proc_pid_mountinfo(5). */
int tree_init(struct tree *ret, const struct world_config *c, const char *source, struct err *e);
void tree_fini(struct tree *t);

/* Paths below are the session's: absolute, "" for the top. */

/* Is there a mount strictly below @path? */
bool tree_mounts_below(const struct tree *t, const char *path);
bool tree_is_autofs(const struct tree *t, const char *path);
/* Whether changes to a directory of the host (@host_path: with the prefix) would be the user's to
 * make. */
bool tree_may_write(const struct tree *t, const char *host_path);
/* The mode which something with @mode on the host has in the session. */
mode_t tree_shown_mode(const struct tree *t, const char *host_path, mode_t mode);

/* Names in the top directory whose content on the host is never shown. */
#define TREE_N_PRIVATE 5
extern const char *const tree_private[TREE_N_PRIVATE];
bool tree_is_private(const char *name);
/* Is @path at or below one of them? */
bool tree_top_is_private(const char *path);

/* Puts @a and @b together; -ENAMETOOLONG. */
int tree_join(char out[PATH_MAX], const char *a, const char *b, struct err *e);

#endif
