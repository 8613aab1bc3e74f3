/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * dns_message - as much of the DNS message format (RFC 1035, RFC 6891) as a forwarder needs: the
 * one question of a query, whether an answer belongs to it, and small answers of our own.
 *
 * Messages come from sessions and from the outside and may be anything; whatever is not understood
 * of an answer (its records) is passed on without being looked at.
 */
#ifndef VNET_DATAGRAM_DNS_MESSAGE_H
#define VNET_DATAGRAM_DNS_MESSAGE_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VNET_DNS_PORT	 53
#define VNET_DNS_HEADER	 12
#define VNET_DNS_PLAIN	 512   /* the longest answer without EDNS, bytes */
#define VNET_DNS_MESSAGE 65535 /* the longest there is, by TCP */

/* RFC 1035 3.2.2, RFC 3596, RFC 6891. */
enum vnet_dns_type {
	VNET_DNS_A = 1,
	VNET_DNS_SOA = 6,
	VNET_DNS_PTR = 12,
	VNET_DNS_AAAA = 28,
	VNET_DNS_OPT = 41,
	VNET_DNS_ANY = 255,
};

enum vnet_dns_rcode {
	VNET_DNS_NOERROR = 0,
	VNET_DNS_FORMERR = 1,
	VNET_DNS_SERVFAIL = 2,
	VNET_DNS_NXDOMAIN = 3,
	VNET_DNS_NOTIMP = 4,
	VNET_DNS_REFUSED = 5,
};

struct vnet_dns_question {
	uint16_t id;
	uint8_t opcode, rcode;
	bool response, truncated;
	uint16_t type, class;
	/*
	 * Lower case, labels with dots between and none at the end; "" for the root, and for a name
	 * with anything but letters, digits, '-' and '_' in it, which is none that we answer for.
	 */
	char name[256];
	size_t end;	   /* where the question ends; VNET_DNS_HEADER if there is none */
	bool edns;	   /* the sender has an OPT record */
	uint16_t udp_size; /* the longest UDP answer the sender takes, >= VNET_DNS_PLAIN */
};

struct vnet_dns_record {
	uint16_t type; /* VNET_DNS_A, _AAAA, _PTR */
	uint32_t ttl;  /* seconds */
	union {
		struct in_addr v4;
		struct in6_addr v6;
		const char *name; /* as above, borrowed */
	};
};

/*
 * Reads header and question.  -EBADMSG for what is no message, has more than one question or, as a
 * query, not exactly one, or a compressed name where nothing can have come before.
 */
int vnet_dns_parse(const void *msg, size_t len, struct vnet_dns_question *ret);

/* Of a message's first two bytes; @msg is at least VNET_DNS_HEADER long. */
void vnet_dns_set_id(void *msg, uint16_t id);

/*
 * Whether @answer (@len bytes) is one to @query: of the same question, or without one and with an
 * error.  The id in both must be the same.
 */
bool vnet_dns_answers(const void *query, size_t query_len, const void *answer, size_t len);

/*
 * Writes an answer to a parsed query into @out: the question and, where @rcode is 0, @n records
 * of its name. A record that does not fit into @room sets the truncated bit.  Returns the length,
 * or 0 if not even the question fits.  @authoritative says whose answer it is (RFC 1035 4.1.1).
 */
size_t vnet_dns_reply(const void *query, const struct vnet_dns_question *q,
	enum vnet_dns_rcode rcode, bool authoritative, const struct vnet_dns_record *records,
	size_t n, void *out, size_t room);

/*
 * Cuts an answer behind its question, in place, and sets the truncated bit.  Returns its length
 * then.
 */
size_t vnet_dns_truncate(void *answer, size_t len);

/* The name of an address below in-addr.arpa or ip6.arpa.  @name has room for 80 bytes. */
void vnet_dns_reverse_name(int family, const void *address, char *name);

#endif
