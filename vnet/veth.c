// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      rule: this connection -> table 171: everything -> podrun1
 *
 * A rule for each connection, and one table with a default route for each family.  The routes are
 * what makes it quick to have all on net0 again: without them the rules lead nowhere, and the
 * kernel goes on to the next rule.  The same happens by itself when the gateway removes its end, or
 * has gone.
 */
#include "vnet/veth.h"

#include <errno.h>

#include "base/base.h"
#include "vnet/netlink.h"
#include "vnet/tun.h"

#define TABLE 171

struct vnet_veth {
	struct vnet_netlink nl;
	int index;
	bool routed;
	size_t n;
	struct vnet_rule rules[VNET_VETH_MAX];
};

static const uint8_t families[] = {AF_INET, AF_INET6};

static struct vnet_route route_of(const struct vnet_veth *v, uint8_t family)
{
	return (struct vnet_route){.dst = {.family = family}, .index = v->index, .table = TABLE};
}

int vnet_veth_up(struct vnet_netlink *nl, int index, struct err *e)
{
	const struct vnet_link up = {.gso_max_size = VNET_GSO_MAX, .up = true},
			       silent = {.no_link_local = true};
	struct err ignored = {0};

	/* Where there is no IPv6 there is no such address. */
	vnet_netlink_link_set(nl, index, &silent, &ignored);
	return vnet_netlink_link_set(nl, index, &up, e);
}

static int make(struct vnet_veth *v, int gateway_ns, const char *peer, unsigned mtu, struct err *e)
{
	const struct vnet_pair pair = {VNET_VETH_NAME, peer, gateway_ns, mtu};
	struct err ignored = {0};
	int old = vnet_netlink_index(&v->nl, VNET_VETH_NAME, &ignored);

	if (old > 0 && vnet_netlink_remove(&v->nl, old, e) < 0)
		return e->error;
	if (vnet_netlink_pair_add(&v->nl, &pair, e) < 0)
		return e->error;
	v->index = vnet_netlink_index(&v->nl, VNET_VETH_NAME, e);
	return v->index < 0 ? v->index : vnet_veth_up(&v->nl, v->index, e);
}

int vnet_veth_new(struct vnet_veth **ret, int session_ns, int gateway_ns, const char *peer,
	unsigned int mtu, struct err *e)
{
	struct vnet_veth *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return err_errno(e, -ENOMEM, VNET_VETH_NAME);
	v->nl = VNET_NETLINK_INIT;
	r = vnet_netlink_open_in(&v->nl, session_ns, e);
	if (r == 0)
		r = make(v, gateway_ns, peer, mtu, e);
	if (r < 0) {
		vnet_veth_free(v);
		return err_wrap(e, "interface " VNET_VETH_NAME);
	}
	*ret = v;
	return 0;
}

/* Without IPv6 there is one. */
static int set_routes(struct vnet_veth *v, struct err *e)
{
	struct err ignored = {0};

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct vnet_route route = route_of(v, families[i]);
		int r = vnet_netlink_route_add(&v->nl, &route, i ? &ignored : e);

		if (r < 0 && i == 0)
			return r;
	}
	v->routed = true;
	return 0;
}

/*
 * A connection over IPv6 keeps its route until that one's tree has changed; a rule changes none
 * (net/ipv6/fib6_rules.c).
 */
static void let_choose_again(struct vnet_veth *v, const struct vnet_endpoint *inside)
{
	struct err ignored = {0};
	struct vnet_route route = {.dst = *inside, .prefix = 128, .table = TABLE};

	if (inside->family != AF_INET6)
		return;
	route.index = v->index;
	vnet_netlink_route_add(&v->nl, &route, &ignored);
	vnet_netlink_route_remove(&v->nl, &route, &ignored);
}

static bool is_rule(const struct vnet_rule *a, const struct vnet_rule *b)
{
	return vnet_endpoint_equal(&a->src, &b->src) && vnet_endpoint_equal(&a->dst, &b->dst);
}

static void remove_rule(struct vnet_veth *v, size_t i)
{
	struct err ignored = {0};

	vnet_netlink_rule_remove(&v->nl, &v->rules[i], &ignored);
	v->rules[i] = v->rules[--v->n];
}

int vnet_veth_fast(struct vnet_veth *v, const struct vnet_endpoint *inside,
	const struct vnet_endpoint *outside, bool on, struct err *e)
{
	const struct vnet_rule rule = {
		.family = inside->family, .src = *inside, .dst = *outside, .table = TABLE};
	int r;

	for (size_t i = 0; i < v->n; i++)
		if (is_rule(&v->rules[i], &rule))
			remove_rule(v, i--);
	/* It may go on by net0. */
	if (!on) {
		let_choose_again(v, inside);
		return 0;
	}
	if (v->n == VNET_VETH_MAX)
		return err_set(e, ERR_FAILED, -ENOSPC, "too many connections by " VNET_VETH_NAME);
	if (!v->routed && set_routes(v, e) < 0)
		return e->error;
	r = vnet_netlink_rule_add(&v->nl, &rule, e);
	if (r < 0 && r != -EEXIST)
		return r;
	v->rules[v->n++] = rule;
	let_choose_again(v, inside);
	return 0;
}

void vnet_veth_slow(struct vnet_veth *v)
{
	struct err ignored = {0};

	if (!v)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(families) && v->routed; i++) {
		struct vnet_route route = route_of(v, families[i]);

		vnet_netlink_route_remove(&v->nl, &route, &ignored);
	}
	v->routed = false;
	while (v->n)
		remove_rule(v, v->n - 1);
}

void vnet_veth_free(struct vnet_veth *v)
{
	if (!v)
		return;
	vnet_veth_slow(v);
	vnet_netlink_fini(&v->nl);
	free(v);
}
