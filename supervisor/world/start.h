/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * start - how pid 1 starts a process of the session.
 */
#ifndef SUPERVISOR_WORLD_START_H
#define SUPERVISOR_WORLD_START_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct init_reply;
struct init_request;

/*
 * Forks and execs what @request says; returns when the exec has succeeded or failed, with the story
 * in @reply.  @fds: the arguments' memfd, then 0 1 2 (borrowed).  @asked: what it says is rewritten
 * by somebody who has to read it (starter.h).  With a tty *ret_master is its master.
 */
void start_process(const struct init_request *request, bool asked, const int *fds, size_t n_fds,
	const sigset_t *mask, struct init_reply *reply, int *ret_master);

/*
 * A blank child with the number request->vpid: no descriptors, hardly any memory, in pause().  It
 * keeps pid 1's capabilities over the session's namespaces, also in its inheritable and ambient
 * sets; whoever fills it takes them away.
 */
void start_seed(const struct init_request *request, const sigset_t *mask, bool rewritten,
	struct init_reply *reply);

#endif
