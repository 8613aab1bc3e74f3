// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * outside - sendmsg with UDP_SEGMENT takes up to 64 datagrams in one call, recvmmsg with UDP_GRO
 * gives as many. Where a route or device refuses a run (EINVAL, EIO, EMSGSIZE: the segments do
 * not fit its MTU, no checksum offload), its datagrams are sent one by one.
 *
 * With IP_RECVERR the kernel also reports an error that has arrived at the next call, whatever that
 * is; the call has done nothing then and is made again once.
 */
#include <errno.h>
#include <time.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "vnet/datagram/outside.h"

/* linux/udp.h, 4.18 and 5.0 */
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

#define CONTROL_ROOM 256

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) < 0 ? -errno : 0;
}

static int report_errors(int fd, int family)
{
	return family == AF_INET ? set_int(fd, IPPROTO_IP, IP_RECVERR, 1)
				 : set_int(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
}

static bool is_any(const struct vnet_endpoint *ep)
{
	return ep->family == AF_INET ? !ep->v4.s_addr : IN6_IS_ADDR_UNSPECIFIED(&ep->v6);
}

/* Who is answered must see the address that he has asked, which may be any of the host's. */
static int report_address(int fd, int family)
{
	return family == AF_INET ? set_int(fd, IPPROTO_IP, IP_PKTINFO, 1)
				 : set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
}

int vnet_outside_udp(struct vnet_endpoint *at)
{
	const bool published = at->port, any = is_any(at);
	_cleanup_close_ int fd = -1;
	struct sockaddr_storage sa;
	socklen_t len = vnet_endpoint_to_sockaddr(at, &sa);

	fd = socket(at->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (at->family == AF_INET6 && set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1) < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&sa, len) < 0)
		return -errno;
	len = sizeof(sa);
	if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
		return -errno;
	vnet_endpoint_from_sockaddr(&sa, len, at);
	report_errors(fd, at->family);
	set_int(fd, IPPROTO_UDP, UDP_GRO, 1);
	if (published && any)
		report_address(fd, at->family);
	return take_fd(&fd);
}

int vnet_outside_ping(int family)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		family == AF_INET ? (int)IPPROTO_ICMP : (int)IPPROTO_ICMPV6);

	if (fd < 0)
		return -errno;
	report_errors(fd, family);
	return fd;
}

static void put_control(struct msghdr *m, int level, int type, const void *value, size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)m->msg_control + m->msg_controllen);

	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), value, len);
	m->msg_controllen += CMSG_SPACE(len);
}

static void put_from(struct msghdr *m, const struct vnet_endpoint *from)
{
	if (from->family == AF_INET)
		put_control(m, IPPROTO_IP, IP_PKTINFO, &(struct in_pktinfo){.ipi_spec_dst = from->v4},
			sizeof(struct in_pktinfo));
	else if (from->family == AF_INET6)
		put_control(m, IPPROTO_IPV6, IPV6_PKTINFO,
			&(struct in6_pktinfo){.ipi6_addr = from->v6}, sizeof(struct in6_pktinfo));
}

