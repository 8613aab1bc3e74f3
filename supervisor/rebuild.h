/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rebuild - resume: a session comes out of an image, and the target's side of a migration.
 */
#ifndef SUPERVISOR_REBUILD_H
#define SUPERVISOR_REBUILD_H

struct client;
struct err;
struct session;
struct Pb__Decision;
struct Pb__ResumeRequest;

/* Begins; the client is answered later.  @image becomes the session's. */
int session_resume(struct session *s, struct client *c, const struct Pb__ResumeRequest *req,
	int image, struct err *e);
/* What becomes of a session that has arrived. */
int session_resume_decide(struct session *s, struct client *c, const struct Pb__Decision *d,
	struct err *e);

#endif
