/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * resolv - the name servers of this host, as resolv.conf(5) says at the moment.
 *
 * The file is what changes when a laptop moves from one network to the next or a VPN comes up, so
 * it is looked at again before every use: one stat(2), and it is read only when that says it is
 * another one.
 */
#ifndef VNET_DATAGRAM_RESOLV_H
#define VNET_DATAGRAM_RESOLV_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define VNET_RESOLV_SERVERS 8 /* glibc takes three */

union vnet_resolv_server {
	struct sockaddr sa;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct vnet_resolv {
	const char *path; /* borrowed; NULL is /etc/resolv.conf */
	struct stat seen;
	bool known; /* it has been read, or was not there */
	unsigned n;
	union vnet_resolv_server servers[VNET_RESOLV_SERVERS];
};

/*
 * Brings @r up to date.  Returns 1 if servers may have changed, else 0.  There is always one
 * server: where the file names none, or is not there, it is 127.0.0.1 as for resolv.conf(5). 
 * While it can't be read those known stay.
 */
int vnet_resolv_refresh(struct vnet_resolv *r);

/*
 * The same of a text of @len bytes; `n` may be 0 then.  Ports are 53 unless written
 * "[ADDRESS]:PORT".
 */
void vnet_resolv_parse(struct vnet_resolv *r, const char *text, size_t len);

/*
 * Appends @word to the domains in @list of @size bytes, with a blank between, if it is one and there
 * is room.
 */
void vnet_resolv_add_domain(const char *word, char *list, size_t size);
/* The domains in which a text of @len bytes has names looked for: the last "search" or "domain". */
void vnet_resolv_search(const char *text, size_t len, char *ret, size_t size);

/* The length of the address for connect(2). */
socklen_t vnet_resolv_server_len(const union vnet_resolv_server *s);

#endif
