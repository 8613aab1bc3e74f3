/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procfs/copy - files of /proc with the session's numbers in them, as sealed memfds.  Private to
 * rewrite/.
 *
 * What is opened again for a resumed session is opened before its processes are what they were:
 * that is a blank file at first, which is filled and sealed at last.
 */
#ifndef SUPERVISOR_REWRITE_PROCFS_COPY_H
#define SUPERVISOR_REWRITE_PROCFS_COPY_H

#include "supervisor/rewrite/procfs/node.h"

/*
 * For a node that is a file with a text or of another room's.  A descriptor (O_RDONLY), or a
 * negative errno.
 */
int procfs_copy_open(const struct procfs *p, const struct task *asker, const struct procfs_node *n);
/* Would a copy say anything else than the host's own file? */
bool procfs_copy_differs(const struct procfs *p, const struct procfs_node *n);
int procfs_copy_blank(const struct procfs_node *n);
/* Of a blank one; nothing happens to any other.  0 or a negative errno. */
int procfs_copy_fill(const struct procfs *p, const struct procfs_node *n, int fd);

#endif
