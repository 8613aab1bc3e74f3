// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <string.h>

#include "vnet/checksum.h"

uint64_t vnet_checksum_add(uint64_t sum, const void *data, size_t len)
{
	const uint8_t *p = data;
	uint32_t word;
	uint16_t last = 0;

	/* 32-bit words into 64 bits: 2^32 of them before a carry is lost. */
	for (; len >= 16; p += 16, len -= 16) {
		uint32_t words[4];

		memcpy(words, p, 16);
		sum += (uint64_t)words[0] + words[1] + words[2] + words[3];
	}
	for (; len >= 4; p += 4, len -= 4) {
		memcpy(&word, p, 4);
		sum += word;
	}
	if (len >= 2) {
		memcpy(&last, p, 2);
		sum += last;
		p += 2;
		len -= 2;
		last = 0;
	}
	if (len) {
		memcpy(&last, p, 1);
		sum += last;
	}
	return sum;
}

uint64_t vnet_checksum_difference(const void *old, const void *new, size_t len)
{
	uint16_t gone = (uint16_t)~vnet_checksum_fold(vnet_checksum_add(0, old, len));

	return vnet_checksum_add(gone, new, len);
}

uint64_t vnet_checksum_pseudo_v4(struct in_addr src, struct in_addr dst, uint8_t proto, size_t len)
{
	return (uint64_t)src.s_addr + dst.s_addr + htons(proto) + htons((uint16_t)len);
}

uint64_t vnet_checksum_pseudo_v6(
	const struct in6_addr *src, const struct in6_addr *dst, uint8_t proto, size_t len)
{
	uint64_t sum = vnet_checksum_add(0, src, sizeof(*src));

	return vnet_checksum_add(sum, dst, sizeof(*dst)) + htonl((uint32_t)len) +
	       (uint64_t)htonl(proto);
}