/* One sendmsg; again if what failed was an earlier one. */
static int send_once(int fd, const struct vnet_endpoint *to, const void *data, size_t len,
	uint16_t segment, const struct vnet_outside_how *how)
{
	const uint8_t ttl = how->ttl;
	char control[CONTROL_ROOM] __attribute__((aligned(8))) = {0};
	struct sockaddr_storage sa;
	struct iovec iov = {(void *)data, len};
	struct msghdr m = {.msg_name = &sa,
		.msg_namelen = vnet_endpoint_to_sockaddr(to, &sa),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control};

	if (segment)
		put_control(&m, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	if (ttl && to->family == AF_INET)
		put_control(&m, IPPROTO_IP, IP_TTL, &(int){ttl}, sizeof(int));
	else if (ttl)
		put_control(&m, IPPROTO_IPV6, IPV6_HOPLIMIT, &(int){ttl}, sizeof(int));
	put_from(&m, &how->from);
	if (!m.msg_controllen)
		m.msg_control = NULL;
	if (sendmsg(fd, &m, MSG_NOSIGNAL) >= 0 || sendmsg(fd, &m, MSG_NOSIGNAL) >= 0)
		return 0;
	return -errno;
}

static bool refuses_runs(int error)
{
	return error == -EINVAL || error == -EIO || error == -EMSGSIZE;
}

int vnet_outside_send(int fd, const struct vnet_endpoint *to, const void *data, size_t len,
	const struct vnet_outside_how *how)
{
	const uint8_t *p = data;
	size_t run = len;
	int r;

	if (!how->segment || len <= how->segment)
		return send_once(fd, to, p, len, 0, how);
	run = MIN((size_t)VNET_OUTSIDE_SEGMENTS, VNET_OUTSIDE_MAX / (size_t)how->segment);
	run = MAX(run, (size_t)1) * how->segment;
	for (size_t n; len; len -= n, p += n) {
		n = MIN(len, run);
		r = send_once(fd, to, p, n, n > how->segment ? how->segment : 0, how);
		if (refuses_runs(r) && n > how->segment) {
			run = n = how->segment;
			r = send_once(fd, to, p, n, 0, how);
		}
		if (r < 0)
			return r;
	}
	return 0;
}

/* A value among a message's control data; false if there is none of that type and size. */
static bool get_control(struct msghdr *m, int level, int type, void *ret, size_t len)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c))
		if (c->cmsg_level == level && c->cmsg_type == type &&
			c->cmsg_len >= CMSG_LEN(len)) {
			memcpy(ret, CMSG_DATA(c), len);
			return true;
		}
	return false;
}

static struct vnet_endpoint came_to(struct msghdr *m)
{
	struct vnet_endpoint at = {0};
	struct in_pktinfo v4;
	struct in6_pktinfo v6;

	if (get_control(m, IPPROTO_IP, IP_PKTINFO, &v4, sizeof(v4)))
		at = vnet_endpoint_v4(v4.ipi_spec_dst, 0);
	else if (get_control(m, IPPROTO_IPV6, IPV6_PKTINFO, &v6, sizeof(v6)))
		at = vnet_endpoint_v6(&v6.ipi6_addr, 0);
	return at.family && vnet_endpoint_is_unicast(&at) ? at : (struct vnet_endpoint){0};
}

int vnet_outside_receive(int fd, struct vnet_outside_message *m, unsigned n, size_t room)
{
	char control[VNET_OUTSIDE_BATCH][CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct in6_pktinfo))]
		__attribute__((aligned(8)));
	struct sockaddr_storage sa[VNET_OUTSIDE_BATCH];
	struct iovec iov[VNET_OUTSIDE_BATCH];
	struct mmsghdr mm[VNET_OUTSIDE_BATCH] = {0};
	int got;

	n = MIN(n, (unsigned)VNET_OUTSIDE_BATCH);
	for (unsigned i = 0; i < n; i++) {
		iov[i] = (struct iovec){m[i].data, room};
		mm[i].msg_hdr = (struct msghdr){.msg_name = &sa[i],
			.msg_namelen = sizeof(sa[i]),
			.msg_iov = &iov[i],
			.msg_iovlen = 1,
			.msg_control = control[i],
			.msg_controllen = sizeof(control[i])};
	}
	/* Again if it was told of an error instead; that is on the error queue as well. */
	got = recvmmsg(fd, mm, n, MSG_DONTWAIT, NULL);
	if (got < 0 && errno != EAGAIN)
		got = recvmmsg(fd, mm, n, MSG_DONTWAIT, NULL);
	for (int i = 0; i < got; i++) {
		int segment = 0;

		get_control(&mm[i].msg_hdr, IPPROTO_UDP, UDP_GRO, &segment, sizeof(segment));
		if (vnet_endpoint_from_sockaddr(&sa[i], mm[i].msg_hdr.msg_namelen, &m[i].from) < 0)
			m[i].from = (struct vnet_endpoint){0};
		m[i].at = came_to(&mm[i].msg_hdr);
		m[i].len = mm[i].msg_len;
		m[i].segment = segment > 0 && (size_t)segment < m[i].len ? (uint16_t)segment : 0;
	}
	return MAX(got, 0);
}

