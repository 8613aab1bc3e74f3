/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * plan - the world that a session's config asks for.
 */
#ifndef SUPERVISOR_WORLD_PLAN_H
#define SUPERVISOR_WORLD_PLAN_H

#include "supervisor/world/world_config.h"
#include "vnet/vnet.h"

struct Pb__Config;
struct err;
struct paths;

#define PLAN_PLACES 2
#define PLAN_HIDDEN 3
struct plan {
	struct world_config config; /* points into the others */
	struct world_bind *binds;
	const char *places[PLAN_PLACES];
	const char *hidden[PLAN_HIDDEN];
	char search[VNET_SEARCH_MAX];
};

/*
 * Fills *ret from @c; @files is the directory of the session's own files.  All is borrowed from the
 * arguments but the list of binds, which plan_fini frees.  Left to the caller: rewrite, offsets of
 * clocks, skeleton, mapped, domains to search.  -ENOMEM with @e set.
 */
int plan_make(struct plan *ret, const struct Pb__Config *c, const struct paths *paths,
	const char *files, struct err *e);
void plan_fini(struct plan *p);

#endif
