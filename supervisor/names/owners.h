/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * owners - who owns a file, for a root inside and its virtual users.
 */
#ifndef SUPERVISOR_NAMES_OWNERS_H
#define SUPERVISOR_NAMES_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct owners;
struct users;

#define OWNERS_NOBODY 65534

/* @files_dir: where to remember that owners have been recorded at all. */
int owners_create(struct owners **ret, const char *files_dir, struct err *e);
void owners_free(struct owners *o);

/* Has a virtual owner ever been recorded? */
bool owners_any(const struct owners *o);
/*
 * Turns the owners that the host sees into those that @viewer shall see.  @path leads to the file,
 * followed if it is a link (of /proc, that is); NULL, as is @o: none is recorded for it.
 */
void owners_show(const struct owners *o, const struct users *viewer, const char *path,
	uint32_t *uid, uint32_t *gid);
/*
 * chown(2) by @giver of what @path leads to; -1 keeps the owner or the group.  0 or a negative
 * errno.
 */
int owners_give(
	struct owners *o, const struct users *giver, const char *path, uint32_t uid, uint32_t gid);

#endif
