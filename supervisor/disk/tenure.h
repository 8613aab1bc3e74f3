/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tenure - the directories of a name belong to one supervisor at a time.
 *
 * When a session is suspended and resumed at once, two supervisors of the same name overlap: one
 * that tidies up behind itself and one that moves in.  Each keeps its own directories open, and
 * both look and rename under one lock; so nobody removes what has become another's, and a path
 * changes hands in one step: what leaves is renamed away before it is taken apart.
 *
 * An open directory is locked (flock), and the lock goes with its owner, however that ends.  So
 * what a supervisor that was killed has left can be told from what another is just making, and
 * whoever comes by removes it.
 */
#ifndef SUPERVISOR_DISK_TENURE_H
#define SUPERVISOR_DISK_TENURE_H

#include <stdbool.h>

struct err;
struct paths;

/*
 * Takes the user's lock on names; closing the descriptor gives it back.  Held only for renames, and
 * for looking which images are needed.
 */
int tenure_lock(const struct paths *p, struct err *e);
/* The same, or -EWOULDBLOCK: for who can do it later as well as now. */
int tenure_try_lock(const struct paths *p);

/* Opens a directory that has just been made its owner's.  Under the lock. */
int tenure_open(const char *path, struct err *e);

/* True if @path is the directory of somebody who lives. */
bool tenure_is_held(const char *path);
/* True if a session's directory is there, but no record in it and nobody who has it open. */
bool tenure_is_forsaken(const char *path);

/* True while @path is still the directory that was opened as @fd.  Under the lock. */
bool tenure_holds(const char *path, int fd);

/*
 * Renames @path to a name nobody looks for and returns that (the caller removes it, without the
 * lock, and frees the string); NULL if there was nothing.  Under the lock.
 */
char *tenure_set_aside(const char *path);

/*
 * Removes what supervisors that were killed have left and nobody asks for by a name: what was set
 * aside, sessions that were being resumed, directories without a record, runtime directories,
 * objects of sessions without an ipc namespace (rewrite/ipc/ipc.h), short names of sockets
 * (rewrite/view/view.h).
 */
void tenure_sweep(const struct paths *p);

/* Removes what tenure_set_aside returned and frees it; NULL is fine. */
void tenure_remove(char *aside);

#endif
