// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * One table for each family, with a map and a chain for each direction:
 *
 *      map in     interface . addresses . ports  ->  addresses . ports . mark
 *      chain in   prerouting, all else dropped: what is in the map is given those
 *      map out    addresses . ports              ->  addresses . ports . mark
 *      chain out  output, of the type that routes again what has been changed
 *      chain on   forward: what has a mark goes on to another pair's end, all else is dropped
 *
 * What is for a socket here has the mark 0.
 *
 * Source and destination lie side by side in both headers, so each pair is one register's worth: a
 * load, a look into the map, a store; the kernel mends the checksums.  A change is a transaction
 * (NFNL_MSG_BATCH_BEGIN ... END), done when sendto(2) returns.
 */
#include "vnet/rewrite.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>

#include "base/base.h"

#define TABLE	 "podrun"
#define PRIORITY (-300) /* before everything else */
#define LOOPBACK 1	/* its index, in every namespace */
#define ADDRESSES(family) \
	((family) == AF_INET ? 2 * sizeof(struct in_addr) : 2 * sizeof(struct in6_addr))
#define PORTS (2 * sizeof(uint16_t))

/* A transaction under construction. */
struct batch {
	size_t len;
	struct nlmsghdr *last;
	uint32_t first, sequence;
	_Alignas(struct nlmsghdr) uint8_t data[512 * VNET_REWRITE_MAX];
};

static void *append(struct batch *b, size_t len)
{
	void *at = b->data + b->len;

	assert(b->len + NLMSG_ALIGN(len) <= sizeof(b->data));
	memset(at, 0, NLMSG_ALIGN(len));
	b->len += NLMSG_ALIGN(len);
	if (b->last)
		b->last->nlmsg_len = (uint32_t)(b->data + b->len - (uint8_t *)b->last);
	return at;
}

static void begin(struct batch *b, uint16_t type, uint16_t flags, uint8_t family, uint16_t resource)
{
	struct nlmsghdr *h;
	struct nfgenmsg *g;

	b->last = NULL;
	h = append(b, sizeof(*h));
	h->nlmsg_type = type;
	h->nlmsg_flags = NLM_F_REQUEST | flags;
	h->nlmsg_seq = b->sequence++;
	b->last = h;
	g = append(b, sizeof(*g));
	g->nfgen_family = family;
	g->version = NFNETLINK_V0;
	g->res_id = htons(resource);
}

static void begin_table(struct batch *b, uint16_t type, uint16_t flags, uint8_t family)
{
	begin(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), NLM_F_ACK | flags, family, 0);
}

static struct nlattr *put(struct batch *b, uint16_t type, const void *data, size_t len)
{
	struct nlattr *a = append(b, NLA_HDRLEN + len);

	a->nla_type = type;
	a->nla_len = (uint16_t)(NLA_HDRLEN + len);
	if (len)
		memcpy((uint8_t *)a + NLA_HDRLEN, data, len);
	return a;
}

static struct nlattr *open_nest(struct batch *b, uint16_t type)
{
	return put(b, type | NLA_F_NESTED, NULL, 0);
}

static void close_nest(struct batch *b, struct nlattr *a)
{
	a->nla_len = (uint16_t)(b->data + b->len - (uint8_t *)a);
}

static void put_string(struct batch *b, uint16_t type, const char *s)
{
	put(b, type, s, strlen(s) + 1);
}

static void put_number(struct batch *b, uint16_t type, uint32_t v)
{
	v = htonl(v);
	put(b, type, &v, sizeof(v));
}

static void put_value(struct batch *b, uint16_t type, const void *data, size_t len)
{
	struct nlattr *a = open_nest(b, type);

	put(b, NFTA_DATA_VALUE, data, len);
	close_nest(b, a);
}

/* ---- the kernel's answer ------------------------------------------------------------------- */

static void start(struct batch *b)
{
	b->len = 0;
	/* No answer to an earlier one, of a worker that was killed, is taken for one to this. */
	b->first = b->sequence = (uint32_t)io_now_ns();
	begin(b, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
}

/* The first error among the answers, all of which are there. */
static int first_error(int fd, const struct batch *b)
{
	_Alignas(struct nlmsghdr) uint8_t buf[8192];
	int first = 0;
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0 || (n < 0 && errno == EINTR)) {
		size_t left = n > 0 ? (size_t)n : 0;

		for (struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			const struct nlmsgerr *error = NLMSG_DATA(h);

			if (h->nlmsg_type == NLMSG_ERROR && error->error && !first &&
				h->nlmsg_seq - b->first < b->sequence - b->first)
				first = error->error;
		}
	}
	return first;
}

