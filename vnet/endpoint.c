// SPDX-License-Identifier: GPL-2.0-or-later
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

#include "vnet/endpoint.h"

/* Both halves of the 128-bit product: each bit of the input reaches each bit of the result. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t vnet_endpoint_hash(const struct vnet_endpoint *ep, uint64_t seed)
{
	uint64_t word[2] = {0, 0};

	if (ep->family == AF_INET)
		word[0] = ep->v4.s_addr;
	else
		memcpy(word, &ep->v6, sizeof(word));
	/* The constants only have to be odd, large and not alike. */
	return mix(mix(word[0] ^ seed, 0x9e3779b97f4a7c15u ^ word[1]) ^ ep->port,
		0xd1b54a32d192ed03u ^ seed);
}

socklen_t vnet_endpoint_to_sockaddr(const struct vnet_endpoint *ep, struct sockaddr_storage *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (ep->family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)ret;

		in->sin_family = AF_INET;
		in->sin_port = htons(ep->port);
		in->sin_addr = ep->v4;
		return sizeof(*in);
	}
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(ep->port);
	in6->sin6_addr = ep->v6;
	return sizeof(*in6);
}

int vnet_endpoint_from_sockaddr(
	const struct sockaddr_storage *sa, socklen_t len, struct vnet_endpoint *ret)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)sa;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)sa;
	struct in_addr mapped;

	if (len < sizeof(sa->ss_family))
		return -EINVAL;
	switch (sa->ss_family) {
	case AF_INET:
		if (len < sizeof(*in))
			return -EINVAL;
		*ret = vnet_endpoint_v4(in->sin_addr, ntohs(in->sin_port));
		return 0;
	case AF_INET6:
		if (len < sizeof(*in6))
			return -EINVAL;
		if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
			memcpy(&mapped, in6->sin6_addr.s6_addr + 12, sizeof(mapped));
			*ret = vnet_endpoint_v4(mapped, ntohs(in6->sin6_port));
		} else {
			*ret = vnet_endpoint_v6(&in6->sin6_addr, ntohs(in6->sin6_port));
		}
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

const char *vnet_endpoint_format(const struct vnet_endpoint *ep, char text[VNET_ENDPOINT_TEXT])
{
	char address[INET6_ADDRSTRLEN] = "none";

	if (ep->family)
		inet_ntop(ep->family, &ep->v6, address, sizeof(address));
	if (!ep->port)
		snprintf(text, VNET_ENDPOINT_TEXT, "%s", address);
	else if (ep->family == AF_INET6)
		snprintf(text, VNET_ENDPOINT_TEXT, "[%s]:%u", address, ep->port);
	else
		snprintf(text, VNET_ENDPOINT_TEXT, "%s:%u", address, ep->port);
	return text;
}

bool vnet_endpoint_is_loopback(const struct vnet_endpoint *ep)
{
	if (ep->family == AF_INET)
		return ntohl(ep->v4.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(&ep->v6);
}

bool vnet_endpoint_is_of_host(const struct vnet_endpoint *ep)
{
	/* 168.63.129.16, 100.100.100.200, 192.0.0.192; fd00:ec2::254, fd20:ce::254 */
	static const uint32_t services4[] = {0xa83f8110, 0x646464c8, 0xc00000c0};
	static const struct in6_addr services6[] = {
		{{{0xfd, 0, 0x0e, 0xc2, [14] = 0x02, 0x54}}},
		{{{0xfd, 0x20, 0, 0xce, [14] = 0x02, 0x54}}},
	};
	const uint32_t host = ntohl(ep->v4.s_addr);
	bool is = false;

	if (ep->family == AF_INET) {
		is = host >> 16 == 0xa9fe;
		for (size_t i = 0; i < sizeof(services4) / sizeof(*services4); i++)
			is |= host == services4[i];
		return is;
	}
	for (size_t i = 0; i < sizeof(services6) / sizeof(*services6); i++)
		is |= !memcmp(&ep->v6, &services6[i], sizeof(ep->v6));
	return is || IN6_IS_ADDR_LINKLOCAL(&ep->v6);
}

bool vnet_endpoint_is_unicast(const struct vnet_endpoint *ep)
{
	if (ep->family == AF_INET) {
		uint32_t host = ntohl(ep->v4.s_addr);

		/*
		 * 0.0.0.0/8 is "this network"; 224/4 multicast; 240/4 reserved, with the broadcast.
		 */
		return host >> 24 != 0 && host < 0xe0000000u;
	}
	return ep->family == AF_INET6 && !IN6_IS_ADDR_MULTICAST(&ep->v6) &&
	       !IN6_IS_ADDR_UNSPECIFIED(&ep->v6);
}
