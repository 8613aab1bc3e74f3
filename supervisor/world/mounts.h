/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mounts - mount and bind, with the story told when it fails: what all modules use that put the
 * session's view together.
 */
#ifndef SUPERVISOR_WORLD_MOUNTS_H
#define SUPERVISOR_WORLD_MOUNTS_H

#include <stdbool.h>

struct err;

/* Where the new root is put together before it becomes /. */
#define MOUNTS_BASE "/tmp"

/* mount(2).  @target and what it is for go into the message; ERR_HOST if it fails. */
int mounts_mount(const char *source, const char *target, const char *type, unsigned long flags,
	const char *data, struct err *e);
/* A detached copy of @source with all mounts below it: a descriptor for move_mount(2). */
int mounts_clone(const char *source, bool read_only, struct err *e);
/* Binds @source with all mounts below it. */
int mounts_bind(const char *source, const char *target, bool read_only, struct err *e);

#endif
