/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resolver - where the programs of a session with a virtual network find names of hosts.
 *
 * /etc/resolv.conf names the gateway, which asks whom its own host asks at that time, and has the
 * domains to search that this host has when the session begins; /etc/hosts has the session's own
 * name.  Both are files in the session's /run/podrun, bound over what the
 * session's root has: they travel with it, changes included, and nothing is written to a layer that
 * may not be writable.
 */
#ifndef SUPERVISOR_WORLD_RESOLVER_H
#define SUPERVISOR_WORLD_RESOLVER_H

struct world_config;

/* In the session's new root, whose /run is its own.  What can't be done is logged. */
void resolver_make(const struct world_config *c);

#endif
