/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rename - the name of a session that is being resumed.
 *
 * It is rebuilt in a directory without a name, and takes its name when all of it is there: perhaps
 * from the record of the very session that it was, or from one that has just ended.
 */
#ifndef SUPERVISOR_RENAME_H
#define SUPERVISOR_RENAME_H

#include <stdbool.h>

struct err;
struct session;

/*
 * Is the name of this session free, about to be (the session itself still has it), or in use by
 * another?
 */
enum name_use { NAME_FREE, NAME_WAIT, NAME_TAKEN };
enum name_use rename_look(struct session *s, bool *ret_live);
/* ERR_STATE, with what to do; returns -EEXIST. */
int rename_taken(const struct session *s, struct err *e);
/* The directory and the runtime directory get it.  0, or a negative errno with @e set: -EAGAIN if somebody was faster. */
int rename_take(struct session *s, struct err *e);
/*
 * The session runs under another name than it had: what says of that one that it is suspended goes,
 * and its log, which may be longer than what came with the image, goes on here.
 */
void rename_forget(struct session *s);
/* The session is in the image that is being resumed: so says its record. */
void rename_save_suspended(struct session *s, bool durable);

#endif
