// SPDX-License-Identifier: GPL-2.0-or-later
/* UDP: bound, connected, with datagrams waiting, also their own, in multicast groups; both families. */
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/state/state.h"

union address {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static int bound(int domain, union address *a)
{
	socklen_t len = sizeof(*a);
	int fd = socket(domain, SOCK_DGRAM, 0);

	memset(a, 0, sizeof(*a));
	a->any.sa_family = domain;
	if (domain == AF_INET)
		a->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		a->in6.sin6_addr = in6addr_loopback;
	STATE_CHECK(fd >= 0 &&
		    bind(fd, &a->any, domain == AF_INET ? sizeof(a->in) : sizeof(a->in6)) == 0);
	STATE_CHECK(getsockname(fd, &a->any, &len) == 0);
	return fd;
}

static void expect(int fd, const char *text, const union address *from)
{
	char buf[64];
	union address a;
	socklen_t len = sizeof(a);
	ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT, &a.any, &len);

	STATE_CHECK(n == (ssize_t)strlen(text) && !memcmp(buf, text, n));
	STATE_CHECK(!from || a.in.sin_port == from->in.sin_port);
}

/* In each family a socket that takes what a group gets from one source, and one that takes all but that. */
static struct filter {
	int fd, level;
	struct group_source_req q;
	uint32_t mode;
} filters[4];

static void *in_of(struct sockaddr_storage *s, int family)
{
	s->ss_family = (sa_family_t)family;
	return family == AF_INET ? (void *)&((struct sockaddr_in *)s)->sin_addr
				 : (void *)&((struct sockaddr_in6 *)s)->sin6_addr;
}

static void set_filters(void)
{
	for (int i = 0; i < 4; i++) {
		struct filter *f = &filters[i];
		int family = i < 2 ? AF_INET : AF_INET6;
		const char *group = i < 2 ? "239.1.2.4" : "ff05::1:4";

		f->fd = socket(family, SOCK_DGRAM, 0);
		f->level = i < 2 ? IPPROTO_IP : IPPROTO_IPV6;
		f->mode = i % 2 ? MCAST_EXCLUDE : MCAST_INCLUDE;
		f->q.gsr_interface = if_nametoindex("lo");
		inet_pton(family, group, in_of(&f->q.gsr_group, family));
		inet_pton(family, i < 2 ? "127.0.0.9" : "fd00::9", in_of(&f->q.gsr_source, family));
		if (i % 2) {
			struct group_req q = {f->q.gsr_interface, f->q.gsr_group};

			STATE_CHECK(setsockopt(f->fd, f->level, MCAST_JOIN_GROUP, &q, sizeof(q)) == 0);
		}
		STATE_CHECK(setsockopt(f->fd, f->level,
				    i % 2 ? MCAST_BLOCK_SOURCE : MCAST_JOIN_SOURCE_GROUP, &f->q,
				    sizeof(f->q)) == 0);
	}
}

static void check_filters(void)
{
	for (int i = 0; i < 4; i++) {
		struct filter *f = &filters[i];
		union {
			struct group_filter f;
			char room[GROUP_FILTER_SIZE(4)];
		} u = {.f = {.gf_interface = f->q.gsr_interface,
			       .gf_group = f->q.gsr_group,
			       .gf_numsrc = 4}};
		socklen_t len = sizeof(u);
		int family = f->q.gsr_group.ss_family;

		STATE_CHECK(getsockopt(f->fd, f->level, MCAST_MSFILTER, &u, &len) == 0);
		STATE_CHECK(u.f.gf_fmode == f->mode && u.f.gf_numsrc == 1);
		STATE_CHECK(!memcmp(in_of(&u.f.gf_slist[0], family), in_of(&f->q.gsr_source, family),
			i < 2 ? 4 : 16));
		STATE_CHECK(setsockopt(f->fd, f->level,
				    i % 2 ? MCAST_UNBLOCK_SOURCE : MCAST_LEAVE_SOURCE_GROUP, &f->q,
				    sizeof(f->q)) == 0);
	}
}

/* To its own port, by the loopback. */
static void say_to_itself(int fd, const char *text)
{
	union address to;
	socklen_t len = sizeof(to);

	STATE_CHECK(getsockname(fd, &to.any, &len) == 0);
	if (to.any.sa_family == AF_INET)
		to.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		to.in6.sin6_addr = in6addr_loopback;
	STATE_CHECK(sendto(fd, text, strlen(text), 0, &to.any, len) == (ssize_t)strlen(text));
}

