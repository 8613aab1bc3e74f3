// SPDX-License-Identifier: GPL-2.0-or-later
/* Any bytes as a WireGuard configuration file; what is taken must be within its bounds. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/base.h"
#include "tests/fuzz/fuzz.h"
#include "vnet/tunnel/config.h"

static void check(const struct vnet_prefix *p)
{
	if ((p->family != AF_INET && p->family != AF_INET6) || p->bits > 128 ||
		(p->family == AF_INET && p->bits > 32))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vnet_config c;
	struct err e = {0};

	if (vnet_config_parse(&c, (const char *)data, size, "input", &e) < 0) {
		if (!e.msg[0] || c.peers)
			abort();
		return 0;
	}
	for (size_t i = 0; i < c.n_addresses; i++)
		check(&c.addresses[i]);
	for (size_t i = 0; i < c.n_dns; i++)
		check(&c.dns[i]);
	for (size_t i = 0; i < c.n_peers; i++) {
		if (!memchr(c.peers[i].host, '\0', sizeof(c.peers[i].host)))
			abort();
		for (size_t k = 0; k < c.peers[i].n_allowed; k++)
			check(&c.peers[i].allowed[k]);
	}
	vnet_config_fini(&c);
	return 0;
}
