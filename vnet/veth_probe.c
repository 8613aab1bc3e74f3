// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      session netns                                inner netns
 *      podrun1: a rule by ports, a route ---------- veth0: tables, a rule by mark, a route
 *
 * One connection is made fast, of each family that the host has, with the calls that session and
 * gateway make for it.  All of it goes with the namespaces, when the process ends.
 */
#include "vnet/veth_probe.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>

#include "base/base.h"
#include "vnet/netlink.h"
#include "vnet/rewrite.h"
#include "vnet/tun.h"
#include "vnet/veth.h"

#define PEER	 "veth0"
#define TABLE	 1000
#define MARK	 1
#define LOOPBACK 1 /* its index, in every namespace */

struct inner {
	struct vnet_netlink nl;
	int ns, rewrite;
	bool v6;
};

static int own_namespace(void)
{
	return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int open_inner(struct inner *in, struct err *e)
{
	in->ns = own_namespace();
	if (in->ns < 0)
		return err_errno(e, -errno, "network namespace");
	in->v6 = access("/proc/sys/net/ipv6/conf/lo", F_OK) == 0;
	in->rewrite = vnet_rewrite_open(e);
	return in->rewrite < 0 ? in->rewrite : vnet_netlink_open(&in->nl, e);
}

static void close_inner(struct inner *in)
{
	vnet_netlink_fini(&in->nl);
	in->rewrite = close_fd(in->rewrite);
	in->ns = close_fd(in->ns);
}

/* Nobody's, but its own: bytes that say which of the ends it is. */
static struct vnet_endpoint end_of(uint8_t family, uint8_t which)
{
	struct vnet_endpoint ep = {.family = family, .port = (uint16_t)(1000 + which)};

	ep.v6.s6_addr[0] = family == AF_INET ? 10 : 0xfd;
	ep.v6.s6_addr[family == AF_INET ? 3 : 15] = which;
	return ep;
}

static int make_fast(
	struct inner *in, struct vnet_veth *session, int index, uint8_t family, struct err *e)
{
	const struct vnet_rewrite ends = {(uint32_t)index, MARK, 0, end_of(family, 1),
		end_of(family, 2), end_of(family, 3), end_of(family, 4)};
	const struct vnet_rule rule = {.family = family, .mark = MARK, .table = TABLE};
	const struct vnet_route route = {.dst = {.family = family}, .index = index, .table = TABLE};
	int r = vnet_netlink_rule_add(&in->nl, &rule, e);

	if (r == 0)
		r = vnet_netlink_route_add(&in->nl, &route, e);
	if (r == 0)
		r = vnet_rewrite_add(in->rewrite, &ends, 1, e);
	return r < 0 ? r : vnet_veth_fast(session, &ends.inside, &ends.outside, true, e);
}

static int make_both(struct inner *in, struct vnet_veth *session, struct err *e)
{
	int index = vnet_netlink_index(&in->nl, PEER, e);
	int r = index < 0 ? index : vnet_rewrite_begin(in->rewrite, LOOPBACK, in->v6, e);

	if (r == 0)
		r = vnet_veth_up(&in->nl, index, e);
	if (r == 0)
		r = make_fast(in, session, index, AF_INET, e);
	return r < 0 || !in->v6 ? r : make_fast(in, session, index, AF_INET6, e);
}

int vnet_veth_probe(struct err *e)
{
	struct inner in = {.nl = VNET_NETLINK_INIT, .ns = -1, .rewrite = -1};
	struct vnet_veth *session = NULL;
	_cleanup_close_ int ns = -1;
	int r = open_inner(&in, e);

	if (r == 0 && unshare(CLONE_NEWNET) < 0)
		r = err_errno(e, -errno, "network namespace");
	if (r == 0) {
		ns = own_namespace();
		r = ns < 0 ? err_errno(e, -errno, "network namespace")
			   : vnet_veth_new(&session, ns, in.ns, PEER, VNET_MTU, e);
	}
	if (r == 0)
		r = make_both(&in, session, e);
	vnet_veth_free(session);
	close_inner(&in);
	return r;
}
