/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tcp_repair - a socket in repair mode (TCP_REPAIR, tcp(7)), private to the kind TCP.
 *
 * The owner of the network namespace may switch it on.  Then queues and their numbers can be read
 * and, of a new socket, set, and no packet leaves.  The mode forgets SO_REUSEADDR when it is
 * switched off; it is set again.
 */
#ifndef CKPT_KINDS_TCP_REPAIR_H
#define CKPT_KINDS_TCP_REPAIR_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct tcp_repair {
	int fd; /* -1: off */
	int reuse;
};

/* TCP_* of netinet/tcp.h; -1 if it is no TCP socket. */
int tcp_repair_state(int fd);
int tcp_repair_on(struct tcp_repair *r, int fd, struct err *e);
/* Sends nothing.  One that is not on is fine. */
void tcp_repair_off(struct tcp_repair *r);
/* The number behind the last byte of @queue (TCP_RECV_QUEUE, TCP_SEND_QUEUE), which stays
 * chosen. */
int tcp_repair_seq(int fd, int queue, uint32_t *ret, struct err *e);
/* The same of the queue that is chosen. */
int tcp_repair_seq_again(int fd, uint32_t *ret, struct err *e);
/* Appends everything that a peek shows, which should be @expected bytes.  Without any nothing
 * is done: it would tell an error that waits.  Also of a socket in no such mode. */
int tcp_repair_peek(int fd, size_t expected, struct buf *ret, struct err *e);

#endif
