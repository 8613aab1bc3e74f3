/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * placing - where an image is written, and how it gets its name.
 *
 * It has no name until it is whole and synced, or a temporary one where the file system has no
 * nameless files.  An image that had the name before is kept beside it until the operation is over.
 */
#ifndef SUPERVISOR_PLACING_H
#define SUPERVISOR_PLACING_H

struct err;
struct session;
struct Pb__SuspendRequest;

/* Opens the directory that @path is in (@flags: open(2)); or a negative errno. */
int placing_parent(const char *path, int flags);
/*
 * Opens s->op.image: a stream (@stream, which becomes the operation's), or, where that is -1, a
 * file; -EINVAL if something else has its name.
 */
int placing_open(struct session *s, const struct Pb__SuspendRequest *req, int stream, struct err *e);
/* The image gets its name. */
int placing_commit(struct session *s, struct err *e);
/* There is no image after all: what had its name has it again. */
void placing_undo(struct session *s);

#endif