/* linux/errqueue.h: the struct is followed by the address of who sent the ICMP message. */
struct queued {
	struct sock_extended_err ee;
	struct sockaddr_in6 offender;
};

/*
 * What is passed on to the session as which ICMP message.  False for what is none of its
 * business.
 */
static bool translate(const struct queued *q, int family, struct vnet_outside_error *ret)
{
	ret->type = q->ee.ee_type;
	ret->code = q->ee.ee_code;
	switch (q->ee.ee_origin) {
	case SO_EE_ORIGIN_ICMP:
		if (family != AF_INET)
			return false;
		if (ret->type == ICMP_DEST_UNREACH && ret->code == ICMP_FRAG_NEEDED)
			ret->rest = htonl(q->ee.ee_info & 0xffff);
		return ret->type == ICMP_DEST_UNREACH || ret->type == ICMP_TIME_EXCEEDED;
	case SO_EE_ORIGIN_ICMP6:
		if (family != AF_INET6)
			return false;
		if (ret->type == ICMP6_PACKET_TOO_BIG)
			ret->rest = htonl(q->ee.ee_info);
		return ret->type >= ICMP6_DST_UNREACH && ret->type <= ICMP6_TIME_EXCEEDED;
	case SO_EE_ORIGIN_LOCAL:
		if (q->ee.ee_errno != EMSGSIZE)
			return false;
		ret->type = family == AF_INET ? ICMP_DEST_UNREACH : ICMP6_PACKET_TOO_BIG;
		ret->code = family == AF_INET ? ICMP_FRAG_NEEDED : 0;
		ret->rest = htonl(q->ee.ee_info);
		return true;
	default:
		return false;
	}
}

static void offender(const struct queued *q, struct vnet_endpoint *ret)
{
	struct sockaddr_storage sa = {0};

	*ret = (struct vnet_endpoint){0};
	if (q->ee.ee_origin == SO_EE_ORIGIN_LOCAL)
		return;
	memcpy(&sa, &q->offender, sizeof(q->offender));
	if (vnet_endpoint_from_sockaddr(&sa, sizeof(q->offender), ret) < 0)
		*ret = (struct vnet_endpoint){0};
	ret->port = 0;
}

int vnet_outside_error(int fd, void *data, size_t room, struct vnet_outside_error *ret)
{
	for (;;) {
		char control[CONTROL_ROOM] __attribute__((aligned(8)));
		struct sockaddr_storage sa = {0};
		struct queued q = {0};
		struct iovec iov = {data, room};
		struct msghdr m = {.msg_name = &sa,
			.msg_namelen = sizeof(sa),
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
			.msg_controllen = sizeof(control)};
		ssize_t n = recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT);
		const size_t v4 = sizeof(q.ee) + sizeof(struct sockaddr_in);

		if (n < 0)
			return 0;
		*ret = (struct vnet_outside_error){.len = (size_t)n};
		if (vnet_endpoint_from_sockaddr(&sa, m.msg_namelen, &ret->to) < 0)
			continue;
		if (!get_control(&m, IPPROTO_IPV6, IPV6_RECVERR, &q, sizeof(q)) &&
			!get_control(&m, IPPROTO_IP, IP_RECVERR, &q, v4))
			continue;
		offender(&q, &ret->from);
		if (translate(&q, ret->to.family, ret))
			return 1;
	}
}
