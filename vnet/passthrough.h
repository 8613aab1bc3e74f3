/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * passthrough - an interface that is taken out of a network of the host's and given back later.
 *
 * An SR-IOV virtual function, a macvlan, a veth: packets go between the session and the wire as
 * fast as the kernel can, and podrun sees none of them.  Interfaces belong to whoever owns their
 * network namespace, so an administrator has to grant one: by the capability (CAP_NET_ADMIN) over
 * the network podrun runs in, or by putting it into a network namespace that belongs to the user.
 *
 * Sources: network_namespaces(7), user_namespaces(7), dev_change_net_namespace of net/core/dev.c.
 */
#ifndef VNET_PASSTHROUGH_H
#define VNET_PASSTHROUGH_H

#include <limits.h>
#include <net/if.h>
#include <stdbool.h>

struct err;
struct vnet_passthrough;

/* What follows "passthrough:", if @net is that; NULL. */
const char *vnet_passthrough_of(const char *net);
/* "IF[@PLACE]": a name of `ip netns`, a pid, or a path that begins with '/'. */
struct vnet_passthrough_name {
	char interface[IF_NAMESIZE];
	char place[PATH_MAX]; /* "": the caller's own network */
};
/* ERR_USAGE with @e. */
int vnet_passthrough_parse(const char *text, struct vnet_passthrough_name *ret, struct err *e);
/* Two such texts mean one interface, whatever its network is called in them. */
bool vnet_passthrough_same(const char *text, const char *other);

/*
 * Moves it into the network namespace of descriptor @netns (borrowed), with the addresses and the
 * static routes that it has.  ERR_NOT_FOUND, ERR_HOST with a hint where it is not granted; then all
 * is as it was.
 */
int vnet_passthrough_take(
	struct vnet_passthrough **ret, const char *text, int netns, struct err *e);

/*
 * Moves it back to where it came from, with what it had there; frees @p, whatever happens.  NULL:
 * fine.
 */
int vnet_passthrough_give_back(struct vnet_passthrough *p, struct err *e);

#endif
