/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * run_net - the options of `podrun run` that are about the session's network, and what they mean.
 */
#ifndef SUPERVISOR_CLI_RUN_NET_H
#define SUPERVISOR_CLI_RUN_NET_H

#include "supervisor/cli/cli.h"

struct Pb__Config;

/* As they were given; NULL, or an empty list, where nothing was said. */
struct run_net {
	const char *net, *gateway, *host_loopback, *dns_update, *on_move, *carrier;
	bool link_local;
	struct cli_list publish, address;
};

/* The network that is meant: what was said, vnat where something else needs one, or none. */
const char *run_net_of(const struct run_net *o);

/*
 * Fills @c->net, and @c->network if that is vnat: what only a virtual network has asks for one.
 * Strings are borrowed or live as long as the process.  ERR_USAGE with @e.
 */
int run_net_fill(const struct run_net *o, struct Pb__Config *c, struct err *e);

/*
 * "[IP:]HOST:SESSION[/udp]", an IPv6 address in brackets.  @ret's address is a fresh string.
 * ERR_USAGE with @e.
 */
struct Pb__PublishedPort;
int run_net_parse_publish(const char *text, struct Pb__PublishedPort *ret, struct err *e);

#endif
