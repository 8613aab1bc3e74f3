/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ondemand - the gateway's socket, and the process behind it, which is started by whoever needs it
 * first.
 */
#ifndef VNET_ONDEMAND_H
#define VNET_ONDEMAND_H

#include <stdbool.h>

struct err;

/* What a gateway process finds: its listening socket, and its directory. */
#define VNET_ONDEMAND_LISTENER	3
#define VNET_ONDEMAND_DIRECTORY 4

/*
 * A connected socket (close-on-exec, SOCK_SEQPACKET), or a negative errno: -ENOENT without a
 * gateway and @start, -EAGAIN if it has more clients waiting than it takes.
 */
int vnet_ondemand_connect(const char *runtime, bool start, struct err *e);

/* The gateway's directory below @runtime, made if there is none; a descriptor (close-on-exec). */
int vnet_ondemand_directory(const char *runtime, struct err *e);

/*
 * Of the gateway: the socket is at its name no more, and nobody has connected that is not accepted
 * yet: true, and the process may end.  False: somebody has (it is in the listener's queue), and
 * everything is as before.
 */
bool vnet_ondemand_retire(int directory, int listener);

#endif
