/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * overlay - one overlayfs of the session's root.
 */
#ifndef SUPERVISOR_WORLD_OVERLAY_H
#define SUPERVISOR_WORLD_OVERLAY_H

struct err;
struct tree;

/* What the kernel works in, with the path behind it; alone: of one that is the whole root. */
#define OVERLAY_WORK "work/%"

/*
 * Lays upper@path over @lower (and over what the skeleton layer has for it) at MOUNTS_BASE@path.
 * The working directory is files_dir.  ERR_HOST with a hint if the kernel refuses.
 */
int overlay_mount(const struct tree *t, const char *lower, const char *path, struct err *e);

#endif
