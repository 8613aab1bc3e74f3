/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tcp_end - a TCP socket while it is being made, of tcp_build.c and tcp_many.c.  Private to the kind.
 */
#ifndef CKPT_KINDS_TCP_END_H
#define CKPT_KINDS_TCP_END_H

#include "ckpt/kinds/tcp_live.h"

/* ckpt_record.state. */
struct tcp_end {
	struct Pb__Tcp *m; /* NULL: it is finished, with all of those that lead out */
	uint32_t id;
	int fd;	      /* until its own create takes it */
	int stand_in; /* the other end where nobody has it; -1 */
	uint64_t filled;
	uint64_t dropped;
	bool placed; /* it is known what has become of its peer and addresses */
	bool lost;   /* led out by a virtual network, to somebody who is another's by now */
	struct tcp_live live;
};

/* The record's, in the world that there is now; NULL with the story in @e. */
struct tcp_end *tcp_end_of(struct ckpt_build *b, struct ckpt_record *r, struct err *e);
/* Does it lead out, and is kept? */
bool tcp_end_is_live(const struct tcp_end *u);
/* Its descriptor, whoever has it; -1: it is not made yet. */
int tcp_end_fd(struct ckpt_build *b, const struct tcp_end *u);

/* All that lead out are made; they are told by their ->fd. */
int tcp_many_make(struct ckpt_build *b, struct tcp_sizes *sizes, struct err *e);
/* They are as they were, and done with: their ->m is gone. */
int tcp_many_finish(struct ckpt_build *b, struct err *e);

#endif