static void hear_itself(int fd, const char *text)
{
	union address own;
	socklen_t len = sizeof(own);

	STATE_CHECK(getsockname(fd, &own.any, &len) == 0);
	expect(fd, text, &own);
}

/* Who is bound to any address, and so is not who is meant if another one is bound to this. */
static int bound_to_any(int domain)
{
	union address a = {.any.sa_family = (sa_family_t)domain};
	int fd = socket(domain, SOCK_DGRAM, 0);

	STATE_CHECK(bind(fd, &a.any, domain == AF_INET ? sizeof(a.in) : sizeof(a.in6)) == 0);
	return fd;
}

int main(int argc, char **argv)
{
	int anyone = bound_to_any(AF_INET), anyone6 = bound_to_any(AF_INET6);
	union address a, b, six, seven, dead;
	int sa = bound(AF_INET, &a), sb = bound(AF_INET, &b), s6 = bound(AF_INET6, &six);
	int s7 = bound(AF_INET6, &seven), sd = bound(AF_INET, &dead);
	int many = socket(AF_INET, SOCK_DGRAM, 0), v = 0, one = 1, sender;
	socklen_t len = sizeof(v);
	struct sockaddr_in group = {.sin_family = AF_INET, .sin_port = htons(5555)};
	struct ip_mreqn join = {.imr_ifindex = if_nametoindex("lo")};

	STATE_CHECK(sendto(sa, "one", 3, 0, &b.any, sizeof(b.in)) == 3);
	STATE_CHECK(sendto(sd, "two", 3, 0, &b.any, sizeof(b.in)) == 3 && close(sd) == 0);
	STATE_CHECK(sendto(sa, "", 0, 0, &b.any, sizeof(b.in)) == 0);
	say_to_itself(sb, "to myself");
	say_to_itself(anyone, "to anyone");
	say_to_itself(anyone6, "to anyone");
	STATE_CHECK(sendto(sa, "four", 4, 0, &b.any, sizeof(b.in)) == 4);
	STATE_CHECK(connect(sa, &b.any, sizeof(b.in)) == 0);
	STATE_CHECK(sendto(s6, "six", 3, 0, &seven.any, sizeof(six.in6)) == 3);
	STATE_CHECK(setsockopt(sb, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one)) == 0);
	STATE_CHECK(setsockopt(sb, IPPROTO_IP, IP_RECVTTL, &one, sizeof(one)) == 0);

	STATE_CHECK(bind(many, (void *)&group, sizeof(group)) == 0);
	inet_pton(AF_INET, "239.1.2.3", &join.imr_multiaddr);
	STATE_CHECK(setsockopt(many, IPPROTO_IP, IP_ADD_MEMBERSHIP, &join, sizeof(join)) == 0);

	set_filters();

	state_ready(argc, argv);

	check_filters();

	expect(sb, "one", &a);
	expect(sb, "two", &dead);
	expect(sb, "", &a);
	hear_itself(sb, "to myself");
	hear_itself(anyone, "to anyone");
	hear_itself(anyone6, "to anyone");
	expect(sb, "four", &a);
	STATE_CHECK(send(sa, "five", 4, 0) == 4);
	expect(sb, "five", &a);
	expect(s7, "six", &six);
	STATE_CHECK(getsockopt(sb, SOL_SOCKET, SO_BROADCAST, &v, &len) == 0 && v == 1);
	STATE_CHECK(getsockopt(sa, SOL_SOCKET, SO_REUSEADDR, &v, &len) == 0 && v == 0);
	STATE_CHECK(getsockopt(sb, IPPROTO_IP, IP_RECVTTL, &v, &len) == 0 && v == 1);

	sender = socket(AF_INET, SOCK_DGRAM, 0);
	group.sin_addr = join.imr_multiaddr;
	join.imr_address.s_addr = htonl(INADDR_LOOPBACK);
	STATE_CHECK(setsockopt(sender, IPPROTO_IP, IP_MULTICAST_IF, &join, sizeof(join)) == 0);
	STATE_CHECK(sendto(sender, "all", 3, 0, (void *)&group, sizeof(group)) == 3);
	expect(many, "all", NULL);
	return state_ok();
}
