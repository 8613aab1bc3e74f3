/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker/dump - the worker that freezes a session and writes it.
 *
 * The supervisor's death is an end of file on the socket: a session dies with it, so what is frozen
 * is ended.
 */
#ifndef SUPERVISOR_WORKER_DUMP_H
#define SUPERVISOR_WORKER_DUMP_H

#include "ckpt/ckpt.h"

/* Everything a dump worker needs that it does not inherit by being forked. */
struct worker_dump {
	struct ckpt_world world; /* with edges; descriptors stay open in the worker */
	struct ckpt_dump_options options;
	pid_t client;		/* who asked for it; 0 */
	int listener;		/* of notifications, for options.unhold */
	const char *config_dir; /* where the key is */
	int images;		/* directory of images, or -1 */
	const char *older;	/* one in it that the new one may refer to, or NULL */
	bool ahead;		/* memory is copied ahead, before anything is frozen */
};

/*
 * Called in a fresh fork with the worker's end of the socket pair and a struct worker_dump; it
 * exits, and returns only by mistake.
 */
void worker_main_dump(int sock, const void *what);
/* The same: ckpt_mend, without a word. */
void worker_main_mend(int sock, const void *what);
/*
 * As worker_main_dump, in a process that has more to do: it returns when the session runs (again).
 * Takes @sock.  If the session does not survive, nor does the caller.
 */
void worker_dump_here(int sock, const struct worker_dump *what);

#endif
