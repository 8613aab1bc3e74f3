/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vnet - names for the network that outlive the host.  The room's public header.
 *
 * A session has addresses that never change.  They are those of one TUN interface in its network
 * namespace, and no other host or session knows them: the *gateway*, a process that stays where it
 * is while the session moves, reads that TUN, translates virtual addresses to physical ones of its
 * own (*VNAT*), and holds the outside halves of all connections as plain sockets of its host.
 *
 *      session                     gateway                                         outside
 *      app - kernel TCP - TUN ==== VNAT - TUN - kernel TCP - splice - sockets ---- servers, clients
 *      ^ moves, with its addresses  ^ stays
 *
 * What the layers are, from the bottom, each including only what is above it in this list:
 *
 *      checksum, endpoint   arithmetic, and addresses of both families
 *      packet               an IP packet: parsed once, rewritten in place, or made
 *      netlink, tun         interfaces, addresses, routes; packets in and out of the kernel
 *      reassemble           fragments back to datagrams
 *      vnat                 the translator: pure, in memory that survives its process
 *      capture              packets into a pcap file
 *      datagram/            UDP, ICMP echo and DNS, packet by packet
 *      tunnel/              carriers to another host: the WireGuard protocol, a byte stream
 *      rewrite, veth        the kernel's own way between a session and its gateway, for bulk
 *      veth_probe           whether that works here
 *      passthrough          an interface of the host's that a session has for a while
 *      nsupdate             messages that change a name in DNS (nsupdate_send: and who waits for that)
 *      message, ondemand    requests on the gateway's socket; its start by whoever needs it first
 *      direct, meeting      a tunnel beside a byte stream, for who has that already
 *      away                 requests and packets to a gateway on another host, over ssh
 *      forward              published ports of a session that was moved, for a while
 *      client               what the supervisor and the command line call
 *      gateway/             the process
 *
 * The supervisor makes the session's interface (vnet_tun_make, in the session's network namespace)
 * and hands its descriptor to the gateway, which alone reads and writes it.
 */
#ifndef VNET_VNET_H
#define VNET_VNET_H

#include "vnet/away.h"
#include "vnet/client.h"
#include "vnet/endpoint.h"
#include "vnet/forward.h"
#include "vnet/gateway/main.h"
#include "vnet/netlink.h"
#include "vnet/nsupdate.h"
#include "vnet/nsupdate_send.h"
#include "vnet/passthrough.h"
#include "vnet/search.h"
#include "vnet/tun.h"
#include "vnet/veth.h"
#include "vnet/veth_probe.h"

#endif
