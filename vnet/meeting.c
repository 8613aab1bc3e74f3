// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/meeting.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/gateway.pb-c.h"

void vnet_meeting_address(bool own, char ret[INET6_ADDRSTRLEN])
{
	char client[INET6_ADDRSTRLEN], server[INET6_ADDRSTRLEN];
	const char *line = getenv("SSH_CONNECTION");

	ret[0] = '\0';
	if (line && sscanf(line, "%45s %*u %45s %*u", client, server) == 2)
		strcpy(ret, own ? server : client);
}

static bool is_another(const char *address)
{
	struct in6_addr six;
	struct in_addr four;
	uint32_t n;

	if (inet_pton(AF_INET, address, &four) == 1) {
		n = ntohl(four.s_addr);
		return n && n >> 24 != IN_LOOPBACKNET && !IN_MULTICAST(n) && n != INADDR_BROADCAST;
	}
	return inet_pton(AF_INET6, address, &six) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&six) &&
	       !IN6_IS_ADDR_LOOPBACK(&six) && !IN6_IS_ADDR_MULTICAST(&six) &&
	       !IN6_IS_ADDR_V4MAPPED(&six);
}

int vnet_meeting_put(Pb__GatewayTunnel *m, const struct vnet_direct_end *end)
{
	uint8_t *key = malloc(sizeof(end->key));
	char *address = strdup(end->address);

	if (!key || !address) {
		free(key);
		free(address);
		return -ENOMEM;
	}
	memcpy(key, end->key, sizeof(end->key));
	free(m->key.data);
	m->key = (ProtobufCBinaryData){sizeof(end->key), key};
	if (m->address != protobuf_c_empty_string)
		free(m->address);
	m->address = address;
	m->port = end->port;
	return 0;
}

int vnet_meeting_take(struct vnet_direct_end *ret, const Pb__GatewayTunnel *m)
{
	if (m->key.len != sizeof(ret->key) || !m->port || m->port > UINT16_MAX ||
		strlen(m->address) >= sizeof(ret->address))
		return -EBADMSG;
	*ret = (struct vnet_direct_end){.port = (uint16_t)m->port};
	memcpy(ret->key, m->key.data, sizeof(ret->key));
	if (is_another(m->address))
		strcpy(ret->address, m->address);
	return 0;
}
