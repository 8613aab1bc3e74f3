/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fence - what a session without a mount namespace can't reach, whatever path it says: Landlock.
 *
 * Paths are translated by looking at the session's memory, which the session may change behind the
 * look (rewrite/view/view.h).  So the kernel itself is told what may be found: everything on the
 * host but its /tmp, /run, /dev/shm, /dev/mqueue and /proc, and of these the session's own.
 * Landlock knows no exceptions below what is allowed, therefore the top directory and /dev are
 * allowed entry by entry.  With --root it is that directory alone, and the devices that a mount
 * namespace would show.
 *
 * It looks at opens, and at what is made, removed and moved.  It hides no names: whoever asks for
 * the attributes of a file gets them.  podrun's own state, where that is in the user's home, it
 * can't except either.
 */
#ifndef SUPERVISOR_WORLD_FENCE_H
#define SUPERVISOR_WORLD_FENCE_H

#include <stdbool.h>

struct err;
struct world_config;

/* The version of Landlock that the kernel has and lets us use; 0: none that is good for this. */
int fence_version(void);
/* Whether signals and abstract sockets stay inside, too (since version 6). */
bool fence_scopes(int version);

/*
 * The rules for @c, a descriptor; -1 where there is no Landlock.  A negative errno below that with
 * @e.
 */
int fence_create(const struct world_config *c, struct err *e);
/*
 * One that leaves all files open, for a session that sees the host's as they are: whoever is behind
 * it still can't signal (since version 6) or inspect a process that is not.
 */
int fence_create_bare(struct err *e);
/*
 * The calling thread and all it forks are behind @fence (-1: nothing happens), with no_new_privs.
 * 0 or -errno.
 */
int fence_enter(int fence);

#endif
