/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dns_names - the names that the gateway knows itself, below podrun.internal:
 *
 *   host.podrun.internal     the host's loopback, where the session may reach it (the address
 *                            is the gateway's)
 *   gateway.podrun.internal  the gateway
 *   NAME.podrun.internal     another session of this gateway, and the asking one itself
 *
 * and the other way round, the names of these addresses.  No question below podrun.internal ever
 * leaves the host (.internal is reserved for such, ICANN 2024).
 */
#ifndef VNET_DATAGRAM_DNS_NAMES_H
#define VNET_DATAGRAM_DNS_NAMES_H

#include <stdint.h>

#include "vnet/datagram/dns_message.h"

struct vnet_datagram_sessions;

#define VNET_DNS_NAMES_MAX 2 /* records in one answer */

struct vnet_dns_names_answer {
	enum vnet_dns_rcode rcode;
	unsigned n;
	struct vnet_dns_record records[VNET_DNS_NAMES_MAX];
	char name[256]; /* what a PTR points to */
};

/*
 * Answers session @asking's question if it is about one of these names or addresses; false if it
 * is for others to answer.
 */
bool vnet_dns_names_answer(const struct vnet_datagram_sessions *sessions, void *data,
	uint32_t asking, const struct vnet_dns_question *q, struct vnet_dns_names_answer *ret);

#endif
