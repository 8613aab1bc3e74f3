/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * packet - one IP packet as a TUN gives it: looked at once, rewritten in place, or made anew.
 *
 *     struct virtio_net_hdr | IPv4 or IPv6 | extension headers | TCP, UDP, ICMP | payload
 *              vh             data ...                           l4               payload
 *
 * Nobody else reads bytes of headers: vnet_packet_parse checks every length against the buffer and
 * says where things are, and what is behind it may rely on that.  It makes one pass over the
 * headers and never touches the payload.
 *
 * Super-packets.  A TUN with offloads hands over up to 64 KB as *one* packet: vh.gso_size says into
 * which pieces somebody would have to cut it on a wire, and its transport checksum is *partial*
 * (see checksum.h).  Between two TUNs of a host neither is ever done, which is where the speed is:
 * the cost of a packet is that of its two system calls, so the packet has to be large.  The fields
 * of vh come from whoever sent the packet and are checked like any other header.
 *
 * Rewriting an address changes up to three checksums (IPv4 header, transport, and what an ICMP
 * error has embedded), each by the difference; a wrong checksum stays wrong, so that the receiver
 * finds out.  A partial one holds the addresses only, not the ports, and is adjusted accordingly.
 *
 * Fragments.  A session's kernel cuts UDP datagrams above the MTU.  Those are parsed as far as they
 * go (`fragment`), and vnet/reassemble.h puts them together.
 *
 * The buffer belongs to the caller; `data` is aligned to 4 bytes, which puts every header on its
 * natural boundary (all have lengths that are multiples of 4).
 *
 * Sources: RFC 791, 8200, 9293, 768, 792, 4443; virtio 1.2 5.1.6; linux/virtio_net.h.
 */
#ifndef VNET_PACKET_H
#define VNET_PACKET_H

#include <linux/virtio_net.h>
#include <netinet/icmp6.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vnet/endpoint.h"

/* linux/virtio_net.h, 6.2 */
#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/*
 * What a buffer needs for any packet: the largest IP packet, with room for headers in front of a
 * payload.
 */
#define VNET_PACKET_MAX 65536

struct vnet_packet {
	struct virtio_net_hdr vh; /* as the TUN gave it, or is to get it */
	uint8_t *data; /* the IP packet, aligned to 4 bytes, in a buffer of the caller's */
	size_t len;    /* of the packet */
	size_t room;   /* of the buffer */

	/* Filled in by vnet_packet_parse and by the makers. */
	uint8_t version; /* 4 or 6 */
	uint8_t proto;	 /* of the transport header, behind extension headers */
	uint16_t l4;	 /* where it begins */
	uint16_t
		payload; /* where its payload begins; == l4 if the header is not known or not here */
	uint16_t payload_len; /* of that; a UDP datagram may be shorter than its packet */
	bool fragment;	      /* not the first, or more follow */
	bool more_fragments;  /* more follow */
	uint16_t
		fragment_offset; /* of what is at l4, in the whole; l4 has a header only if this is 0 */
	uint16_t fragment_at;	       /* IPv6: where the fragment header is; 0 for IPv4 */
	uint16_t fragment_next;	       /* IPv6: where the byte is that announces it */
	struct vnet_endpoint src, dst; /* ports 0 where there are none */
};

/*
 * Looks at data[0..len) and vh and fills in the rest; cuts len to what the IP header says.  0, or
 * -EBADMSG for what is not a well-formed packet: lengths, IPv4 header checksum, versions, routing
 * headers with hops left, offload fields that don't describe this packet.  Transport checksums are
 * not looked at (vnet_packet_checksum_ok).
 */
int vnet_packet_parse(struct vnet_packet *p);

/*
 * Gives a parsed packet another source or destination of the same family: address, and port if
 * the transport has ports.  Adjusts checksums.
 */
void vnet_packet_set_src(struct vnet_packet *p, const struct vnet_endpoint *to);
void vnet_packet_set_dst(struct vnet_packet *p, const struct vnet_endpoint *to);

/*
 * True if the transport checksum is right, or partial (then nothing was on a wire), or absent as
 * UDP allows.
 */
bool vnet_packet_checksum_ok(const struct vnet_packet *p);

/* The transport header of a parsed packet, or NULL if it has another, or none here. */
static inline struct tcphdr *vnet_packet_tcp(const struct vnet_packet *p)
{
	return p->proto == IPPROTO_TCP && !p->fragment_offset
		       ? (struct tcphdr *)(void *)(p->data + p->l4)
		       : NULL;
}

static inline struct udphdr *vnet_packet_udp(const struct vnet_packet *p)
{
	return p->proto == IPPROTO_UDP && !p->fragment_offset
		       ? (struct udphdr *)(void *)(p->data + p->l4)
		       : NULL;
}

/* For both versions: type, code, checksum and what is behind are at the same places. */
static inline struct icmphdr *vnet_packet_icmp(const struct vnet_packet *p)
{
	return p->proto == (p->version == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) && !p->fragment_offset
		       ? (struct icmphdr *)(void *)(p->data + p->l4)
		       : NULL;
}

