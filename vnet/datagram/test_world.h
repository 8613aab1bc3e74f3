/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * test_world - a host and two sessions for tests: three network namespaces in a user namespace,
 * one process.
 *
 * The process is in the host's namespace, where 192.0.2.1 and 2001:db8::1 (on lo) are the
 * outside.  Sockets of the sessions are made in theirs and used from here.  Nothing runs but
 * while a test waits (world_wait).
 */
#ifndef VNET_DATAGRAM_TEST_WORLD_H
#define VNET_DATAGRAM_TEST_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vnet/datagram/sessions.h"
#include "vnet/endpoint.h"

#define WORLD_SESSIONS 2

struct world {
	int host_ns, ns[WORLD_SESSIONS], tun[WORLD_SESSIONS];
	struct vnet_datagram_session session[WORLD_SESSIONS];
	struct vnet_datagram *datagrams;
	void *arena;
	char resolv[64];
	unsigned super_out, super_in; /* runs of datagrams that were seen: from and to sessions */
	bool blocked;		      /* nothing is read from the sessions */
};

/* 0; 1 if this host allows no namespaces. */
int world_make(struct world *w);
void world_end(struct world *w);
/* Another process has the gateway's arena and descriptors now. */
void world_restart(struct world *w);
/* A socket in session @i, or outside with @i < 0. */
int world_socket(struct world *w, int i, int family, int type, int protocol);
/* Bound to @text ("192.0.2.1", "::") and @port, non-blocking. */
int world_bound(struct world *w, int i, int type, const char *text, uint16_t port);
/* Passes packets until @fd has one of @events (poll(2)). */
void world_wait(struct world *w, int fd, short events);
/* Passes packets until there are none. */
void world_settle(struct world *w);
struct vnet_endpoint world_endpoint(const char *text, uint16_t port);
/* Sends, waits and receives; the whole must be there. */
void world_send(int fd, const struct vnet_endpoint *to, const void *data, size_t len);
size_t world_receive(struct world *w, int fd, void *data, size_t room, struct vnet_endpoint *from);
uint16_t world_port(int fd);

#endif
