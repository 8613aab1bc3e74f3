/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procfs/place - where on the host the mirror of a session's /proc is (procfs/mirror.h).
 *
 * In /dev/shm, if that is a tmpfs, for nothing of it need ever reach a disk, and directories list
 * in an order there; else among the session's own files.  A directory in /dev/shm is one of
 * locked_dir.h.
 */
#ifndef SUPERVISOR_REWRITE_PROCFS_PLACE_H
#define SUPERVISOR_REWRITE_PROCFS_PLACE_H

#include <limits.h>

struct err;

/*
 * An empty directory, its path in @ret; @instead is a path for one that is made where /dev/shm does
 * not serve.  Returns a descriptor, to be kept open for as long as the directory is in use, or a
 * negative errno with @e.
 */
int procfs_place_make(const char *instead, char ret[PATH_MAX], struct err *e);
/* Removes what nobody uses any more of this user's. */
void procfs_place_sweep(void);

#endif
