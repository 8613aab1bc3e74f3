/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * init - pid 1 of a session.  What the supervisor and it say to each other is in init_protocol.h.
 */
#ifndef SUPERVISOR_WORLD_INIT_H
#define SUPERVISOR_WORLD_INIT_H

struct err;
struct ns_ids;
struct numbers;
struct world_config;

/*
 * The child's side of ns_clone: becomes pid 1.  @sock: SOCK_SEQPACKET, to the supervisor; a failure
 * is told over it as well (struct init_ready).  If names are rewritten, @numbers are the session's,
 * and @rewriter is where the filter's listener goes instead; else NULL and -1.  Never returns.
 */
_Noreturn void init_main(const struct world_config *c, const struct ns_ids *ids, int sock,
	const struct numbers *numbers, int rewriter);
/* The story of an end of pid 1 that nobody wanted; @status as wait(2) has it.  Returns -ECHILD. */
int init_say_end(struct err *e, int status);

#endif
