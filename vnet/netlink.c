// SPDX-License-Identifier: GPL-2.0-or-later
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/nsfs.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "vnet/netlink.h"

#define RULE_PRIORITY 171 /* of ours: behind the local table (0), before the main one (32766) */

/* A request under construction: fixed, for none of ours has more than a handful of attributes. */
struct request {
	struct nlmsghdr h;
	uint8_t body[512];
};

static void *append(struct request *rq, size_t len)
{
	void *at = (uint8_t *)rq + NLMSG_ALIGN(rq->h.nlmsg_len);

	assert(NLMSG_ALIGN(rq->h.nlmsg_len) + len <= sizeof(*rq));
	memset(at, 0, len);
	rq->h.nlmsg_len = (uint32_t)(NLMSG_ALIGN(rq->h.nlmsg_len) + len);
	return at;
}

/* A request with a family header of @len bytes behind it, which is zeros. */
static void *begin(struct request *rq, uint16_t type, uint16_t flags, size_t len)
{
	rq->h = (struct nlmsghdr){
		.nlmsg_len = NLMSG_HDRLEN,
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags,
	};
	return append(rq, len);
}

static struct rtattr *put(struct request *rq, uint16_t type, const void *data, size_t len)
{
	struct rtattr *a = append(rq, RTA_LENGTH(len));

	a->rta_type = type;
	a->rta_len = (uint16_t)RTA_LENGTH(len);
	if (len)
		memcpy(RTA_DATA(a), data, len);
	return a;
}

static void put_u32(struct request *rq, uint16_t type, uint32_t v)
{
	put(rq, type, &v, sizeof(v));
}

static void put_string(struct request *rq, uint16_t type, const char *s)
{
	put(rq, type, s, strlen(s) + 1);
}

static void put_address(struct request *rq, uint16_t type, const struct vnet_endpoint *ep)
{
	put(rq, type, &ep->v6, ep->family == AF_INET ? sizeof(ep->v4) : sizeof(ep->v6));
}

/* What was put since @a is inside of it. */
static void close_nest(struct request *rq, struct rtattr *a)
{
	/* With the padding of what was last in it, which the message must not end before. */
	rq->h.nlmsg_len = NLMSG_ALIGN(rq->h.nlmsg_len);
	a->rta_len = (uint16_t)((uint8_t *)rq + rq->h.nlmsg_len - (uint8_t *)a);
}

