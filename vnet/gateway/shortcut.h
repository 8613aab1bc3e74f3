/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * shortcut - connections from one session to another whose packets the kernel carries.
 */
#ifndef VNET_GATEWAY_SHORTCUT_H
#define VNET_GATEWAY_SHORTCUT_H

#include <stdint.h>

struct err;
struct vnet_gateway;
struct vnet_packet;

int gateway_shortcut_start(struct vnet_gateway *g, struct err *e);
/*
 * A packet of TCP, as session @from has sent it, is on its way to session @to: a connection with
 * many of them is to be fast.
 */
void gateway_shortcut_count(
	struct vnet_gateway *g, uint32_t from, uint32_t to, const struct vnet_packet *p);

#endif
