/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layers - a directory tree of the host, with a writable layer on top, as the session's root.
 */
#ifndef SUPERVISOR_WORLD_LAYERS_H
#define SUPERVISOR_WORLD_LAYERS_H

struct err;
struct world_config;

/*
 * Mounts the session's root at MOUNTS_BASE: @source ("" for the host's own /, or --root DIR) below,
 * the session's files_dir/upper on top.  The working directory is files_dir.  The directories proc
 * sys dev tmp run exist in the result and are empty or about to be covered.
 */
int layers_mount(const struct world_config *c, const char *source, struct err *e);

#endif
