/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * control - the gateway's clients: connections, requests and answers.
 */
#ifndef VNET_GATEWAY_CONTROL_H
#define VNET_GATEWAY_CONTROL_H

#include <stdbool.h>

struct err;
struct vnet_gateway;

int gateway_control_start(struct vnet_gateway *g, struct err *e);
/* A descriptor that nobody holds: taken if it is a client's connection. */
bool gateway_control_adopt(struct vnet_gateway *g, int fd);

#endif
