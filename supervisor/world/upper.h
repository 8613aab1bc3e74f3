/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * upper - the session's own layer, files_dir/upper: directories in it before anybody writes.  The
 * working directory is files_dir.
 */
#ifndef SUPERVISOR_WORLD_UPPER_H
#define SUPERVISOR_WORLD_UPPER_H

struct err;
struct tree;

/*
 * Makes upper@path, and all on the way to it, with the modes the host's directories have.  1 if the
 * session has something else in the place of one of them, a link for instance, which may lead anywhere.
 */
int upper_make(const struct tree *t, const char *path, struct err *e);
/* Makes those the session must be able to write to, the mount points of -v, and hides what is to be
 * hidden (world_config). */
int upper_prepare(const struct tree *t, struct err *e);
/* What holds libraries of a portable session back that have a file for it (portable.h), in a layer
 * that is new. */
int upper_hold_back(const struct tree *t, struct err *e);

/*
 * Has a session files in its layers that are not below them, at @root of the host ("": its own /),
 * as well?  1 and the path of one, as the session has it (*ret is freed by the caller), or 0.
 * @files: files_dir, below @dir_fd.
 */
int upper_changed(int dir_fd, const char *files, const char *root, char **ret);

#endif
