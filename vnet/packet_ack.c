// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Acknowledgements that say nothing else, and what makes them needless.
 */
#include <arpa/inet.h>
#include <string.h>

#include "base/base.h"
#include "vnet/packet.h"

/*
 * Of the 16 bits with the header's length and the flags: all but the length, and of those the one
 * that may be set.
 */
#define FLAGS	 0x0fffu
#define FLAG_FIN 0x0001u
#define FLAG_PSH 0x0008u
#define FLAG_ACK 0x0010u

static uint16_t flags_of(const struct vnet_packet *p)
{
	uint16_t word;

	memcpy(&word, p->data + p->l4 + 12, sizeof(word));
	return ntohs(word) & FLAGS;
}

bool vnet_packet_has_stamps(const struct tcphdr *tcp)
{
	static const uint8_t stamps[] = {1, 1, 8, 10};

	return tcp->doff >= 8 && !memcmp(tcp + 1, stamps, sizeof(stamps));
}

bool vnet_packet_is_ack(const struct vnet_packet *p)
{
	const struct tcphdr *tcp = vnet_packet_tcp(p);

	return tcp && !p->fragment && !p->payload_len && flags_of(p) == FLAG_ACK &&
	       (tcp->doff == 5 || (tcp->doff == 8 && vnet_packet_has_stamps(tcp)));
}

/* And nothing of congestion (ECN), which counts what it acknowledges. */
static bool says_how_far(const struct vnet_packet *p)
{
	return (flags_of(p) & ~(FLAG_FIN | FLAG_PSH)) == FLAG_ACK;
}

static bool says_more(const struct vnet_packet *p)
{
	return p->payload_len || flags_of(p) & FLAG_FIN;
}

bool vnet_packet_ack_covers(const struct vnet_packet *later, const struct vnet_packet *earlier)
{
	const struct tcphdr *a = vnet_packet_tcp(later), *b = vnet_packet_tcp(earlier);
	int32_t more = a ? (int32_t)(ntohl(a->ack_seq) - ntohl(b->ack_seq)) : -1;

	if (!a || later->fragment)
		return false;
	/*
	 * The same again is news, of something that is missing; but not with a larger window, nor
	 * with data or an end, which nobody counts (RFC 5681, 2).
	 */
	return a->seq == b->seq && a->doff == b->doff && says_how_far(later) &&
	       (more > 0 || (more == 0 && ntohs(a->window) + says_more(later) > ntohs(b->window))) &&
	       vnet_endpoint_equal(&later->src, &earlier->src) &&
	       vnet_endpoint_equal(&later->dst, &earlier->dst);
}
