/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * images - the numbered images of sessions, below the state directory.
 *
 * Theory of operation
 *
 * A snapshot that is given no file is NAME.img@N (paths_image).  It may refer to an older one, for
 * what has not changed since (ckpt/base.h), and that by its file's name.  So one that is not wanted
 * any more goes out of sight first:
 *
 *      NAME.img@N        in sight: `image ls`, `resume NAME@N`
 *      NAME.img@N.base   hidden: is there because an image in sight, of this name or, where a
 *                        session was renamed, another, refers to it
 *
 * and is removed when no image in sight needs it.  Who hides or removes has the lock of the names
 * (tenure.h): else what another hides behind an image that has just come into sight would not be
 * needed by those that were looked at.
 */
#ifndef SUPERVISOR_DISK_IMAGES_H
#define SUPERVISOR_DISK_IMAGES_H

#include <stdbool.h>

struct paths;

/* The newest number of @name, whoever made it; 0: there is none. */
unsigned images_newest(const struct paths *p, const char *name);
/* The same of those that can be resumed. */
unsigned images_newest_in_sight(const struct paths *p, const char *name);
/* Hides the image with this file name.  This and all below: under the lock. */
void images_hide(const struct paths *p, const char *file);
/* Removes what is hidden, as far as nobody needs it. */
void images_sweep(const struct paths *p);
/* Both, with all that @name has in sight.  True if there was any. */
bool images_forget(const struct paths *p, const char *name);

#endif
