/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interface - the host's interface of a session with --net passthrough:IF (vnet/passthrough.h).
 */
#ifndef SUPERVISOR_NETWORK_INTERFACE_H
#define SUPERVISOR_NETWORK_INTERFACE_H

struct err;
struct session;

/*
 * Moves the one that @text names into the session's network.  As vnet_passthrough_take, and
 * ERR_STATE if another session of this user has it.
 */
int interface_take(struct session *s, const char *text, struct err *e);

#endif