int vnet_netlink_open(struct vnet_netlink *ret, struct err *e)
{
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	int on = 1;

	if (fd < 0)
		return err_errno(e, -errno, "rtnetlink");
	/* Without them errors are numbers only. */
	setsockopt(fd, SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	setsockopt(fd, SOL_NETLINK, NETLINK_CAP_ACK, &on, sizeof(on));
	*ret = (struct vnet_netlink){take_fd(&fd), 0};
	return 0;
}

static bool is_own_userns(int fd)
{
	struct stat a, b;

	return stat("/proc/self/ns/user", &a) == 0 && fstat(fd, &b) == 0 && a.st_ino == b.st_ino &&
	       a.st_dev == b.st_dev;
}

/* In a child, which may go where its parent stays away from: the socket is sent through @sock. */
static int open_there(int netns, int sock)
{
	_cleanup_close_ int owner = ioctl(netns, NS_GET_USERNS), fd = -1;

	if (owner < 0)
		return -errno;
	/* The capabilities come with it; who has them already can't join what he is in. */
	if (!is_own_userns(owner) && setns(owner, CLONE_NEWUSER) < 0)
		return -errno;
	if (setns(netns, CLONE_NEWNET) < 0)
		return -errno;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	return fd < 0 ? -errno : io_send_fds(sock, "", 1, &fd, 1);
}

int vnet_netlink_open_in(struct vnet_netlink *ret, int netns, struct err *e)
{
	int pair[2], status = 0, fd = -1;
	size_t n = 0;
	char byte;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "socketpair");
	pid = fork();
	if (pid == 0)
		_exit(-open_there(netns, pair[1]) & 0xff);
	close(pair[1]);
	if (pid > 0) {
		io_recv_fds(pair[0], &byte, 1, &fd, 1, &n);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(pair[0]);
	if (pid < 0)
		return err_errno(e, -errno, "fork");
	if (n != 1)
		return err_errno(e,
			WIFEXITED(status) && WEXITSTATUS(status) ? -WEXITSTATUS(status) : -EIO,
			"cannot enter the network namespace");
	*ret = (struct vnet_netlink){fd, 0};
	return 0;
}

void vnet_netlink_fini(struct vnet_netlink *nl)
{
	nl->fd = close_fd(nl->fd);
}

/* The kernel's own words about an error, or NULL. */
static const char *explanation(const struct nlmsghdr *h)
{
	size_t at = NLMSG_HDRLEN + sizeof(struct nlmsgerr);

	if (!(h->nlmsg_flags & NLM_F_ACK_TLVS))
		return NULL;
	while (at + NLA_HDRLEN <= h->nlmsg_len) {
		const struct nlattr *a =
			(const struct nlattr *)(const void *)((const uint8_t *)h + at);

		if (a->nla_len < NLA_HDRLEN || at + a->nla_len > h->nlmsg_len)
			return NULL;
		if (a->nla_type == NLMSGERR_ATTR_MSG && a->nla_len > NLA_HDRLEN)
			return (const char *)a + NLA_HDRLEN;
		at += NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

/* With an address it is the sender's rights that count, and not those of who made the socket. */
static ssize_t say(struct vnet_netlink *nl, struct nlmsghdr *h)
{
	const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	h->nlmsg_seq = ++nl->sequence;
	return sendto(nl->fd, h, h->nlmsg_len, 0, (const void *)&kernel, sizeof(kernel));
}

/*
 * Sends @rq and waits for its acknowledgement.  An answer that comes before it is left in @answer
 * (>= 4 KB) if that is not NULL; its length is returned, else 0.
 */
static int talk(
	struct vnet_netlink *nl, struct request *rq, void *answer, size_t room, struct err *e)
{
	_Alignas(struct nlmsghdr) uint8_t buf[8192];
	int got = 0;

	if (say(nl, &rq->h) < 0)
		return err_errno(e, -errno, "rtnetlink");
	for (;;) {
		ssize_t n = recv(nl->fd, buf, sizeof(buf), 0);
		size_t left = n > 0 ? (size_t)n : 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(e, -errno, "rtnetlink");
		for (struct nlmsghdr *h = (void *)buf; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
			const struct nlmsgerr *error = NLMSG_DATA(h);
			const char *why;

			if (h->nlmsg_seq != nl->sequence)
				continue;
			if (h->nlmsg_type != NLMSG_ERROR) {
				got = (int)MIN((size_t)h->nlmsg_len, room);
				if (answer)
					memcpy(answer, h, (size_t)got);
				continue;
			}
			if (error->error == 0)
				return got;
			why = explanation(h);
			return err_errno(e, error->error, "%s", why ? why : "rtnetlink");
		}
	}
}

static int look_at(struct vnet_netlink *nl, const char *name, struct ifinfomsg *ret, struct err *e)
{
	_Alignas(struct nlmsghdr) uint8_t answer[8192];
	const struct nlmsghdr *h = (const void *)answer;
	struct request rq;
	int r;

	begin(&rq, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
	put_string(&rq, IFLA_IFNAME, name);
	r = talk(nl, &rq, answer, sizeof(answer), e);
	if (r < 0)
		return err_wrap(e, "interface %s", name);
	if (r < (int)NLMSG_LENGTH(sizeof(*ret)) || h->nlmsg_type != RTM_NEWLINK)
		return err_set(e, ERR_FAILED, -EPROTO, "interface %s: no answer", name);
	memcpy(ret, NLMSG_DATA(h), sizeof(*ret));
	return 0;
}

int vnet_netlink_index(struct vnet_netlink *nl, const char *name, struct err *e)
{
	struct ifinfomsg info;
	int r = look_at(nl, name, &info, e);

	return r < 0 ? r : info.ifi_index;
}

int vnet_netlink_is_up(struct vnet_netlink *nl, const char *name, struct err *e)
{
	struct ifinfomsg info;
	int r = look_at(nl, name, &info, e);

	return r < 0 ? r : (info.ifi_flags & IFF_UP) != 0;
}

int vnet_netlink_has_carrier(struct vnet_netlink *nl, const char *name, struct err *e)
{
	struct ifinfomsg info;
	int r = look_at(nl, name, &info, e);

	return r < 0 ? r : (info.ifi_flags & IFF_LOWER_UP) != 0;
}

int vnet_netlink_watch(struct err *e)
{
	const struct sockaddr_nl links = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
	_cleanup_close_ int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

	if (fd < 0 || bind(fd, (const void *)&links, sizeof(links)) < 0)
		return err_errno(e, -errno, "rtnetlink");
	return take_fd(&fd);
}

void vnet_netlink_watch_empty(int fd)
{
	char ignored;

	/* -ENOBUFS: more has happened than there was room for, and that is told once. */
	while (recv(fd, &ignored, sizeof(ignored), 0) >= 0 || errno == EINTR || errno == ENOBUFS)
		;
}

int vnet_netlink_name(struct vnet_netlink *nl, int index, const char *name, struct err *e)
{
	struct request rq;
	struct ifinfomsg *info = begin(&rq, RTM_NEWLINK, 0, sizeof(*info));

	info->ifi_index = index;
	info->ifi_change = IFF_UP; /* a name can't change of one that is up */
	put_string(&rq, IFLA_IFNAME, name);
	return talk(nl, &rq, NULL, 0, e);
}

int vnet_netlink_move(struct vnet_netlink *nl, int index, int netns, struct err *e)
{
	struct request rq;
	struct ifinfomsg *info = begin(&rq, RTM_NEWLINK, 0, sizeof(*info));

	info->ifi_index = index;
	put_u32(&rq, IFLA_NET_NS_FD, (uint32_t)netns);
	return talk(nl, &rq, NULL, 0, e);
}

/* One datagram of answers; 1 when that was the last. */
static int take_answers(const struct vnet_netlink *nl, const void *data, size_t left,
	vnet_netlink_each each, void *ctx)
{
	for (const struct nlmsghdr *h = data; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
		const struct nlmsgerr *error = NLMSG_DATA(h);
		int r;

		if (h->nlmsg_seq != nl->sequence)
			continue;
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return error->error ? error->error : 1;
		r = each(ctx, h);
		if (r < 0)
			return r;
	}
	return 0;
}

int vnet_netlink_dump(struct vnet_netlink *nl, uint16_t type, int family, vnet_netlink_each each,
	void *ctx, struct err *e)
{
	_Alignas(struct nlmsghdr) uint8_t buf[32768];
	struct request rq;
	struct rtmsg *head = begin(&rq, type, NLM_F_DUMP, sizeof(struct ifaddrmsg));
	int r = 0;

	static_assert(offsetof(struct rtmsg, rtm_family) == offsetof(struct ifaddrmsg, ifa_family),
		"the family comes first in both");
	if (type == RTM_GETROUTE)
		append(&rq, sizeof(*head) - sizeof(struct ifaddrmsg));
	head->rtm_family = (uint8_t)family;
	if (say(nl, &rq.h) < 0)
		return err_errno(e, -errno, "rtnetlink");
	while (r == 0) {
		ssize_t n = recv(nl->fd, buf, sizeof(buf), 0);

		if (n < 0 && errno == EINTR)
			continue;
		r = n < 0 ? -errno : take_answers(nl, buf, (size_t)n, each, ctx);
	}
	return r < 0 ? err_errno(e, r, "rtnetlink") : 0;
}

int vnet_netlink_repeat(struct vnet_netlink *nl, const struct nlmsghdr *message, struct err *e)
{
	struct request rq;
	size_t len = message->nlmsg_len - NLMSG_HDRLEN;

	if (len > sizeof(rq.body) - NLMSG_ALIGNTO)
		return err_set(e, ERR_FAILED, -E2BIG, "rtnetlink");
	memcpy(begin(&rq, message->nlmsg_type, NLM_F_CREATE | NLM_F_REPLACE, len),
		NLMSG_DATA(message), len);
	return talk(nl, &rq, NULL, 0, e);
}

/* linux/if_link.h: IFLA_AF_SPEC has one attribute for each family. */
static void put_no_link_local(struct request *rq)
{
	const uint8_t mode = IN6_ADDR_GEN_MODE_NONE;
	struct rtattr *families = put(rq, IFLA_AF_SPEC, NULL, 0);
	struct rtattr *family = put(rq, AF_INET6, NULL, 0);

	put(rq, IFLA_INET6_ADDR_GEN_MODE, &mode, sizeof(mode));
	close_nest(rq, family);
	close_nest(rq, families);
}

int vnet_netlink_link_set(
	struct vnet_netlink *nl, int index, const struct vnet_link *link, struct err *e)
{
	struct request rq;
	struct ifinfomsg *info = begin(&rq, RTM_NEWLINK, 0, sizeof(*info));

	info->ifi_index = index;
	if (link->up)
		info->ifi_flags = info->ifi_change = IFF_UP;
	if (link->mtu)
		put_u32(&rq, IFLA_MTU, link->mtu);
	if (link->queue)
		put_u32(&rq, IFLA_TXQLEN, link->queue);
	/*
	 * For IPv6 too: the kernel lowers its own limit for IPv4 (IFLA_GSO_IPV4_MAX_SIZE) with this
	 * one.
	 */
	if (link->gso_max_size)
		put_u32(&rq, IFLA_GSO_MAX_SIZE, link->gso_max_size);
	if (link->no_link_local)
		put_no_link_local(&rq);
	return talk(nl, &rq, NULL, 0, e);
}

int vnet_netlink_address_add(struct vnet_netlink *nl, int index, const struct vnet_endpoint *ep,
	unsigned int prefix, struct err *e)
{
	struct request rq;
	struct ifaddrmsg *ifa = begin(&rq, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, sizeof(*ifa));
	char text[VNET_ENDPOINT_TEXT];

	ifa->ifa_family = ep->family;
	ifa->ifa_prefixlen = (uint8_t)prefix;
	ifa->ifa_index = (unsigned int)index;
	put_address(&rq, IFA_LOCAL, ep);
	put_address(&rq, IFA_ADDRESS, ep);
	put_u32(&rq, IFA_FLAGS, IFA_F_NODAD | IFA_F_NOPREFIXROUTE | IFA_F_PERMANENT);
	if (talk(nl, &rq, NULL, 0, e) < 0)
		return err_wrap(e, "address %s", vnet_endpoint_format(ep, text));
	return 0;
}

static void put_route(struct request *rq, const struct vnet_route *want)
{
	struct rtmsg *rt = append(rq, sizeof(*rt));

	rt->rtm_family = want->dst.family;
	rt->rtm_dst_len = (uint8_t)want->prefix;
	rt->rtm_table = want->table   ? RT_TABLE_UNSPEC
			: want->local ? RT_TABLE_LOCAL
				      : RT_TABLE_MAIN;
	rt->rtm_type = want->local ? RTN_LOCAL : RTN_UNICAST;
	rt->rtm_protocol = RTPROT_STATIC;
	rt->rtm_scope = want->local	   ? RT_SCOPE_HOST
			: want->via.family ? RT_SCOPE_UNIVERSE
					   : RT_SCOPE_LINK;
	if (want->prefix)
		put_address(rq, RTA_DST, &want->dst);
	put_u32(rq, RTA_OIF, (uint32_t)want->index);
	if (want->table)
		put_u32(rq, RTA_TABLE, want->table);
	if (want->via.family)
		put_address(rq, RTA_GATEWAY, &want->via);
	if (want->src.family)
		put_address(rq, RTA_PREFSRC, &want->src);
}

int vnet_netlink_route_add(struct vnet_netlink *nl, const struct vnet_route *want, struct err *e)
{
	struct request rq;
	char text[VNET_ENDPOINT_TEXT];

	begin(&rq, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, 0);
	put_route(&rq, want);
	if (talk(nl, &rq, NULL, 0, e) < 0)
		return err_wrap(
			e, "route to %s/%u", vnet_endpoint_format(&want->dst, text), want->prefix);
	return 0;
}

int vnet_netlink_route_remove(struct vnet_netlink *nl, const struct vnet_route *want, struct err *e)
{
	struct request rq;

	begin(&rq, RTM_DELROUTE, 0, 0);
	put_route(&rq, want);
	return talk(nl, &rq, NULL, 0, e);
}

static void put_port(struct request *rq, uint16_t type, uint16_t port)
{
	const struct fib_rule_port_range range = {port, port};

	put(rq, type, &range, sizeof(range));
}

static int change_rule(struct vnet_netlink *nl, uint16_t type, uint16_t flags,
	const struct vnet_rule *rule, struct err *e)
{
	const uint8_t tcp = IPPROTO_TCP;
	const unsigned whole = rule->family == AF_INET ? 32 : 128;
	struct request rq;
	struct fib_rule_hdr *h = begin(&rq, type, flags, sizeof(*h));

	h->family = rule->family;
	h->action = FR_ACT_TO_TBL;
	put_u32(&rq, FRA_TABLE, rule->table);
	put_u32(&rq, FRA_PRIORITY, RULE_PRIORITY);
	if (rule->mark)
		put_u32(&rq, FRA_FWMARK, rule->mark);
	if (rule->src.family) {
		h->src_len = h->dst_len = (uint8_t)whole;
		put_address(&rq, FRA_SRC, &rule->src);
		put_address(&rq, FRA_DST, &rule->dst);
		put(&rq, FRA_IP_PROTO, &tcp, sizeof(tcp));
		put_port(&rq, FRA_SPORT_RANGE, rule->src.port);
		put_port(&rq, FRA_DPORT_RANGE, rule->dst.port);
	}
	return talk(nl, &rq, NULL, 0, e);
}

int vnet_netlink_rule_add(struct vnet_netlink *nl, const struct vnet_rule *rule, struct err *e)
{
	return change_rule(nl, RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule, e);
}

int vnet_netlink_rule_remove(struct vnet_netlink *nl, const struct vnet_rule *rule, struct err *e)
{
	return change_rule(nl, RTM_DELRULE, 0, rule, e);
}

/* One end: its flags, name and link address. */
static void put_end(struct request *rq, const char *name, unsigned int mtu)
{
	static const uint8_t address[6] = {2, 0, 0, 0, 0, 1};

	put_string(rq, IFLA_IFNAME, name);
	put_u32(rq, IFLA_MTU, mtu);
	put(rq, IFLA_ADDRESS, address, sizeof(address));
}

int vnet_netlink_pair_add(struct vnet_netlink *nl, const struct vnet_pair *pair, struct err *e)
{
	struct request rq;
	struct ifinfomsg *info = begin(&rq, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(*info));
	struct rtattr *kind, *data, *peer;

	info->ifi_flags = info->ifi_change = IFF_NOARP;
	put_end(&rq, pair->name, pair->mtu);
	kind = put(&rq, IFLA_LINKINFO, NULL, 0);
	put_string(&rq, IFLA_INFO_KIND, "veth");
	data = put(&rq, IFLA_INFO_DATA, NULL, 0);
	peer = put(&rq, VETH_INFO_PEER, NULL, 0);
	info = append(&rq, sizeof(*info));
	info->ifi_flags = info->ifi_change = IFF_NOARP;
	put_end(&rq, pair->peer, pair->mtu);
	put_u32(&rq, IFLA_NET_NS_FD, (uint32_t)pair->netns);
	close_nest(&rq, peer);
	close_nest(&rq, data);
	close_nest(&rq, kind);
	return talk(nl, &rq, NULL, 0, e);
}

int vnet_netlink_remove(struct vnet_netlink *nl, int index, struct err *e)
{
	struct request rq;
	struct ifinfomsg *info = begin(&rq, RTM_DELLINK, 0, sizeof(*info));

	info->ifi_index = index;
	return talk(nl, &rq, NULL, 0, e);
}

int vnet_netlink_traffic(
	struct vnet_netlink *nl, int index, struct vnet_traffic *ret, struct err *e)
{
	_Alignas(struct nlmsghdr) uint8_t answer[8192];
	const struct nlmsghdr *h = (const void *)answer;
	struct request rq;
	struct ifinfomsg *info = begin(&rq, RTM_GETLINK, 0, sizeof(*info));
	const struct rtattr *a;
	struct rtnl_link_stats64 all;
	int r, left;

	info->ifi_index = index;
	r = talk(nl, &rq, answer, sizeof(answer), e);
	if (r < 0)
		return r;
	left = r - (int)NLMSG_LENGTH(sizeof(*info));
	a = (const void *)(answer + NLMSG_LENGTH(sizeof(*info)));
	for (; h->nlmsg_type == RTM_NEWLINK && RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		if (a->rta_type != IFLA_STATS64 || RTA_PAYLOAD(a) < sizeof(all.tx_bytes) * 4)
			continue;
		memcpy(&all, RTA_DATA(a), MIN(RTA_PAYLOAD(a), sizeof(all)));
		*ret = (struct vnet_traffic){
			all.rx_packets, all.rx_bytes, all.tx_packets, all.tx_bytes};
		return 0;
	}
	return err_set(e, ERR_FAILED, -EPROTO, "rtnetlink: no counts");
}
