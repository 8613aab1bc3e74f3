// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in host.h. */
#include "supervisor/rewrite/host.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "supervisor/world/world_config.h"

int host_names_begin(struct host_names *ret, const struct world_config *c, struct err *e)
{
	const char *name = c->hostname ? c->hostname : c->name;
	struct utsname u;

	if (strlen(name) > HOST_NAME_LEN)
		return err_errno(e, -EINVAL, "cannot set host name '%s'", name);
	if (uname(&u) < 0)
		return err_errno(e, -errno, "uname");
	*ret = (struct host_names){0};
	snprintf(ret->node, sizeof(ret->node), "%s", name);
	snprintf(ret->domain, sizeof(ret->domain), "%s", u.domainname);
	return 0;
}
