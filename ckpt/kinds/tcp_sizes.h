/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tcp_sizes - how large the buffers of new TCP sockets are: net.ipv4.tcp_rmem and tcp_wmem.
 *
 * setsockopt(2) gives no more than the host's limits (net.core.rmem_max), and what it gives is
 * the user's choice from then on.  The defaults of the session's network are its own, and may be
 * anything: a socket is given exactly the sizes it is to have by setting them before it is made.
 * On the host's network nothing happens.
 */
#ifndef CKPT_KINDS_TCP_SIZES_H
#define CKPT_KINDS_TCP_SIZES_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/build.h"

#define TCP_SIZES_LEAST 4096
#define TCP_SIZES_MOST	(1u << 30)

struct tcp_sizes {
	struct ckpt_build *build;
	bool known;
	unsigned long before[2][3]; /* receive, send */
	unsigned long now[2];
};

void tcp_sizes_begin(struct tcp_sizes *s, struct ckpt_build *b);
/* Of sockets made from now on.  Best effort. */
void tcp_sizes_choose(struct tcp_sizes *s, uint64_t receive, uint64_t send);
/* The same, but none smaller than they would have been. */
void tcp_sizes_raise(struct tcp_sizes *s, uint64_t receive, uint64_t send);
void tcp_sizes_end(struct tcp_sizes *s);

#endif
