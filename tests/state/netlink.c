// SPDX-License-Identifier: GPL-2.0-or-later
/* Netlink sockets: number and groups stay, questions are answered. */
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tests/state/state.h"

int main(int argc, char **argv)
{
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK}, b, c;
	struct {
		struct nlmsghdr h;
		struct rtgenmsg g;
	} ask = {.h = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = RTM_GETLINK,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			 .nlmsg_seq = 7}};
	int route = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	int event = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	socklen_t len = sizeof(b);
	uint32_t member[2] = {0};
	char buf[16384];
	ssize_t n;

	STATE_CHECK(route >= 0 && event >= 0 && bind(route, (void *)&a, sizeof(a)) == 0);
	STATE_CHECK(getsockname(route, (void *)&b, &len) == 0 && b.nl_pid);

	state_ready(argc, argv);

	len = sizeof(c);
	STATE_CHECK(getsockname(route, (void *)&c, &len) == 0);
	STATE_CHECK(c.nl_pid == b.nl_pid && c.nl_groups == RTMGRP_LINK);
	len = sizeof(member);
	STATE_CHECK(getsockopt(route, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, member, &len) == 0);
	STATE_CHECK(member[0] == 1u << (RTNLGRP_LINK - 1));
	len = sizeof(c);
	STATE_CHECK(getsockname(event, (void *)&c, &len) == 0 && c.nl_pid == 0);
	STATE_CHECK(send(route, &ask, sizeof(ask), 0) == sizeof(ask));
	n = recv(route, buf, sizeof(buf), 0);
	STATE_CHECK(n > (ssize_t)sizeof(struct nlmsghdr));
	STATE_CHECK(((struct nlmsghdr *)buf)->nlmsg_seq == 7);
	return state_ok();
}
