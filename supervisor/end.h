/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * end - the end of a session.
 */
#ifndef SUPERVISOR_END_H
#define SUPERVISOR_END_H

#include "supervisor/disk/record.h"

struct client;
struct err;
struct session;

/* Kills everything inside, from frozen, paused or running, without asking anybody. */
void session_kill(struct session *s);
/*
 * Of a session that is being rebuilt: nothing runs in it, and it may get another.  To take it apart
 * is left for later, since the kernel writes back what belongs to its mounts.
 */
void session_drop_world(struct session *s);
/* Everything inside is gone (or never was): tells clients, cleans up, leaves the loop when done.
 * @state: what stays on disk says so; RECORD_STATE_MAX if nothing stays. */
void session_close(struct session *s, enum record_state state);
/* What never ran: closes it, leaves nothing, and tells @c why (NULL: nobody). */
void session_give_up(struct session *s, struct client *c, const struct err *e);
/* NULL is fine.  Waits for the world to come apart and for files to be removed. */
void session_free(struct session *s);

#endif
