/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dynamic - names in DNS that follow a session: `--dns-update`.
 */
#ifndef VNET_GATEWAY_DYNAMIC_H
#define VNET_GATEWAY_DYNAMIC_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

struct err;
struct vnet_gateway;

/* Before sessions are taken up. */
int gateway_dynamic_start(struct vnet_gateway *g, struct err *e);
/*
 * The session's ports are here from now on: whom its record names (`dns_update`, if anything) is
 * told.  Nobody waits for that.
 */
void gateway_dynamic_tell(struct vnet_gateway *g, uint32_t session);
/* The host's own addresses towards the internet; zeros where there is none. */
void gateway_dynamic_own(struct in_addr *ret4, struct in6_addr *ret6);
/* It is somewhere else, or away: nobody is told of it any more. */
void gateway_dynamic_stop(struct vnet_gateway *g, uint32_t session);
/* There is another one in its place, or none. */
void gateway_dynamic_forget(struct vnet_gateway *g, uint32_t session);
/* It has ended: its name is not to point here any more. */
void gateway_dynamic_leave(struct vnet_gateway *g, uint32_t session);
/* Is somebody still being told of one that has ended? */
bool gateway_dynamic_any(const struct vnet_gateway *g);

#endif
