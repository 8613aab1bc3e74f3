/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tcp_drain - what a session has sent arrives by the network rather than in the image.
 *
 * Theory of operation
 *
 * A task that sends as fast as it can has megabytes in its socket's queue.  In an image they are
 * read, signed, carried and put into a queue again, and all that time the peer hears nothing.  Once
 * tasks stand still nothing is added to them, while the network is still open: so they get there by
 * themselves, and to the peer that is no gap.
 *
 * Hence between the freeze and the moment from which the packets are held (ckpt_dump_options.hold)
 * connections with much to send are looked at until it has gone, or as long as it goes.  What a
 * peer sends meanwhile makes the image longer, and counts against it.  Of a session that runs on
 * (snapshot) nothing is waited for: its queues stay where they are.
 *
 * To find such connections the kernel goes through the host's whole table, so that is done while
 * the session runs, and how fast each is is asked then: a slow one is not waited for, nor one whose
 * other end takes nothing, or stands still as well.  To look at one whose addresses are known takes
 * microseconds.
 */
#ifndef CKPT_KINDS_TCP_DRAIN_H
#define CKPT_KINDS_TCP_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

struct buf;

#define TCP_DRAIN_NS 40000000ULL /* the longest that tasks stand still for it */

/*
 * Connections that lead out, have much to send, and are fast enough to be through in TCP_DRAIN_NS.
 * @diag: of ckpt_sock_diag_open, or -1.  Put in @ret in a form of its own; nothing where the kernel
 * doesn't tell.  True: one that leads out is being told much, and none has much to say, so that what is
 * held back from when tasks stand still makes nobody wait, and the image shorter.
 */
bool tcp_drain_look(int diag, struct buf *ret);
/*
 * Waits while those of @found get it sent, no longer than @longest_ns; by then the tasks stand
 * still.  Returns the bytes which they still have to send.
 */
uint64_t tcp_drain(int diag, const struct buf *found, uint64_t longest_ns);

#endif
