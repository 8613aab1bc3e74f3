/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * wish - what a session asks of its gateway when it is attached, from its configuration.
 */
#ifndef SUPERVISOR_NETWORK_WISH_H
#define SUPERVISOR_NETWORK_WISH_H

#include <stdbool.h>

#include "vnet/vnet.h"

struct Pb__Config;
struct Pb__VirtualNetwork;
struct err;
struct session;

struct network_wish {
	struct vnet_attach attach;
	char id[33], replaces[33]; /* `attach` points here */
};

/* All but the claim, and whether it is frozen.  0, or a negative errno. */
int network_wish_make(const struct session *s, struct network_wish *ret, struct err *e);
/* A session's id in hexadecimal digits. */
void network_wish_id(const struct Pb__Config *c, char ret[33]);
/* Its gateway is, or was when it began, on its own host. */
bool network_wish_is_local(const struct Pb__VirtualNetwork *v);

#endif
