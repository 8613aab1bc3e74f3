/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * where - paths of a session between what it says and what the host has (struct ckpt_paths).  With
 * a mount namespace both are the same, below root_fd.
 */
#ifndef CKPT_WHERE_H
#define CKPT_WHERE_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

struct ckpt_world;
struct err;

/*
 * Takes @host over, a path as the host's /proc has it, and returns the session's in its place
 * (NULL: no memory).  What the session has no word for, and what is no path, stays what it is.
 */
char *ckpt_where_say(const struct ckpt_world *w, char *host);
/* The same for the name of a unix socket, which is no string.  0 or -ENOMEM. */
int ckpt_where_say_name(const struct ckpt_world *w, uint8_t **name, size_t *len);
/* The session's @path where it can be opened below root_fd, without a slash in front; "." for /. */
const char *ckpt_where_below(const struct ckpt_world *w, const char *path, char room[PATH_MAX]);
/*
 * The session's @path as the builder opens it: @path itself, or what is put into @room.  @w NULL:
 * of an image that is only looked at.
 */
const char *ckpt_where_host(const struct ckpt_world *w, const char *path, char room[PATH_MAX]);
/*
 * The same for the name of a unix socket, which has room for @size bytes; if it can't be made short
 * enough, it is not.
 */
const char *ckpt_where_socket(
	const struct ckpt_world *w, const char *path, size_t size, char room[PATH_MAX]);
/*
 * Two sessions must not write to one file of which both think that it is theirs.  Where no mount
 * namespace gives a copy files of its own: -EBUSY with @e set if @path, a @what ("file"), is the
 * host's.
 */
int ckpt_where_alone(const struct ckpt_world *w, const char *what, const char *path, struct err *e);
/* @e, which it also returns, is of a path that could not be read: one too long will never be. */
int ckpt_where_unread(struct err *e);
/* Opens the session's @path from outside; symbolic links in it count as the session's.  -errno. */
int ckpt_where_open(const struct ckpt_world *w, const char *path, int flags);

#endif
