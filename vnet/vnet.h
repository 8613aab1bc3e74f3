/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vnet - names for the network that outlive the host.  The room's public header.
 */
#ifndef VNET_VNET_H
#define VNET_VNET_H

#include "vnet/client.h"
#include "vnet/gateway/main.h"

#endif
