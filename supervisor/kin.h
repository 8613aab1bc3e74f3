/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kin - sessions that were made of one: it, and what is resumed of its snapshots.
 *
 * They have the same volumes, and one that may be written to is for one session at a time: a copy
 * can have it when neither the original nor another copy runs, or is suspended and so may run
 * again. Who they are is told by the id of the original, which a copy keeps beside its own.
 */
#ifndef SUPERVISOR_KIN_H
#define SUPERVISOR_KIN_H

struct err;
struct session;
struct Pb__Config;

/* What is said of the snapshots of a session with such a volume. */
#define KIN_NOTE "a copy of it can't run beside it, for both would write to its volume"

/* The volume that it may write to, the first if there are more, borrowed; or NULL. */
const char *kin_volume(const struct Pb__Config *c);
/* A copy becomes a session of its own, with an id of its own. */
int kin_part(struct Pb__Config *c, struct err *e);
/*
 * ERR_STATE if @s, which is being resumed, would share a volume with one of its kin.  Whoever has
 * its name is not looked at: that is what names are for.  Sure only under the lock on names.
 */
int kin_check(const struct session *s, struct err *e);

#endif
