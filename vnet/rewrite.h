/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rewrite - the translator's work for chosen TCP connections, done by the kernel (nf_tables).
 *
 * In the gateway's inner network namespace, where nobody else has tables:
 *
 *      from a pair's end    inside -> outside    becomes    near -> far     (vnet/vnat.h)
 *      from a socket        far -> near          becomes    outside -> inside, with a mark
 *
 * for what vnet_rewrite_add has named.  Everything else that comes from a pair's end is dropped.
 * The mark is for a rule (vnet_netlink_rule_add) that leads to that end.
 *
 * With `onward` there is no socket here: what has become near -> far has that mark, which leads to
 * another pair's end.  It goes on to there if the namespace forwards, and nothing else does.
 *
 * Sources: linux/netfilter/nf_tables.h, nft(8).
 */
#ifndef VNET_REWRITE_H
#define VNET_REWRITE_H

#include "vnet/endpoint.h"

struct err;

struct vnet_rewrite {
	uint32_t index; /* of the pair's end in this namespace */
	uint32_t mark;
	uint32_t onward;				 /* 0: it is for a socket */
	struct vnet_endpoint inside, outside, near, far; /* all of one family, with ports */
};

/* A socket for the calling thread's network namespace; -EPROTONOSUPPORT and others without. */
int vnet_rewrite_open(struct err *e);
/*
 * Makes the tables, where what comes from none but @tun and the loopback passes.  Old ones are no
 * more.
 */
int vnet_rewrite_begin(int fd, uint32_t tun, bool v6, struct err *e);
#define VNET_REWRITE_MAX 32
/* @n, at most VNET_REWRITE_MAX: all at once.  -EBUSY, -EEXIST: somebody has these ends. */
int vnet_rewrite_add(int fd, const struct vnet_rewrite *r, size_t n, struct err *e);
/* Of those that are there. */
int vnet_rewrite_remove(int fd, const struct vnet_rewrite *r, size_t n, struct err *e);

#endif
