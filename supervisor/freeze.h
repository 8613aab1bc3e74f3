/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * freeze - the operations on a running session that need a worker: pause, suspend, snapshot, and
 * the source's side of a migration.  All return once they have begun; the client is answered later.
 */
#ifndef SUPERVISOR_FREEZE_H
#define SUPERVISOR_FREEZE_H

struct client;
struct err;
struct session;
struct Pb__Decision;
struct Pb__SuspendRequest;

/* Stops everything, or lets it go on. */
int session_pause(struct session *s, struct client *c, struct err *e);
int session_unpause(struct session *s, struct client *c, struct err *e);
/* @stream: where the image goes, or -1 (becomes the session's). */
int session_suspend(struct session *s, struct client *c, const struct Pb__SuspendRequest *req,
	int stream, struct err *e);
/* What becomes of a session that is held, or in doubt. */
int session_decide(struct session *s, struct client *c, const struct Pb__Decision *d,
	struct err *e);
/* The operation's client went away: what was held for its decision runs on. */
void session_abandoned(struct session *s);

#endif
