/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * cgroup - a limit of memory for a session, where the host has delegated a control group to its
 * user.
 *
 * Only a control group can limit memory that several processes use together, and only version 2 can
 * be given to an ordinary user: a part of the hierarchy belongs to him (systemd-run --user --scope
 * -p Delegate=yes, or root's chown).
 */
#ifndef SUPERVISOR_WORLD_CGROUP_H
#define SUPERVISOR_WORLD_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* True if the caller's own group is delegated to him and has the memory controller. */
bool cgroup_is_delegated(void);
/*
 * Makes a group below the caller's own, in which processes may use @memory bytes together.  The
 * caller frees *ret.  ERR_HOST where nothing is delegated.
 */
int cgroup_create(const char *name, uint64_t memory, char **ret, struct err *e);
/* Puts the one process @pid there; all it starts from now on will be there as well. */
int cgroup_enter(const char *path, pid_t pid, struct err *e);
/*
 * Removes the group, in which everything has ended or is about to, and frees @path; NULL is fine.
 */
void cgroup_remove(char *path);

#endif
