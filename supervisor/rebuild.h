/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rebuild - resume: a session comes out of an image, and the target's side of a migration.
 */
#ifndef SUPERVISOR_REBUILD_H
#define SUPERVISOR_REBUILD_H

#include <stdbool.h>

struct client;
struct err;
struct session;
struct Pb__Decision;
struct Pb__ResumeRequest;

/* Begins; the client is answered later.  @image becomes the session's. */
int session_resume(struct session *s, struct client *c, const struct Pb__ResumeRequest *req,
	int image, struct err *e);
/*
 * The client gives it up by signal @number: the image is as it was, nothing else is left, and the
 * client told that its command has ended by it.  False where it is too late for that, or a decision
 * will be asked for.
 */
bool session_resume_cancel(struct session *s, int number);
/* What becomes of a session that has arrived. */
int session_resume_decide(struct session *s, struct client *c, const struct Pb__Decision *d,
	struct err *e);

#endif
