// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/search.h"

#include <assert.h>
#include <fcntl.h>
#include <string.h>

#include "base/base.h"
#include "vnet/datagram/resolv.h"
#include "vnet/tunnel/config.h"

#define MAX_FILE 65536
#define SCHEME	 "wg:"

static_assert(VNET_SEARCH_MAX == VNET_CONFIG_SEARCH_MAX, "what is copied");

/* False: it says nothing of names, and the host's servers are asked. */
static bool take_from_file(const char *path, char ret[VNET_SEARCH_MAX])
{
	struct vnet_config c;
	struct err e = {0};
	bool says;

	if (vnet_config_load(&c, path, &e) < 0)
		return true;
	says = c.n_dns || c.search[0];
	memcpy(ret, c.search, sizeof(c.search));
	vnet_config_fini(&c);
	return says;
}

void vnet_search(const char *gateway, char ret[VNET_SEARCH_MAX])
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	bool tunnel = strncmp(gateway, SCHEME, strlen(SCHEME)) == 0;

	ret[0] = '\0';
	if (!tunnel && gateway[0] && strcmp(gateway, "local") != 0)
		return;
	if (tunnel && take_from_file(gateway + strlen(SCHEME), ret))
		return;
	if (io_read_file(AT_FDCWD, "/etc/resolv.conf", MAX_FILE, &b) == 0)
		vnet_resolv_search((const char *)b.data, b.len, ret, VNET_SEARCH_MAX);
}
