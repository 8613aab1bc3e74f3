/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recreate - the frame of a session's root: the directories of the host that have mounts below
 * them, made again, and the plan of what is mounted in them once they stand.
 */
#ifndef SUPERVISOR_WORLD_RECREATE_H
#define SUPERVISOR_WORLD_RECREATE_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct tree;

/* What is mounted once the frame stands. */
struct plan {
	char *path; /* in the session, absolute */
	bool bind;  /* as it is, read-only; else an overlay */
	bool own;   /* the upper layer alone: the host has nothing there */
};

struct recreate {
	const struct tree *t; /* borrowed */
	bool writable;	      /* the frame is files_dir/upper, not a tmpfs */
	bool first;	      /* files_dir/upper has not been one before */
	struct plan *plans;   /* in the order in which they are to be mounted */
	size_t n_plans;
};

/* Makes the directories at MOUNTS_BASE, which is an empty file system or the upper layer, and fills
 * in the plans.  The working directory is files_dir. */
int recreate_tree(struct recreate *x, struct err *e);
/* Also after a failure. */
void recreate_fini(struct recreate *x);

#endif
