/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * endpoint - an IPv4 or IPv6 address with a port: one end of a flow, whatever its family.
 *
 * Every place that would otherwise have the two families twice (struct sockaddr_in, _in6) takes one
 * of these.  Addresses are in network order, as everywhere; the port is in host order, so that it
 * can be printed, compared and counted.
 */
#ifndef VNET_ENDPOINT_H
#define VNET_ENDPOINT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

struct vnet_endpoint {
	uint8_t family; /* AF_INET, AF_INET6, or 0: none */
	uint16_t port;	/* host order; 0 where there is none */
	union {
		struct in_addr v4;
		struct in6_addr v6;
	};
};

/* "[fd7a:706f:6472::2]:65535" and a NUL, with room to spare. */
#define VNET_ENDPOINT_TEXT 64

static inline struct vnet_endpoint vnet_endpoint_v4(struct in_addr address, uint16_t port)
{
	return (struct vnet_endpoint){.family = AF_INET, .port = port, .v4 = address};
}

static inline struct vnet_endpoint vnet_endpoint_v6(const struct in6_addr *address, uint16_t port)
{
	return (struct vnet_endpoint){.family = AF_INET6, .port = port, .v6 = *address};
}

/* Is it the same address, whatever the port? */
static inline bool vnet_endpoint_same_address(
	const struct vnet_endpoint *a, const struct vnet_endpoint *b)
{
	if (a->family != b->family)
		return false;
	if (a->family == AF_INET)
		return a->v4.s_addr == b->v4.s_addr;
	return memcmp(&a->v6, &b->v6, sizeof(a->v6)) == 0;
}

static inline bool vnet_endpoint_equal(const struct vnet_endpoint *a, const struct vnet_endpoint *b)
{
	return a->port == b->port && vnet_endpoint_same_address(a, b);
}

/* A number for hash tables from address and port, mixed with @seed. */
uint64_t vnet_endpoint_hash(const struct vnet_endpoint *ep, uint64_t seed);

/* For bind, connect and sendto.  Returns the length of *ret. */
socklen_t vnet_endpoint_to_sockaddr(const struct vnet_endpoint *ep, struct sockaddr_storage *ret);

/*
 * From accept, getsockname or recvfrom; IPv4 in IPv6 ("::ffff:10.0.0.1") becomes IPv4.
 * -EAFNOSUPPORT for other families, -EINVAL if @len is too short.
 */
int vnet_endpoint_from_sockaddr(
	const struct sockaddr_storage *sa, socklen_t len, struct vnet_endpoint *ret);

/* "10.171.0.2:80", "[::1]:80", "10.171.0.2" if the port is 0.  Returns @text. */
const char *vnet_endpoint_format(const struct vnet_endpoint *ep, char text[VNET_ENDPOINT_TEXT]);

/* Loopback: 127.0.0.0/8, ::1. */
bool vnet_endpoint_is_loopback(const struct vnet_endpoint *ep);

/*
 * Of one host or link alone: link-local (RFC 3927, fe80::/10), and where clouds tell a machine who
 * it is, with its credentials: Amazon, Google, Azure, Alibaba, Oracle.
 */
bool vnet_endpoint_is_of_host(const struct vnet_endpoint *ep);

/* Multicast, IPv4 broadcast, unspecified: nobody has a connection with them. */
bool vnet_endpoint_is_unicast(const struct vnet_endpoint *ep);

#endif
