/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nsupdate - messages that change a name in DNS (RFC 2136), signed with a shared key (TSIG, RFC
 * 8945).
 */
#ifndef VNET_NSUPDATE_H
#define VNET_NSUPDATE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "vnet/endpoint.h"

struct err;

#define VNET_NSUPDATE_ROOM    2048 /* bytes; a message with two addresses is shorter */
#define VNET_NSUPDATE_TTL     60   /* seconds: whoever has looked it up before asks again soon */
#define VNET_NSUPDATE_KEY_MAX 128
#define VNET_NSUPDATE_TEXT    2048 /* bytes, of what vnet_nsupdate_parse takes */

/* ZONE/NAME@SERVER[:KEYFILE]; SERVER is an address, one of IPv6 in brackets. */
struct vnet_nsupdate {
	char zone[256], name[256]; /* whole names, without a dot at their end */
	struct vnet_endpoint server;
	char key_file[1024]; /* empty: not signed */
};

/* ERR_USAGE. */
int vnet_nsupdate_parse(const char *text, struct vnet_nsupdate *ret, struct err *e);

/* What tsig-keygen(8) writes: key "NAME" { algorithm hmac-sha256; secret "BASE64"; }; */
struct vnet_nsupdate_key {
	char name[256];
	uint8_t secret[VNET_NSUPDATE_KEY_MAX];
	size_t len;
};

/* ERR_USAGE for a file that is none, or with an algorithm other than hmac-sha256. */
int vnet_nsupdate_key_load(const char *path, struct vnet_nsupdate_key *ret, struct err *e);

/*
 * VNET_NSUPDATE_HAS: the name has these addresses from now on, and no others.
 * VNET_NSUPDATE_LEAVES: it has them no more; those that somebody else has given it stay.
 */
enum vnet_nsupdate_change { VNET_NSUPDATE_HAS, VNET_NSUPDATE_LEAVES };
/*
 * A message with that change, of @n @addresses.  @key NULL: not signed.  @unix_s: seconds since
 * 1970. The length of what is in @out, or -ENOSPC.
 */
ssize_t vnet_nsupdate_make(const struct vnet_nsupdate *u, enum vnet_nsupdate_change change,
	const struct vnet_nsupdate_key *key, uint16_t id, uint64_t unix_s,
	const struct vnet_endpoint *addresses, size_t n, uint8_t *out, size_t room);

/*
 * What a server says to the message with @id: its rcode, 0 for done; -EBADMSG if it is no answer.
 */
int vnet_nsupdate_answer(const uint8_t *message, size_t len, uint16_t id);
/* "REFUSED", ...; an rcode. */
const char *vnet_nsupdate_rcode(int rcode);

#endif
