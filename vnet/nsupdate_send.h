/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nsupdate_send - which addresses a host has for others, and a change in DNS that somebody waits
 * for.
 */
#ifndef VNET_NSUPDATE_SEND_H
#define VNET_NSUPDATE_SEND_H

#include <stddef.h>

#include "vnet/endpoint.h"

struct err;

/*
 * Which address is the host's depends on who asks.  This is the one by which @server is reached,
 * and of the other family the one with which the host would go to the internet (connect() to an
 * address of documentation, which sends nothing).  How many there are, 0 to 2; none that only the
 * host could use.  *ret_fd: a socket connected to @server, -1 if there is no way.
 */
size_t vnet_nsupdate_own(
	const struct vnet_endpoint *server, struct vnet_endpoint ret[2], int *ret_fd);
/* The one with which it would go to the internet: family 0 if there is none. */
struct vnet_endpoint vnet_nsupdate_own_of(int family);

/*
 * The name of @update ("ZONE/NAME@SERVER[:KEYFILE]") has this host's addresses no more.  Waits for
 * the server, some seconds at most: -ETIMEDOUT; -EACCES where it refuses.
 */
int vnet_nsupdate_withdraw(const char *update, struct err *e);

#endif
