/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view - the session's file view: its root, and what is private below it.
 */
#ifndef SUPERVISOR_WORLD_VIEW_H
#define SUPERVISOR_WORLD_VIEW_H

struct err;
struct world_config;

/*
 * In pid 1, in its own mount namespace, with the host's files still at /: puts the view together
 * and makes it the root.  Nothing of the host's tree remains reachable but what the view shows.
 */
int view_setup(const struct world_config *c, struct err *e);

#endif
