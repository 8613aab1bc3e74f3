/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * launch - the beginning of a session: its name, its world, its command.
 */
#ifndef SUPERVISOR_LAUNCH_H
#define SUPERVISOR_LAUNCH_H

#include <stdbool.h>

struct client;
struct err;
struct session;
struct Pb__RunRequest;

/* Makes the session that @run asks for and starts its command.  @c has its answer when this returns 0. */
int session_start(
	struct session *s, struct client *c, const struct Pb__RunRequest *run, struct err *e);
/* Makes the world from the config, and watches it. */
int session_make_world(struct session *s, struct err *e);

#endif
