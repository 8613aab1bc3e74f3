/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tcp - the parts of the kind, private to it.
 *
 *      tcp.c        kernel -> record
 *      tcp_queue.c  reads what is on its way between two sockets
 *      tcp_refused.c  what a closed socket has never been
 *      tcp_repair.c   the kernel's own view of a socket
 *      tcp_build.c  record -> kernel; tcp_end.h, what is known meanwhile
 *      tcp_address.c  what it connects, on the host's network too
 *      tcp_many.c   of those that lead out
 *      tcp_sizes.c  room in their buffers
 *      tcp_drain.c    lets the network have what was sent, before it is read
 *      tcp_live.c, tcp_live_build.c, tcp_peer.c  connections that lead out by a virtual network
 */
#ifndef CKPT_KINDS_TCP_H
#define CKPT_KINDS_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "ckpt/kind.h"

/* Is there a connection that leads out by a virtual network, has been closed by the session,
 * and still has to deliver something?  -EAGAIN. */
int tcp_check_closed(struct ckpt_dump *d, struct err *e);
/*
 * Appends the bytes on their way to @fd: first those it can read, then those that its peer @from
 * (-1: none) has taken and not delivered.  Both are as before afterwards.
 */
int tcp_queue_read(int fd, int from, struct buf *ret, struct err *e);
/* How many bytes @fd could read now, and how many @from has not delivered (-1: 0). */
uint64_t tcp_queue_received(int fd);
uint64_t tcp_queue_unsent(int from);
/*
 * Makes room in @fd's receive queue for @bytes more, so that a peer nobody has any more can deliver
 * what it still holds, and tells it so.  Best effort: on the host's network up to half of what
 * net.ipv4.tcp_rmem allows.
 */
int tcp_queue_make_room(const struct ckpt_dump *d, int fd, uint64_t bytes, struct err *e);
/* Makes @fd's receive queue have room for @bytes more, as far as the host allows. */
void tcp_queue_invite(int fd, uint64_t bytes);
/* Helps @from to deliver all it has to @fd, for a moment; best effort, see tcp_queue_unsent. */
int tcp_queue_deliver(const struct ckpt_dump *d, int fd, int from, struct err *e);
/* Has a connect(2) of @fd, which has an error to tell, failed without
 * having been answered by a peer? */
bool tcp_was_refused(int fd);

/* The restore side's ops of kind TCP (ckpt/kind.h), in tcp_build.c. */
int tcp_read(struct ckpt_record *r, struct err *e);
int tcp_create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e);
int tcp_data(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset, const void *data,
	size_t len, struct err *e);
int tcp_link(struct ckpt_build *b, struct ckpt_record *r, struct err *e);
int tcp_finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e);
void tcp_release(struct ckpt_build *b, struct ckpt_record *r);

#endif
