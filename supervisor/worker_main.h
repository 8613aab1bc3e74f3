/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker_main - what runs inside a worker, and what it is given to run with.  The supervisor's half
 * and the conversation between the two are in worker.h.
 */
#ifndef SUPERVISOR_WORKER_MAIN_H
#define SUPERVISOR_WORKER_MAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/ckpt.h"

struct proto_conn;

/* Everything a dump worker needs that it does not inherit by being forked. */
struct worker_dump {
	struct ckpt_world world; /* with edges; descriptors stay open in the worker */
	struct ckpt_dump_options options;
	int listener;		/* of notifications, for options.unhold */
	const char *config_dir; /* where the key is */
};

struct worker_restore {
	int image; /* borrowed */
	const char *config_dir, *state_dir;
	pid_t supervisor;
	const uint8_t *also_trust; /* a key, or NULL */
	bool skip_digests;
	_Atomic bool *going;		       /* as in struct ckpt_restore_options */
	const struct ckpt_mapped_options *map; /* NULL: nothing is mapped from the image */
};

/* What a converter needs; the rest it finds in the session's processes. */
struct worker_convert {
	struct ckpt_world world;
	int image, listener;
	uint32_t cookie;
	const struct ckpt_piece *pieces; /* sorted by offset */
	size_t n_pieces;
	const long *notified;
	size_t n_notified;
};

/* The descriptors of a `world` message behind pidfd, root, proc: user pid mnt net ipc uts time. */
#define WORKER_N_NS 7
void worker_ns_slots(struct ckpt_world *w, int *ret_slots[WORKER_N_NS]);

/*
 * Called in a fresh fork with the worker's end of the socket pair and a struct worker_dump,
 * worker_restore or worker_convert.  They exit, and return only by mistake.
 */
void worker_main_dump(int sock, const void *what);
void worker_main_restore(int sock, const void *what);
/* The same with a struct worker_dump: ckpt_mend, without a word. */
void worker_main_mend(int sock, const void *what);
void worker_main_convert(int sock, const void *what);

/*
 * As worker_main_dump, in a process that has more to do: it returns when the session runs (again).  Takes
 * @sock.  If the session does not survive, nor does the caller.
 */
void worker_dump_here(int sock, const struct worker_dump *what);

/* How each of them begins: nothing stays open but @sock, @w (or NULL) and @fds. */
struct proto_conn *worker_begin(
	int sock, const struct ckpt_world *w, const int *fds, size_t n_fds, const char *name);

#endif