static int finish(int fd, struct batch *b, struct err *e)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	int r = 0;

	begin(b, NFNL_MSG_BATCH_END, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES);
	if (sendto(fd, b->data, b->len, 0, (const void *)&kernel, sizeof(kernel)) < 0)
		r = -errno;
	if (r == 0)
		r = first_error(fd, b);
	return r < 0 ? err_errno(e, r, "nf_tables") : 0;
}

int vnet_rewrite_open(struct err *e)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);

	return fd < 0 ? err_errno(e, -errno, "nf_tables") : fd;
}

/* ---- expressions --------------------------------------------------------------------------- */

/* Registers of four bytes each. */
static uint32_t reg(size_t bytes)
{
	return NFT_REG32_00 + (uint32_t)(bytes / 4);
}

struct expression {
	struct nlattr *element, *data;
};

static struct expression begin_expression(struct batch *b, const char *name)
{
	struct expression x = {.element = open_nest(b, NFTA_LIST_ELEM)};

	put_string(b, NFTA_EXPR_NAME, name);
	x.data = open_nest(b, NFTA_EXPR_DATA);
	return x;
}

static void end_expression(struct batch *b, struct expression x)
{
	close_nest(b, x.data);
	close_nest(b, x.element);
}

static void load_meta(struct batch *b, uint32_t key)
{
	struct expression x = begin_expression(b, "meta");

	put_number(b, NFTA_META_KEY, key);
	put_number(b, NFTA_META_DREG, reg(0));
	end_expression(b, x);
}

static void store_mark(struct batch *b, uint32_t from)
{
	struct expression x = begin_expression(b, "meta");

	put_number(b, NFTA_META_KEY, NFT_META_MARK);
	put_number(b, NFTA_META_SREG, from);
	end_expression(b, x);
}

/* The first register has this (@op NFT_CMP_EQ) or not (NFT_CMP_NEQ), or the rule is left. */
static void expect(struct batch *b, uint32_t op, const void *data, size_t len)
{
	struct expression x = begin_expression(b, "cmp");

	put_number(b, NFTA_CMP_SREG, reg(0));
	put_number(b, NFTA_CMP_OP, op);
	put_value(b, NFTA_CMP_DATA, data, len);
	end_expression(b, x);
}

