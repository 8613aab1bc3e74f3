/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procs - the processes of a session as the host's /proc shows them, under their virtual numbers.
 */
#ifndef SUPERVISOR_PROCS_H
#define SUPERVISOR_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;
struct world;
struct Pb__Process;

struct procs {
	struct Pb__Process **all; /* by vpid; strings and entries owned */
	size_t n;
	pid_t *pgids; /* of all[i], as the session sees it */
};

/*
 * Everything below pid 1 of world @w, without pid 1 itself, and without what
 * process @copier traces (0: nobody): the copies of memory that a snapshot is written from.
 */
int procs_list(const struct world *w, pid_t copier, struct procs *ret, struct err *e);
void procs_fini(struct procs *p);

/*
 * Sends @signal to process @vpid of the session, or with @group to every process of group @vpid.
 * ERR_NOT_FOUND when there is none.
 */
int procs_signal(const struct world *w, pid_t vpid, bool group, int signal, struct err *e);

#endif
