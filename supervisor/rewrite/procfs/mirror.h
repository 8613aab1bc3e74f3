/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procfs/mirror - directories of /proc for getdents(2) to list.  Private to rewrite/.
 *
 * A descriptor of a directory can only be had from a directory, so there is a tree of the session's
 * /proc somewhere on the host: empty directories, empty files, links to nothing.  It is there for
 * its names and the sorts of its entries alone; every path that leads into it is resolved as one of
 * /proc (procfs_from_host).
 *
 *      MIRROR/proc/12/task/13/...
 *      MIRROR/turn                    (below)
 *
 * A directory is made right when it is opened.  The order in which a directory lists is the file
 * system's own; on tmpfs it is that of births, backwards or forwards, and there the entries are
 * brought into the order of /proc, each moved to `turn` and back.  Elsewhere, and where they are
 * many, names come in no order.
 *
 * A session can have a million descriptors in a thousand processes, and list them all.  So a
 * directory has a limit, and when as many entries have been made the processes' directories are
 * removed and begun anew; who is just reading one finds it empty.
 */
#ifndef SUPERVISOR_REWRITE_PROCFS_MIRROR_H
#define SUPERVISOR_REWRITE_PROCFS_MIRROR_H

#include <stddef.h>

struct err;
struct procfs_mirror;

struct mirror_entry {
	char name[256];
	unsigned char type; /* DT_DIR, DT_LNK; all else is a file */
};

struct mirror_list {
	struct mirror_entry *v;
	size_t n, cap;
};

#define MIRROR_MAX     65536 /* entries of a directory, and of all since they were removed */
#define MIRROR_ORDERED 2048  /* entries of a directory that are brought into order */

/* 0 or -ENOMEM, also beyond MIRROR_MAX.  Longer names than a directory may have are cut. */
int mirror_list_add(struct mirror_list *l, const char *name, unsigned char type);
/*
 * Whatever directory @path below @dirfd has, in its order, but for "." and "..".  0 or a negative
 * errno.
 */
int mirror_list_read(struct mirror_list *l, int dirfd, const char *path);
void mirror_list_fini(struct mirror_list *l);
#define _cleanup_list_ __attribute__((cleanup(mirror_list_fini)))

/* @path: an empty directory of the caller's.  0, or a negative errno with @e. */
int procfs_mirror_create(struct procfs_mirror **ret, const char *path, struct err *e);
void procfs_mirror_free(struct procfs_mirror *m);

/*
 * Opens directory @path ("" is the uppermost), which is made if need be, with @flags; a descriptor
 * or a negative errno.  @list, unless NULL: what is in it from now on.
 */
int procfs_mirror_open(
	struct procfs_mirror *m, const char *path, const struct mirror_list *list, int flags);

/* @host is a path of the host: behind the mirror's own, or NULL if it is not in it. */
const char *procfs_mirror_below(const struct procfs_mirror *m, const char *host);

#endif
