/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * datagram - UDP, ICMP echo and DNS of sessions: what is done packet by packet with sockets of
 * the host.
 *
 *      a session's packet -> UDP to the gateway's port 53 -> dns     name servers of the host
 *                            UDP                          -> udp     a socket per port
 *                            ICMP echo                    -> echo    a ping socket per id
 *                            to another session           -> its TUN, with both addresses changed
 *
 * It has one descriptor (epoll) for all of its sockets and its timer, and asks whoever holds the
 * sessions by a table of functions (sessions.h), so that it runs in the gateway's loop as in a
 * test's.
 *
 * What is to outlive the process - mappings, questions on their way - is in memory that the
 * caller gives (the arena), with the numbers of the descriptors; another process with the same
 * descriptors goes on from there.
 *
 * A session that is frozen, or suspended and gone, keeps its sockets: nobody reads them, and what
 * arrives waits in the kernel's receive buffers, which are its bound.  It ages slowly meanwhile:
 * after a day.
 */
#ifndef VNET_DATAGRAM_DATAGRAM_H
#define VNET_DATAGRAM_DATAGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct vnet_datagram;
struct vnet_datagram_sessions;
struct vnet_endpoint;
struct vnet_packet;

/* Bytes of the memory below. */
size_t vnet_datagram_arena_size(void);

/*
 * Goes on from what is in @arena, which is zeroed at the very first.  @resolv: path of another
 * resolv.conf (borrowed), or NULL.
 */
int vnet_datagram_new(struct vnet_datagram **ret, void *arena,
	const struct vnet_datagram_sessions *sessions, void *data, const char *resolv,
	struct err *e);
/* Leaves the sockets of @arena open.  Accepts NULL. */
void vnet_datagram_free(struct vnet_datagram *d);

/* Calls @keep for each descriptor in @arena, before anybody goes on from there. */
void vnet_datagram_each_fd(void *arena, void (*keep)(void *ctx, int fd), void *ctx);

/* Readable when vnet_datagram_run has something to do. */
int vnet_datagram_fd(const struct vnet_datagram *d);
void vnet_datagram_run(struct vnet_datagram *d);

/* A parsed UDP or ICMP packet of a session, whose source is the session's own address. */
void vnet_datagram_take(struct vnet_datagram *d, uint32_t session, struct vnet_packet *p);
/* There are no more for now: what was gathered is sent. */
void vnet_datagram_flush(struct vnet_datagram *d);

/* The session takes packets again. */
void vnet_datagram_go(struct vnet_datagram *d, uint32_t session);
/*
 * A name server of the host as it is now, for TCP: the first with *at 0.  *at is then where the
 * next is looked for; false: there is no more.  One that can't be said as an endpoint (an address
 * with a scope) is left out.
 */
bool vnet_datagram_resolver(struct vnet_datagram *d, unsigned *at, struct vnet_endpoint *ret);
/* How many ports of it are in a conversation: published ones, questions and pings are none. */
uint32_t vnet_datagram_count(struct vnet_datagram *d, uint32_t session);
/* Nothing of it is left. */
void vnet_datagram_forget(struct vnet_datagram *d, uint32_t session);

/*
 * Datagrams that arrive at @outside on the host are given to port @inside.port of the session (an
 * address of it), and come with their sender's address.  0, -EADDRINUSE, -EACCES, ...
 */
int vnet_datagram_open_port(struct vnet_datagram *d, uint32_t session,
	const struct vnet_endpoint *outside, const struct vnet_endpoint *inside);
void vnet_datagram_close_port(struct vnet_datagram *d, uint32_t session,
	const struct vnet_endpoint *outside, const struct vnet_endpoint *inside);

#endif
