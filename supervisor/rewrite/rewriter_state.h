/* SPDX-License-Identifier: GPL-2.0-or-later */
/* rewriter_state - a rewriter from inside.  Private to rewrite/: rewriter.c, hold.c, orders.c. */
#ifndef SUPERVISOR_REWRITE_REWRITER_STATE_H
#define SUPERVISOR_REWRITE_REWRITER_STATE_H

#include <stdbool.h>
#include <sys/types.h>

#include "supervisor/rewrite/rewrite.h"

struct ckpt_names;

struct rewriter {
	struct rewrite rw;
	pid_t init;
	char *name, *config_dir; /* of the session; where its user's key is */
	uid_t uid;		 /* who it is inside */
	gid_t gid;
	int proc;
	int sock;  /* to pid 1, for a moment */
	int order; /* from the supervisor (orders.h) */
	unsigned turns; /* stops that were dealt with */
	bool hold; /* tasks are being held, or are (hold.h) */
	pid_t *copies; /* of memory: traced, and not of the session (hold.h) */
	size_t n_copies;
	bool ending; /* pid 1 is about to */
	void (*ended)(void *ctx, int status); /* pid 1 has (rewriter_on_end), or NULL */
	void *ended_ctx;
};

/* Deals with one status of waitpid(2), with rw.lock held. */
void rewriter_status(struct rewriter *w, pid_t host, int status);
/* Waits for the next of them, or a signal, and deals with it. */
void rewriter_wait(struct rewriter *w);

#endif
