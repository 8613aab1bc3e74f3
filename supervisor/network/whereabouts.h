/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * whereabouts - a session learns by which addresses the outside knows it now: its transient address
 * (Zap, section 4.5).
 *
 * Its own addresses never change, and most programs need no others.  One that tells others where it
 * is - a peer of peers, a service that announces itself - asks for it by --on-move: a command that
 * is run inside, by sh, at the start and behind each resume and each change of gateway.
 *
 *      /run/podrun/outside     an address a line
 *      PODRUN_OUTSIDE          the same, with blanks between, for the command
 */
#ifndef SUPERVISOR_NETWORK_WHEREABOUTS_H
#define SUPERVISOR_NETWORK_WHEREABOUTS_H

struct session;

/* @addresses: with blanks between.  Nothing happens to a session that has not asked. */
void whereabouts_tell(struct session *s, const char *addresses);

#endif
