/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * host - what the session takes for the name of its host, and of its domain.  Private to rewrite/.
 *
 * uname(2) is made by the task itself, for the rest of what it says is the kernel's (personality(2)
 * changes some), and the two names are put over the host's when it returns.  To change them is for
 * a root inside, as in a uts namespace.
 */
#ifndef SUPERVISOR_REWRITE_HOST_H
#define SUPERVISOR_REWRITE_HOST_H

#include <sys/utsname.h>

struct world_config;
struct err;

#define HOST_NAME_LEN (sizeof(((struct utsname *)0)->nodename) - 1) /* __NEW_UTS_LEN */

struct host_names {
	char node[HOST_NAME_LEN + 1], domain[HOST_NAME_LEN + 1];
};

/* The names for @c: its host name, and the domain's of the host.  Refuses one that is too long. */
int host_names_begin(struct host_names *ret, const struct world_config *c, struct err *e);

#endif
