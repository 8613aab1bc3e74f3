/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * find - names of inodes of which the number is known, and perhaps a name that is gone.  Private to
 * ckpt.
 *
 * The kernel tells what an inotify watches by device and inode.  Names are tried in the order of
 * how likely they are: those found before the session stopped, what desktops watch, open and mapped files and
 * the directories they are in, working directories, then a walk over the session's files which gives up
 * after a while: later while the session runs.
 */
#ifndef CKPT_KINDS_FIND_H
#define CKPT_KINDS_FIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct ckpt_dump;
struct ckpt_file;

struct find_inode {
	dev_t dev; /* of the file system */
	ino_t ino;
	bool found; /* set before the search: not wanted */
	char *path; /* once found: absolute, in the session's view; free it */
};

/* What an inotify watches. */
struct find_watch {
	int wd;
	uint32_t mask; /* as the kernel tells it: with bits of its own */
	struct find_inode inode;
};

/* The next watch in the text of an inotify's fdinfo (proc(5)), of which *at is the rest: 1, 0 at
 * its end, -ENOTSUP if a line is not understood. */
int ckpt_find_watch(const char **at, struct find_watch *ret);

/* Looks for all @n at once.  Returns how many were not found. */
size_t ckpt_find_inodes(const struct ckpt_dump *d, struct find_inode *want, size_t n);

/*
 * While the session runs: looks for what its inotifies watch now, so that it need not stand still
 * for so long.  @d has a world and nothing else yet; @ret gets struct find_inode, to be had as
 * d->found later.  Nothing is found, and false returned, where no /proc of its own shows the
 * session, or where looking would be noticed.
 */
bool ckpt_find_ahead(const struct ckpt_dump *d, struct buf *ret);
void ckpt_find_forget(struct buf *found);

/*
 * A name that @f still has, in the session's view: that by which it was opened; of regular files
 * and FIFOs also another one, in the directory of that or anywhere.  Caller frees; NULL: none was
 * found.  Those of all files are searched at the first question, and kept as d->found.
 */
char *ckpt_find_name(struct ckpt_dump *d, const struct ckpt_file *f);
/* A name of a mapped file that had the name @path, in the directory of that only.  Caller frees. */
char *ckpt_find_beside(const struct ckpt_dump *d, const char *path, dev_t dev, ino_t ino);

#endif
