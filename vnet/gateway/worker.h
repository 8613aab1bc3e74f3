/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * worker - the process that does a gateway's work, from whatever the one before it has left.
 */
#ifndef VNET_GATEWAY_WORKER_H
#define VNET_GATEWAY_WORKER_H

struct gateway_arena;

/*
 * Until nobody needs a gateway any more: 0.  Anything else is a failure, and another worker's turn.
 */
int gateway_worker_run(struct gateway_arena *a);

#endif
