/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * netlink - requests to the kernel's rtnetlink: interfaces, addresses, routes.
 *
 * A connection belongs to the network namespace that its thread was in when it was opened, for
 * good: whoever holds one can arrange that namespace from anywhere, as long as he has CAP_NET_ADMIN
 * in the user namespace that owns it.  Each function sends one request and waits for the kernel's
 * answer, which comes at once; the text that the kernel gives with an error (extended
 * acknowledgement) becomes part of ours.
 *
 * Sources: RFC 3549, Documentation/userspace-api/netlink/intro.rst, linux/rtnetlink.h,
 * linux/if_link.h.
 */
#ifndef VNET_NETLINK_H
#define VNET_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include "vnet/endpoint.h"

struct err;

struct vnet_netlink {
	int fd;
	uint32_t sequence;
};

#define VNET_NETLINK_INIT ((struct vnet_netlink){-1, 0})

/* In the calling thread's network namespace. */
int vnet_netlink_open(struct vnet_netlink *ret, struct err *e);
/*
 * In the network namespace of descriptor @netns, which a child enters for that: one that belongs to
 * a user namespace which the caller owns, or has CAP_SYS_ADMIN in.
 */
int vnet_netlink_open_in(struct vnet_netlink *ret, int netns, struct err *e);
void vnet_netlink_fini(struct vnet_netlink *nl);
#define _cleanup_netlink_ __attribute__((cleanup(vnet_netlink_fini)))

/* The index of an interface, > 0; -ENODEV. */
int vnet_netlink_index(struct vnet_netlink *nl, const char *name, struct err *e);

/* 1 or 0: somebody has set it up. */
int vnet_netlink_is_up(struct vnet_netlink *nl, const char *name, struct err *e);
/* 1 or 0: it has a carrier; that of a pair has one while both ends are up. */
int vnet_netlink_has_carrier(struct vnet_netlink *nl, const char *name, struct err *e);
/*
 * A descriptor that is readable when something about an interface of the calling thread's network
 * namespace may have changed: what it is, is for the caller to ask.  vnet_netlink_watch_empty makes
 * it wait for the next change.
 */
int vnet_netlink_watch(struct err *e);
void vnet_netlink_watch_empty(int fd);
/* Takes the interface down, and gives it another name. */
int vnet_netlink_name(struct vnet_netlink *nl, int index, const char *name, struct err *e);
/*
 * Moves the interface into the network namespace of descriptor @netns; the caller needs the
 * capability there, too.  It arrives down, and its addresses and routes are gone.  -EPERM; -EINVAL
 * and others where its kind can't be moved.
 */
int vnet_netlink_move(struct vnet_netlink *nl, int index, int netns, struct err *e);

/*
 * Calls @each for all that there is: @type RTM_GETADDR or RTM_GETROUTE, of AF_INET or AF_INET6; a
 * negative errno of it ends that.
 */
struct nlmsghdr;
typedef int (*vnet_netlink_each)(void *ctx, const struct nlmsghdr *message);
int vnet_netlink_dump(struct vnet_netlink *nl, uint16_t type, int family, vnet_netlink_each each,
	void *ctx, struct err *e);
/* Such a message, once more: what it says shall be so. */
int vnet_netlink_repeat(struct vnet_netlink *nl, const struct nlmsghdr *message, struct err *e);

/* What is 0 stays as it is. */
struct vnet_link {
	unsigned int mtu;
	unsigned int gso_max_size; /* of IPv4 and IPv6 super-packets, in bytes */
	unsigned int queue;	   /* packets */
	bool up;
	bool no_link_local; /* of IPv6; of an interface that is not up yet */
};
int vnet_netlink_link_set(
	struct vnet_netlink *nl, int index, const struct vnet_link *link, struct err *e);

/*
 * The interface gets an address; without a route to its prefix, and IPv6 without duplicate address
 * detection, so that it can be used at once.  The port of @address is ignored.  An address it has
 * is no error.
 */
int vnet_netlink_address_add(struct vnet_netlink *nl, int index,
	const struct vnet_endpoint *address, unsigned int prefix, struct err *e);

struct vnet_route {
	struct vnet_endpoint
		dst; /* family always; the address is ignored if prefix is 0: a default route */
	unsigned int prefix;
	int index;	/* of the interface it leads to */
	uint32_t table; /* 0: the main one, or the local one */
	bool local;	/* what goes there is for this host itself (type local, table local) */
	struct vnet_endpoint via, src; /* next hop, preferred source; family 0: none */
};
/* Replaces a route that is there for the same destination. */
int vnet_netlink_route_add(struct vnet_netlink *nl, const struct vnet_route *route, struct err *e);
/* -ESRCH: there is none. */
int vnet_netlink_route_remove(
	struct vnet_netlink *nl, const struct vnet_route *route, struct err *e);

/* Packets of one TCP connection, or with a mark, are routed by @table. */
struct vnet_rule {
	uint8_t family;
	struct vnet_endpoint src, dst; /* of the connection, with ports; family 0: of all */
	uint32_t mark;		       /* 0: any */
	uint32_t table;
};
/* -EEXIST; and -ENOENT of one that is not there. */
int vnet_netlink_rule_add(struct vnet_netlink *nl, const struct vnet_rule *rule, struct err *e);
int vnet_netlink_rule_remove(struct vnet_netlink *nl, const struct vnet_rule *rule, struct err *e);

/*
 * Two interfaces wired to each other, both down: @name here, @peer in the network namespace of
 * descriptor @netns.  They ask nobody for link addresses (NOARP), and have the same one, so each
 * takes what the other sends.
 */
struct vnet_pair {
	const char *name, *peer;
	int netns;
	unsigned int mtu;
};
int vnet_netlink_pair_add(struct vnet_netlink *nl, const struct vnet_pair *pair, struct err *e);
/* The interface is no more, nor is its peer. */
int vnet_netlink_remove(struct vnet_netlink *nl, int index, struct err *e);

/* What an interface has sent and received so far, with its link headers. */
struct vnet_traffic {
	uint64_t in_packets, in_bytes, out_packets, out_bytes;
};
int vnet_netlink_traffic(
	struct vnet_netlink *nl, int index, struct vnet_traffic *ret, struct err *e);

#endif
