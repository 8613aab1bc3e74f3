/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tcp_address - takes addresses for connections within the session, of tcp_build.c.  Private to the
 * kind.
 */
#ifndef CKPT_KINDS_TCP_ADDRESS_H
#define CKPT_KINDS_TCP_ADDRESS_H

#include <sys/socket.h>

#include "ckpt/kind.h"

union ckpt_sockaddr;
struct Pb__InetAddr;

/* bind(2).  -EADDRINUSE, with a hint: somebody has it. */
int tcp_bind_to(int fd, int domain, const struct Pb__InetAddr *m, struct err *e);
/* As tcp_bind_to(), for who connects to somewhere next: its port may be that of connections from
 * here to other places. */
int tcp_bind_to_connect(int fd, int domain, const struct Pb__InetAddr *m, struct err *e);
/* Connects, at once: what listens is in the same kernel.  Leaves @fd nonblocking. */
int tcp_connect_to(int fd, const union ckpt_sockaddr *to, socklen_t len, struct err *e);

/*
 * An end of a connection on the host's network would be reset if it were closed now: it is not the
 * session's yet.  These do nothing in a network of the session's own.
 */
void tcp_hold_back(const struct ckpt_build *b, int fd);
/* It ends as SO_LINGER says, @as if any. */
void tcp_let_go(const struct ckpt_build *b, int fd, const struct linger *as);
/* As tcp_hold_back; what SO_LINGER said, for free(), or NULL. */
struct linger *tcp_hold_on(const struct ckpt_build *b, int fd);

#endif
