/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mounts - the session's file view: its root, and what is private below it.
 */
#ifndef SUPERVISOR_MOUNTS_H
#define SUPERVISOR_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct world_config;

/* Where the new root is put together before it becomes /. */
#define MOUNTS_BASE "/tmp"

/*
 * In pid 1, in its own mount namespace, with the host's files still at /: puts the view together
 * and makes it the root.  Nothing of the host's tree remains reachable but what the view shows.
 */
int mounts_setup(const struct world_config *c, struct err *e);

/* mount(2) with the story told.  @target and what it is for go into the message. */
int mounts_mount(const char *source, const char *target, const char *type, unsigned long flags,
	const char *data, struct err *e);
/* Binds @source with all mounts below it. */
int mounts_bind(const char *source, const char *target, bool read_only, struct err *e);

#endif
