/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * users - the virtual users of a root inside.
 */
#ifndef SUPERVISOR_NAMES_USERS_H
#define SUPERVISOR_NAMES_USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Ids of a process as its calls are answered.  Larger ids than 65534 don't exist inside. */
struct users_ids {
	uint16_t real, effective, saved;
};
struct users {
	struct users_ids uid, gid;
	bool keeps_caps; /* prctl(PR_SET_KEEPCAPS): may set ids whatever its own are */
	uint16_t groups; /* index of its supplementary groups, USERS_NO_GROUPS: as the kernel has */
};
#define USERS_NO_GROUPS 0xffff

/* Those of the process that @tid (on the host) belongs to; root where none were ever set. */
void users_load(pid_t tid, struct users *ret);

/* Sets of supplementary groups. */
struct users_groups;
struct users_groups *users_groups_new(void);
void users_groups_free(struct users_groups *g);

typedef struct Pb__World Pb__World;
struct err;
/* Puts all sets into @w.  *ret_room, freed by the caller when @w is of no more use, and @g hold them. */
int users_groups_dump(const struct users_groups *g, Pb__World *w, void **ret_room);
/* The sets of an image into @g, which has none; ERR_IMAGE if they make no sense. */
int users_groups_restore(struct users_groups *g, const Pb__World *w, struct err *e);

#endif
