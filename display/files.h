/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * files - one viewer's files into a directory of the session's, and from there.
 *
 * The directory is /tmp/DISPLAY_FILES_PLACE of the session.  Both sides may be hostile: a viewer
 * gets at nothing else, whatever it calls its files, and what the session puts there leads nowhere.
 */
#ifndef DISPLAY_FILES_H
#define DISPLAY_FILES_H

#include <stdbool.h>

#include "base/base.h"
#include "display/wire.h"

struct display_files;

#define DISPLAY_FILES_PLACE	"files"
#define DISPLAY_FILES_SIZE	(4ull << 30) /* bytes of one, at most */
#define DISPLAY_FILES_NAME	200	     /* bytes of a name, at most */
#define DISPLAY_FILES_LIST	256	     /* of the directory, at most */
#define DISPLAY_FILES_AT_A_TIME 8
#define DISPLAY_FILES_AHEAD	(256u << 10) /* of a file: sent and not acknowledged, at most */
#define DISPLAY_FILES_HIGH	0x80000000u /* of ids: the server's have it, viewers' don't */

/* @files: the session's own files, O_PATH, borrowed.  -ENOMEM or 0. */
int display_files_new(int files, struct display_files **ret_files);
/* What has not come whole is removed.  Accepts NULL. */
void display_files_free(struct display_files *f);

/* The record of a FILE that the viewer has sent. */
void display_files_take(struct display_files *f, const struct display_bytes *record);
/* The session is about to be frozen: nothing is written until it runs again, but kept. */
void display_files_hold(struct display_files *f, bool on);
/*
 * Appends messages that wait for the viewer, and with @bulk one piece of a file, if there is one.
 * Returns whether there is more to come.
 */
bool display_files_put(struct display_files *f, struct buf *out, bool bulk);

/*
 * What a file is called here that somebody calls @name: one component, not hidden, printable UTF-8.
 * @ret has DISPLAY_FILES_NAME + 1 bytes.
 */
void display_files_name(const char *name, char *ret);

#endif