/*
 * Does a parsed packet's TCP header have time stamps, and them first, as every kernel lays them out
 * (RFC 7323 appendix A)?
 */
bool vnet_packet_has_stamps(const struct tcphdr *tcp);

/*
 * Does a parsed packet say nothing but how far its sender has received: no data, no SACK, no ECN,
 * no end?  @later makes such an @earlier one needless if it is of the same connection and
 * acknowledges or offers more, or as much and comes with data or the end.
 */
bool vnet_packet_is_ack(const struct vnet_packet *p);
bool vnet_packet_ack_covers(const struct vnet_packet *later, const struct vnet_packet *earlier);

/*
 * Is a parsed packet a segment with data and a partial checksum, which says nothing but what others
 * of its connection do?  vnet_packet_join puts the data of @next behind that of @p, if that is
 * where it belongs and nothing else differs, as long as @p gets no longer than @most bytes.  True:
 * @p is a super-packet, with the larger pieces of the two, and @next is needless.
 */
bool vnet_packet_is_joinable(const struct vnet_packet *p);
bool vnet_packet_join(struct vnet_packet *p, const struct vnet_packet *next, size_t most);

/* The packet that an ICMP error complains about, as far as it is embedded. */
struct vnet_embedded {
	uint8_t proto;
	uint16_t l3, l4; /* offsets in the outer packet */
	struct vnet_endpoint src,
		dst; /* ports if proto is TCP or UDP; an echo's id in both ports */
};

/* -ENOENT if @p is not an ICMP error, -EBADMSG if what it has embedded can't be told apart. */
int vnet_packet_embedded(const struct vnet_packet *p, struct vnet_embedded *ret);

/*
 * Gives the embedded packet @e of @p other ends (ports of TCP and UDP only), adjusting its
 * checksums and the one of the ICMP message around it.  @e follows.
 */
void vnet_packet_set_embedded(struct vnet_packet *p, struct vnet_embedded *e,
	const struct vnet_endpoint *src, const struct vnet_endpoint *dst);

/* How many bytes of headers vnet_packet_make_udp puts in front of a payload: 28 or 48. */
size_t vnet_packet_udp_headers(uint8_t family);

/*
 * The makers below write a whole packet into p->data[0..p->room) and fill in *p, as if parsed.
 * -EMSGSIZE if it does not fit in the buffer or in an IP packet.  Both ends have the same family.
 */

/*
 * A UDP datagram, or with @gso_size > 0 a run of datagrams of that size (the last may be shorter).
 * Its checksum is partial.  @payload may be where it is going to be (data +
 * vnet_packet_udp_headers): then nothing is copied.
 */
int vnet_packet_make_udp(struct vnet_packet *p, const struct vnet_endpoint *src,
	const struct vnet_endpoint *dst, const void *payload, size_t len, uint16_t gso_size);

/*
 * An ICMP message; @rest is what is behind the checksum (id and number of an echo, an MTU ...), in
 * network order.
 */
struct vnet_icmp {
	uint8_t type, code;
	uint32_t rest;
};
int vnet_packet_make_icmp(struct vnet_packet *p, const struct vnet_endpoint *src,
	const struct vnet_endpoint *dst, const struct vnet_icmp *icmp, const void *payload,
	size_t len);

/*
 * The RST that answers the TCP segment @to as a closed port would (RFC 9293 3.10.7.1), as long as
 * @to is not one itself (-EINVAL).  @p may be @to.
 */
int vnet_packet_make_rst(struct vnet_packet *p, const struct vnet_packet *to);

/*
 * What the receiver of the TCP segment @to would answer had it no room (RFC 9293 3.8.6.1): all before
 * it has come, and the window is closed.  A segment that brings nothing is taken for a probe, which is
 * one number behind (3.8.4).  -EINVAL for a SYN, a RST, and one that acknowledges nothing.
 */
int vnet_packet_make_full(struct vnet_packet *p, const struct vnet_packet *to);

/*
 * An ICMP error of the packet's family about @to, from @from (NULL: from @to's destination), with
 * as much of @to embedded as RFC 1812 (576 bytes) and RFC 4443 (1280) want.  -EINVAL where none may
 * be sent: about an ICMP error, a fragment that is not the first, a multicast.  @p may be @to.
 */
int vnet_packet_make_icmp_error(struct vnet_packet *p, const struct vnet_packet *to,
	const struct vnet_endpoint *from, const struct vnet_icmp *icmp);

/* Turns an echo request into its reply, in place.  -EINVAL if it is none. */
int vnet_packet_make_echo_reply(struct vnet_packet *p);

/*
 * Cuts the payload of a TCP segment to @payload_len bytes at most; what is left is no super-packet,
 * and its checksum is partial.
 */
void vnet_packet_truncate(struct vnet_packet *p, size_t payload_len);

#endif
