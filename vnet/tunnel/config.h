/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * config - an ordinary WireGuard configuration file, as wg(8) and wg-quick(8) describe it.
 *
 *     [Interface]                              [Peer]
 *     PrivateKey = base64                      PublicKey = base64
 *     Address = 10.0.0.2/32, fd00::2/128       PresharedKey = base64
 *     DNS = 10.0.0.1                           AllowedIPs = 0.0.0.0/0, ::/0
 *     MTU = 1420                               Endpoint = host:51820
 *     ListenPort = 51820                       PersistentKeepalive = 25
 *
 * What is wrong is refused with the number of its line.  What wg-quick would have a root shell do
 * (PostUp, Table, FwMark and so on) is left out, and `left_out` says so: nothing here runs a
 * command.
 */
#ifndef VNET_TUNNEL_CONFIG_H
#define VNET_TUNNEL_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vnet/tunnel/crypto.h"

struct err;

#define VNET_CONFIG_FILE_MAX	  (256 << 10) /* bytes */
#define VNET_CONFIG_PEERS_MAX	  1024
#define VNET_CONFIG_PREFIXES_MAX  4096 /* of all peers together */
#define VNET_CONFIG_ADDRESSES_MAX 16   /* of the interface; as many servers for names */
#define VNET_CONFIG_HOST_MAX	  256  /* a name with its NUL */
#define VNET_CONFIG_SEARCH_MAX	  512  /* of those to search in, likewise */

/* Addresses of a family that begin with the same bits; the others are zero. */
struct vnet_prefix {
	int family; /* AF_INET, AF_INET6 */
	unsigned bits;
	uint8_t address[16];
};

struct vnet_config_peer {
	uint8_t public[VNET_KEY_LEN], preshared[VNET_KEY_LEN];
	struct vnet_prefix *allowed;
	size_t n_allowed;
	char host[VNET_CONFIG_HOST_MAX]; /* of the endpoint, not looked up; empty: it has none */
	uint16_t port;
	uint16_t keepalive; /* seconds; 0: none */
	bool has_key;
};

struct vnet_config {
	uint8_t private[VNET_KEY_LEN];
	struct vnet_prefix addresses[VNET_CONFIG_ADDRESSES_MAX]; /* with all their bits */
	size_t n_addresses;
	struct vnet_prefix dns[VNET_CONFIG_ADDRESSES_MAX];
	size_t n_dns;
	char search[VNET_CONFIG_SEARCH_MAX]; /* the names among them, with blanks between */
	unsigned mtu;	      /* 0: nothing said */
	uint16_t listen_port; /* 0: any */
	struct vnet_config_peer *peers;
	size_t n_peers;
	size_t n_prefixes;
	bool has_key;
	char left_out[64]; /* the first key that was; empty: none */
};

/* Reads @len bytes of @text; @name stands before errors.  *c is empty again on failure. */
int vnet_config_parse(
	struct vnet_config *c, const char *text, size_t len, const char *name, struct err *e);
/* The same of a file.  Logs a warning if others may read it, for it holds a private key. */
int vnet_config_load(struct vnet_config *c, const char *path, struct err *e);
/* Wipes and frees what it holds; it is empty then. */
void vnet_config_fini(struct vnet_config *c);

#endif
