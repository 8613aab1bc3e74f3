// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Segments of a peer that it will not send, or not soon.
 *
 * A raw socket sends them to the session's own address, so they come by the loopback device whatever
 * carries packets to the outside, and at once.  raw(7), RFC 9293 section 3.1 for the header and
 * its checksum.
 */
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "ckpt/kinds/tcp_live.h"

#define TTL 64

struct segment4 {
	struct iphdr ip;
	struct tcphdr tcp;
};

struct segment6 {
	struct ip6_hdr ip;
	struct tcphdr tcp;
};

static uint32_t add(uint32_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	return sum;
}

/* Of the header and the addresses, @len bytes each. */
static uint16_t checksum(const struct tcphdr *tcp, const void *from, const void *to, size_t len)
{
	uint32_t sum = IPPROTO_TCP + sizeof(*tcp);

	sum = add(add(add(sum, from, len), to, len), tcp, sizeof(*tcp));
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static void make_header(struct tcphdr *tcp, const struct tcp_segment *s)
{
	memset(tcp, 0, sizeof(*tcp));
	/* The port lies at the same place in both families. */
	tcp->source = s->from->in.sin_port;
	tcp->dest = s->to->in.sin_port;
	tcp->seq = htonl(s->seq);
	tcp->ack_seq = htonl(s->ack);
	tcp->doff = sizeof(*tcp) / 4;
	tcp->fin = s->fin;
	tcp->ack = 1;
	tcp->window = htons(s->window);
}

static int open_raw(int family)
{
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);

	return fd < 0 ? -errno : fd;
}

void tcp_peer_open(struct tcp_peer *ret)
{
	*ret = (struct tcp_peer){open_raw(AF_INET), open_raw(AF_INET6)};
}

void tcp_peer_close(struct tcp_peer *p)
{
	p->four = close_fd(p->four);
	p->six = close_fd(p->six);
}

static int send_raw(
	int fd, const void *packet, size_t len, const union ckpt_sockaddr *to, struct err *e)
{
	union ckpt_sockaddr at = *to;

	if (fd < 0)
		return err_errno(e, fd, "raw socket");
	at.in.sin_port = 0;
	if (sendto(fd, packet, len, 0, &at.any,
		    at.any.sa_family == AF_INET ? sizeof(at.in) : sizeof(at.in6)) < 0)
		return err_errno(e, -errno, "cannot speak for the peer of a TCP connection");
	return 0;
}

int tcp_peer_say(const struct tcp_peer *p, const struct tcp_segment *segment, struct err *e)
{
	const union ckpt_sockaddr *from = segment->from, *to = segment->to;

	if (from->any.sa_family == AF_INET) {
		struct segment4 s = {.ip = {.version = 4,
					     .ihl = sizeof(s.ip) / 4,
					     .tot_len = htons(sizeof(s)),
					     .ttl = TTL,
					     .protocol = IPPROTO_TCP,
					     .saddr = from->in.sin_addr.s_addr,
					     .daddr = to->in.sin_addr.s_addr}};

		make_header(&s.tcp, segment);
		s.tcp.check = checksum(&s.tcp, &s.ip.saddr, &s.ip.daddr, sizeof(s.ip.saddr));
		return send_raw(p->four, &s, sizeof(s), to, e);
	}
	struct segment6 s = {.ip = {.ip6_src = from->in6.sin6_addr, .ip6_dst = to->in6.sin6_addr}};

	s.ip.ip6_flow = htonl(6u << 28);
	s.ip.ip6_plen = htons(sizeof(s.tcp));
	s.ip.ip6_nxt = IPPROTO_TCP;
	s.ip.ip6_hlim = TTL;
	make_header(&s.tcp, segment);
	s.tcp.check = checksum(&s.tcp, &s.ip.ip6_src, &s.ip.ip6_dst, sizeof(s.ip.ip6_src));
	return send_raw(p->six, &s, sizeof(s), to, e);
}
