/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * users - the virtual users of a root inside: what a process is, and what it may become
 * (credentials(7)).
 */
#ifndef SUPERVISOR_NAMES_USERS_H
#define SUPERVISOR_NAMES_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Ids of a process as its calls are answered.  Nobody can become more than 65534. */
struct users_ids {
	uint32_t real, effective, saved;
};
struct users {
	struct users_ids uid, gid;
	bool keeps_caps; /* prctl(PR_SET_KEEPCAPS): may set ids whatever its own are */
	uint16_t groups; /* index of its supplementary groups, USERS_NO_GROUPS: as the kernel has */
};
#define USERS_NO_GROUPS	 0xffff
#define USERS_MAX_GROUPS 1024 /* of a process */

/* Those of the process that @tid (on the host) belongs to; root where none were ever set. */
void users_load(pid_t tid, struct users *ret);
/* 0; -EPERM: its hard limits leave no room. */
int users_store(pid_t tid, const struct users *u);

bool users_same(const struct users *a, const struct users *b);
/* May it set ids to anything? */
bool users_privileged(const struct users *u);
/* The ids that call @nr is about: getuid, setresgid, ... */
struct users_ids *users_triple(struct users *u, int nr);
/*
 * What set*id call @nr with @args makes of @u, who may become anybody (@root) or not: 0, or -EPERM
 * or -EINVAL and nothing is changed.
 */
int users_change(struct users *u, int nr, const uint64_t *args, bool root);

/*
 * Sets of supplementary groups.  They are in memory shared with processes forked after it was made;
 * one of them adds.
 */
struct users_groups;
/* NULL: no memory. */
struct users_groups *users_groups_new(void);
void users_groups_free(struct users_groups *g);
/*
 * The number of the set of @n @ids, which is added if it is a new one; -ENOMEM when there is no
 * room.
 */
int users_groups_find(struct users_groups *g, const gid_t *ids, size_t n);
/* The ids of set @number; of one that is not there none. */
const gid_t *users_groups_of(const struct users_groups *g, uint16_t number, size_t *ret_n);

typedef struct Pb__World Pb__World;
struct err;
/*
 * Puts all sets into @w.  *ret_room, freed by the caller when @w is of no more use, and @g hold
 * them.
 */
int users_groups_dump(const struct users_groups *g, Pb__World *w, void **ret_room);
/* The sets of an image into @g, which has none; ERR_IMAGE if they make no sense. */
int users_groups_restore(struct users_groups *g, const Pb__World *w, struct err *e);

#endif
