/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * main - the gateway process begins here.
 */
#ifndef VNET_GATEWAY_MAIN_H
#define VNET_GATEWAY_MAIN_H

#include <stdbool.h>

/* `podrun gateway --serve`, as vnet/ondemand.c starts it.  Returns the exit code. */
int vnet_gateway_main(void);

/* Was the process started so?  It has what it listens on then. */
bool vnet_gateway_called(void);

#endif
