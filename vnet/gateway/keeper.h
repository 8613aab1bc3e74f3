/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * keeper - the process that keeps a gateway's memory and descriptors while its worker comes and
 * goes.
 */
#ifndef VNET_GATEWAY_KEEPER_H
#define VNET_GATEWAY_KEEPER_H

struct err;
struct gateway_arena;

/*
 * Runs @work in child processes, one after the other, until one returns 0 by itself; each has the
 * same arena and, whatever happens to it, the same table of descriptors.  0, or 1 after SIGTERM and
 * when it makes no sense to start another one; then a->failure may say why.
 */
int gateway_keeper_run(struct gateway_arena *a, int (*work)(struct gateway_arena *a));

#endif
