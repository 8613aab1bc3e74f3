/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * introduce - introduces a world to ckpt, which knows nothing of the supervisor.
 */
#ifndef SUPERVISOR_INTRODUCE_H
#define SUPERVISOR_INTRODUCE_H

#include "ckpt/ckpt.h"

struct world;
struct Pb__Config;

/*
 * What ckpt has to know of @w: its pid 1, its roots and namespaces, who it is inside, and of @c: its
 * name and addresses.  The name and all descriptors are borrowed; edges and callbacks are the caller's
 * to add.
 */
struct ckpt_world introduce_world(const struct world *w, const struct Pb__Config *c);

#endif
