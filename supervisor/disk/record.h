/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * record - what is known of a session on disk, for when its supervisor is gone.
 *
 * A `Record` of config.proto in sessions/NAME/record, replaced as a whole.  The supervisor writes
 * it at every change of state; the command line reads it, and believes "running" only while the
 * session's control socket answers.
 */
#ifndef SUPERVISOR_DISK_RECORD_H
#define SUPERVISOR_DISK_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "supervisor/disk/paths.h"

struct err;
struct Pb__Record;

enum record_state {
	RECORD_STARTING,
	RECORD_RUNNING,
	RECORD_PAUSED,
	RECORD_SUSPENDED, /* in an image on this host */
	RECORD_ARRIVED,	  /* came by migrate, frozen, waits for GO */
	RECORD_IN_DOUBT,  /* given away, not acknowledged, frozen */
	RECORD_MOVED,	  /* acknowledged by another host */
	RECORD_ENDED,
	RECORD_STATE_MAX
};
const char *record_state_name(enum record_state state);
/* RECORD_ENDED for a name nobody knows. */
enum record_state record_state_of(const char *name);

/*
 * Reads the record of @name: ERR_NOT_FOUND if there is none.  Freed with record_free.
 */
int record_load(struct Pb__Record **ret, const struct paths *p, const char *name, struct err *e);
void record_free(struct Pb__Record *r);
/*
 * Replaces the record in directory @dir; @durable: it is on the disk when this returns.  One that
 * is not is written over the old one where the disk is full.
 */
int record_save(const struct Pb__Record *r, const char *dir, bool durable, struct err *e);

/* Removes everything kept of @name that is not running: directory and its default images. */
int record_remove(const struct paths *p, const char *name, struct err *e);

#endif