static void accept_it(struct batch *b)
{
	struct expression x = begin_expression(b, "immediate");
	struct nlattr *data, *verdict;

	put_number(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = open_nest(b, NFTA_IMMEDIATE_DATA);
	verdict = open_nest(b, NFTA_DATA_VERDICT);
	put_number(b, NFTA_VERDICT_CODE, NF_ACCEPT);
	close_nest(b, verdict);
	close_nest(b, data);
	end_expression(b, x);
}

/* Where source and destination are in a header, and what follows from a change of them. */
struct field {
	uint32_t base, offset, len, sum_type, sum_offset, sum_flags;
};

static struct field addresses_of(uint8_t family)
{
	if (family == AF_INET)
		return (struct field){NFT_PAYLOAD_NETWORK_HEADER, offsetof(struct iphdr, saddr),
			ADDRESSES(AF_INET), NFT_PAYLOAD_CSUM_INET, offsetof(struct iphdr, check),
			NFT_PAYLOAD_L4CSUM_PSEUDOHDR};
	return (struct field){NFT_PAYLOAD_NETWORK_HEADER, offsetof(struct ip6_hdr, ip6_src),
		ADDRESSES(AF_INET6), NFT_PAYLOAD_CSUM_NONE, 0, NFT_PAYLOAD_L4CSUM_PSEUDOHDR};
}

static const struct field ports = {NFT_PAYLOAD_TRANSPORT_HEADER, 0, PORTS, NFT_PAYLOAD_CSUM_INET,
	offsetof(struct tcphdr, check), 0};

static void put_field(struct batch *b, const struct field *f)
{
	put_number(b, NFTA_PAYLOAD_BASE, f->base);
	put_number(b, NFTA_PAYLOAD_OFFSET, f->offset);
	put_number(b, NFTA_PAYLOAD_LEN, f->len);
}

static void load(struct batch *b, const struct field *f, uint32_t to)
{
	struct expression x = begin_expression(b, "payload");

	put_number(b, NFTA_PAYLOAD_DREG, to);
	put_field(b, f);
	end_expression(b, x);
}

static void store(struct batch *b, const struct field *f, uint32_t from)
{
	struct expression x = begin_expression(b, "payload");

	put_number(b, NFTA_PAYLOAD_SREG, from);
	put_field(b, f);
	put_number(b, NFTA_PAYLOAD_CSUM_TYPE, f->sum_type);
	put_number(b, NFTA_PAYLOAD_CSUM_OFFSET, f->sum_offset);
	put_number(b, NFTA_PAYLOAD_CSUM_FLAGS, f->sum_flags);
	end_expression(b, x);
}

/* What the map has for the registers, into the same; or the rule is left. */
static void look_up(struct batch *b, const char *map)
{
	struct expression x = begin_expression(b, "lookup");

	put_string(b, NFTA_LOOKUP_SET, map);
	put_number(b, NFTA_LOOKUP_SREG, reg(0));
	put_number(b, NFTA_LOOKUP_DREG, reg(0));
	end_expression(b, x);
}

/* ---- the tables ---------------------------------------------------------------------------- */

static void put_map(
	struct batch *b, uint8_t family, const char *name, size_t key, size_t data, uint32_t id)
{
	begin_table(b, NFT_MSG_NEWSET, NLM_F_CREATE, family);
	put_string(b, NFTA_SET_TABLE, TABLE);
	put_string(b, NFTA_SET_NAME, name);
	put_number(b, NFTA_SET_FLAGS, NFT_SET_MAP);
	put_number(b, NFTA_SET_KEY_TYPE, 0);
	put_number(b, NFTA_SET_KEY_LEN, (uint32_t)key);
	put_number(b, NFTA_SET_DATA_TYPE, 0);
	put_number(b, NFTA_SET_DATA_LEN, (uint32_t)data);
	put_number(b, NFTA_SET_ID, id);
}

static void put_chain(struct batch *b, uint8_t family, const char *name, const char *type,
	uint32_t hook, uint32_t policy)
{
	struct nlattr *a;

	begin_table(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE, family);
	put_string(b, NFTA_CHAIN_TABLE, TABLE);
	put_string(b, NFTA_CHAIN_NAME, name);
	a = open_nest(b, NFTA_CHAIN_HOOK);
	put_number(b, NFTA_HOOK_HOOKNUM, hook);
	put_number(b, NFTA_HOOK_PRIORITY, (uint32_t)PRIORITY);
	close_nest(b, a);
	put_number(b, NFTA_CHAIN_POLICY, policy);
	put_string(b, NFTA_CHAIN_TYPE, type);
}

static struct nlattr *begin_rule(struct batch *b, uint8_t family, const char *chain)
{
	begin_table(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND, family);
	put_string(b, NFTA_RULE_TABLE, TABLE);
	put_string(b, NFTA_RULE_CHAIN, chain);
	return open_nest(b, NFTA_RULE_EXPRESSIONS);
}

static void pass_all_of(struct batch *b, uint8_t family, uint32_t interface)
{
	struct nlattr *a = begin_rule(b, family, "in");

	load_meta(b, NFT_META_IIF);
	expect(b, NFT_CMP_EQ, &interface, sizeof(interface));
	accept_it(b);
	close_nest(b, a);
}

static void pass_what_has_a_mark(struct batch *b, uint8_t family)
{
	struct nlattr *a = begin_rule(b, family, "on");
	const uint32_t none = 0;

	load_meta(b, NFT_META_MARK);
	expect(b, NFT_CMP_NEQ, &none, sizeof(none));
	accept_it(b);
	close_nest(b, a);
}

static void only_tcp(struct batch *b)
{
	const uint8_t tcp = IPPROTO_TCP;

	load_meta(b, NFT_META_L4PROTO);
	expect(b, NFT_CMP_EQ, &tcp, sizeof(tcp));
}

static void put_rules(struct batch *b, uint8_t family, uint32_t tun)
{
	const struct field addresses = addresses_of(family);
	const size_t n = ADDRESSES(family), index = sizeof(uint32_t);
	struct nlattr *a;

	pass_all_of(b, family, tun);
	pass_all_of(b, family, LOOPBACK);
	pass_what_has_a_mark(b, family);
	a = begin_rule(b, family, "in");
	only_tcp(b);
	load_meta(b, NFT_META_IIF);
	load(b, &addresses, reg(index));
	load(b, &ports, reg(index + n));
	look_up(b, "in");
	store(b, &addresses, reg(0));
	store(b, &ports, reg(n));
	store_mark(b, reg(n + PORTS));
	accept_it(b);
	close_nest(b, a);
	a = begin_rule(b, family, "out");
	only_tcp(b);
	load(b, &addresses, reg(0));
	load(b, &ports, reg(n));
	look_up(b, "out");
	store(b, &addresses, reg(0));
	store(b, &ports, reg(n));
	store_mark(b, reg(n + PORTS));
	close_nest(b, a);
}

static void put_table(struct batch *b, uint8_t family, uint32_t tun)
{
	const size_t n = ADDRESSES(family) + PORTS;

	begin_table(b, NFT_MSG_NEWTABLE, NLM_F_CREATE, family);
	put_string(b, NFTA_TABLE_NAME, TABLE);
	put_map(b, family, "in", sizeof(uint32_t) + n, n + sizeof(uint32_t), 1);
	put_map(b, family, "out", n, n + sizeof(uint32_t), 2);
	put_chain(b, family, "in", "filter", NF_INET_PRE_ROUTING, NF_DROP);
	put_chain(b, family, "out", "route", NF_INET_LOCAL_OUT, NF_ACCEPT);
	put_chain(b, family, "on", "filter", NF_INET_FORWARD, NF_DROP);
	put_rules(b, family, tun);
}

static uint8_t nf_family(uint8_t family)
{
	return family == AF_INET ? NFPROTO_IPV4 : NFPROTO_IPV6;
}

int vnet_rewrite_begin(int fd, uint32_t tun, bool v6, struct err *e)
{
	static_assert(NFPROTO_IPV4 == AF_INET && NFPROTO_IPV6 == AF_INET6, "one number for both");
	const uint8_t families[] = {AF_INET, AF_INET6};
	struct err ignored = {0};
	struct batch b;
	int r = 0;

	for (size_t i = 0; i < (v6 ? 2 : 1) && r == 0; i++) {
		start(&b);
		begin_table(&b, NFT_MSG_DELTABLE, 0, nf_family(families[i]));
		put_string(&b, NFTA_TABLE_NAME, TABLE);
		finish(fd, &b, &ignored);
		start(&b);
		put_table(&b, nf_family(families[i]), tun);
		r = finish(fd, &b, e);
	}
	return r;
}

/* ---- connections --------------------------------------------------------------------------- */

/* Addresses and ports of a packet from @a to @b, as they are in the headers. */
static size_t put_ends(uint8_t *at, const struct vnet_endpoint *a, const struct vnet_endpoint *b)
{
	const uint16_t both[] = {htons(a->port), htons(b->port)};
	const size_t n = ADDRESSES(a->family) / 2;

	memcpy(at, &a->v6, n);
	memcpy(at + n, &b->v6, n);
	memcpy(at + 2 * n, both, sizeof(both));
	return 2 * n + sizeof(both);
}

static void put_element(struct batch *b, const struct vnet_rewrite *r, bool add, bool out)
{
	uint8_t key[NFT_DATA_VALUE_MAXLEN], data[NFT_DATA_VALUE_MAXLEN];
	const uint32_t mark = out ? r->mark : r->onward;
	struct nlattr *list, *element;
	size_t key_len = 0, len;

	if (out) {
		key_len = put_ends(key, &r->far, &r->near);
		len = put_ends(data, &r->outside, &r->inside);
	} else {
		memcpy(key, &r->index, sizeof(r->index));
		key_len = sizeof(r->index) +
			  put_ends(key + sizeof(r->index), &r->inside, &r->outside);
		len = put_ends(data, &r->near, &r->far);
	}
	memcpy(data + len, &mark, sizeof(mark));
	len += sizeof(mark);
	begin_table(b, add ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM,
		add ? NLM_F_CREATE | NLM_F_EXCL : 0, nf_family(r->inside.family));
	put_string(b, NFTA_SET_ELEM_LIST_TABLE, TABLE);
	put_string(b, NFTA_SET_ELEM_LIST_SET, out ? "out" : "in");
	list = open_nest(b, NFTA_SET_ELEM_LIST_ELEMENTS);
	element = open_nest(b, NFTA_LIST_ELEM);
	put_value(b, NFTA_SET_ELEM_KEY, key, key_len);
	if (add)
		put_value(b, NFTA_SET_ELEM_DATA, data, len);
	close_nest(b, element);
	close_nest(b, list);
}

static int change(int fd, const struct vnet_rewrite *r, size_t n, bool add, struct err *e)
{
	struct batch b;

	start(&b);
	for (size_t i = 0; i < n; i++) {
		if (!r[i].onward)
			put_element(&b, &r[i], add, true);
		put_element(&b, &r[i], add, false);
	}
	return finish(fd, &b, e);
}

int vnet_rewrite_add(int fd, const struct vnet_rewrite *r, size_t n, struct err *e)
{
	return change(fd, r, n, true, e);
}

int vnet_rewrite_remove(int fd, const struct vnet_rewrite *r, size_t n, struct err *e)
{
	return change(fd, r, n, false, e);
}
