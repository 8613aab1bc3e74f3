/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * front - what an image of a session begins with: how it stands.
 */
#ifndef SUPERVISOR_FRONT_H
#define SUPERVISOR_FRONT_H

#include <stddef.h>

struct session;
struct utsname;
struct Pb__Job;
struct Pb__World;

/*
 * Fills @w with clocks, host, kernel and commands of @s, of which there may be more than @max:
 * those are left out.  It points into the session, @uts, and @jobs and @list, which have room for
 * @max.
 */
void front_describe(struct session *s, struct Pb__World *w, struct Pb__Job *jobs,
	struct Pb__Job **list, size_t max, struct utsname *uts);

#endif
