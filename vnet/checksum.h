/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * checksum - the Internet checksum (RFC 1071) and its changes (RFC 1624).
 *
 * The checksum is the complement of a one's complement sum of 16-bit words.  Two properties make a
 * translator cheap: the sum does not care in which byte order the words are added, so nothing
 * is swapped here; and it is a sum, so a changed address is a *difference* which is added to the
 * checksum that is there, without a look at the payload.
 *
 *     sum       uint64_t, words added as they lie in memory, carries not yet folded
 *     folded    uint16_t, the sum with its carries added at the lower end
 *     checksum  uint16_t, its complement: what is in a header
 *
 * A *partial* checksum (virtio's NEEDS_CSUM, the kernel's CHECKSUM_PARTIAL) is a field that holds
 * the folded sum of the pseudo-header, not complemented: whoever sends the packet on a wire adds
 * the rest.  Between two TUNs of one host nobody ever does.
 */
#ifndef VNET_CHECKSUM_H
#define VNET_CHECKSUM_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

/* Adds @len bytes to @sum; an odd last byte is padded with a zero behind it.  Any alignment. */
uint64_t vnet_checksum_add(uint64_t sum, const void *data, size_t len);

/* The sum with all carries added. */
static inline uint16_t vnet_checksum_fold(uint64_t sum)
{
	sum = (sum & 0xffffffffu) + (sum >> 32);
	sum = (sum & 0xffffffffu) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

/* What turns @old into @new, both @len bytes (even): to be added to a sum which holds @old. */
uint64_t vnet_checksum_difference(const void *old, const void *new, size_t len);

/* The checksum @field of a header after a change by @difference. */
static inline uint16_t vnet_checksum_adjust(uint16_t field, uint64_t difference)
{
	return (uint16_t)~vnet_checksum_fold((uint16_t)~field + difference);
}

/*
 * The sum of a pseudo-header (RFC 9293 3.1, RFC 8200 8.1): @len bytes of transport header and
 * payload.
 */
uint64_t vnet_checksum_pseudo_v4(struct in_addr src, struct in_addr dst, uint8_t proto, size_t len);
uint64_t vnet_checksum_pseudo_v6(
	const struct in6_addr *src, const struct in6_addr *dst, uint8_t proto, size_t len);

#endif
