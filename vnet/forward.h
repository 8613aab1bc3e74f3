/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * forward - the temporary forwarder (Zap, section 4.5): for as long as others may remember the
 * address that a name had, the host which a session has left passes on connections to its published
 * ports.
 */
#ifndef VNET_FORWARD_H
#define VNET_FORWARD_H

struct err;

/*
 * Listens at @ports ("[IP:]PORT,..." with an IPv6 address in brackets) and leads each connection
 * through `ssh HOST PODRUN gateway --reach ...`, until the name has been changed for long enough,
 * or somebody needs the ports here (vnet_forward_stop).  Returns then; connections go on without
 * it.
 */
int vnet_forward_serve(const char *runtime, const char *host, const char *podrun, const char *ports,
	struct err *e);

/*
 * The other end: one connection to "[IP:]PORT" of this host, on stdin and stdout, until both have
 * ended.
 */
int vnet_forward_reach(const char *port, struct err *e);

/*
 * A session publishes ports here: forwarders of this user's end.  Waits for them, for a second each
 * at most.
 */
void vnet_forward_stop(const char *runtime);

#endif
