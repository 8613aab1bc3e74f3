/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * identity - whose image it is that is being resumed, and whether that makes sense.
 */
#ifndef SUPERVISOR_IDENTITY_H
#define SUPERVISOR_IDENTITY_H

struct err;
struct session;
struct Pb__Config;
struct Pb__ImageInfo;

/* Takes record, world and number from what an image begins with; nothing in it is believed.
 * ERR_IMAGE. */
int identity_take(struct session *s, const struct Pb__ImageInfo *info, struct err *e);
/* A clone must not share what only one session can have, for its original runs: ERR_STATE. */
int identity_check_clone(const struct Pb__Config *c, struct err *e);
/* What is to be said of a session that was resumed and is not as it was, or "".  The caller frees
 * it; NULL without memory. */
char *identity_note(const struct session *s);

#endif
