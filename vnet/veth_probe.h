/* SPDX-License-Identifier: GPL-2.0-or-later */
/* veth_probe - can the kernel carry connections between a session and its gateway (vnet/veth.h)? */
#ifndef VNET_VETH_PROBE_H
#define VNET_VETH_PROBE_H

struct err;

/*
 * Makes a pair, tables, rules and routes as both sides make them.  0, or what the first error was.
 * The caller is in a network namespace that is empty, and goes into another one: a process that
 * does nothing else.  It has the rights there, as root of a user namespace of its own has.
 */
int vnet_veth_probe(struct err *e);

#endif
