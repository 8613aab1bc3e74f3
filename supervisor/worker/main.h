/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker/main - what runs inside a worker, and what it is given to run with.  The supervisor's half
 * and the conversation between the two are in worker.h.
 */
#ifndef SUPERVISOR_WORKER_MAIN_H
#define SUPERVISOR_WORKER_MAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/ckpt.h"

struct rewriter_tables;
struct paths;
struct proto_conn;

struct worker_restore {
	int image; /* borrowed */
	bool stream;
	const char *config_dir, *state_dir;
	int dir; /* that the image is in; -1: it has no name */
	const struct paths *paths;
	struct rewriter_tables *tables; /* should it become the rewriter of the session */
	pid_t supervisor;
	const uint8_t *also_trust; /* a key, or NULL */
	bool skip_digests;
	_Atomic bool *going;		       /* as in struct ckpt_restore_options */
	/* NULL: nothing is mapped from the image, or, if it is a stream, from what comes ahead */
	const struct ckpt_mapped_options *map;
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

/*
 * Called in a fresh fork with the worker's end of the socket pair and a struct worker_restore or
 * worker_convert.  They exit, and return only by mistake.
 */
void worker_main_restore(int sock, const void *what);
void worker_main_convert(int sock, const void *what);

#endif
