// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One table of keys per section.  A row's function gets the value, trimmed and not empty, and
 * returns NULL or what is wrong with it.
 */
#include "vnet/tunnel/config.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/base.h"
#include "vnet/datagram/resolv.h"

#define VALUE_MAX 4096 /* the longest line */

typedef const char *take_fn(struct vnet_config *c, const char *value);

struct key {
	const char *name;
	take_fn *take; /* NULL: left out */
};

static const char no_memory[] = "out of memory";

static struct vnet_config_peer *peer(struct vnet_config *c)
{
	return &c->peers[c->n_peers - 1];
}

/* Exactly what `wg genkey` writes: 44 characters, of which the last is '='. */
static const char *take_base64(const char *value, uint8_t ret[VNET_KEY_LEN])
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t word = 0;
	size_t n = 0;

	if (strlen(value) != 44 || value[43] != '=')
		return "is not a key of 44 characters (base64)";
	for (size_t i = 0; i < 43; i++) {
		const char *at = strchr(alphabet, value[i]);

		if (!at)
			return "is not a key of 44 characters (base64)";
		word = word << 6 | (uint32_t)(at - alphabet);
		if (i % 4 == 3)
			for (int b = 16; b >= 0; b -= 8)
				ret[n++] = (uint8_t)(word >> b);
	}
	if (word & 3)
		return "is not a key of 44 characters (base64)";
	ret[n++] = (uint8_t)(word >> 10);
	ret[n++] = (uint8_t)(word >> 2);
	return NULL;
}

static bool take_number(const char *value, unsigned max, unsigned *ret)
{
	unsigned n = 0;

	if (!*value)
		return false;
	for (; *value; value++) {
		if (*value < '0' || *value > '9')
			return false;
		n = n * 10 + (unsigned)(*value - '0');
		if (n > max)
			return false;
	}
	*ret = n;
	return true;
}

static bool take_prefix(const char *text, struct vnet_prefix *ret)
{
	char address[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);

	if (n >= sizeof(address))
		return false;
	memcpy(address, text, n);
	address[n] = '\0';
	*ret = (struct vnet_prefix){.family = strchr(address, ':') ? AF_INET6 : AF_INET};
	if (inet_pton(ret->family, address, ret->address) != 1)
		return false;
	ret->bits = ret->family == AF_INET ? 32 : 128;
	return !slash || take_number(slash + 1, ret->bits, &ret->bits);
}

static void mask(struct vnet_prefix *p)
{
	for (unsigned i = 0; i < sizeof(p->address); i++) {
		unsigned keep = p->bits > i * 8 ? MIN(p->bits - i * 8, 8u) : 0;

		p->address[i] &= (uint8_t)(0xff00 >> keep);
	}
}

/* The next of a list with commas, trimmed, in @ret; false at its end. */
static bool next_item(const char **list, char ret[VALUE_MAX])
{
	size_t n;

	if (!*list)
		return false;
	*list += strspn(*list, " \t");
	n = strcspn(*list, ",");
	memcpy(ret, *list, n);
	*list = (*list)[n] ? *list + n + 1 : NULL;
	while (n && (ret[n - 1] == ' ' || ret[n - 1] == '\t'))
		n--;
	ret[n] = '\0';
	return true;
}

static const char *take_private(struct vnet_config *c, const char *value)
{
	if (c->has_key)
		return "is there twice";
	c->has_key = true;
	return take_base64(value, c->private);
}

static const char *take_address(struct vnet_config *c, const char *value)
{
	char item[VALUE_MAX];

	while (next_item(&value, item)) {
		if (c->n_addresses == VNET_CONFIG_ADDRESSES_MAX)
			return "has more than 16 addresses";
		if (!take_prefix(item, &c->addresses[c->n_addresses]))
			return "is not a list of addresses with prefixes";
		c->n_addresses++;
	}
	return NULL;
}

/* Domains to search may stand among the addresses. */
static const char *take_dns(struct vnet_config *c, const char *value)
{
	char item[VALUE_MAX];
	struct vnet_prefix p;

	while (next_item(&value, item)) {
		if (!*item || strchr(item, '/'))
			return "is not a list of addresses";
		if (!take_prefix(item, &p)) {
			vnet_resolv_add_domain(item, c->search, sizeof(c->search));
			continue;
		}
		if (c->n_dns == VNET_CONFIG_ADDRESSES_MAX)
			return "has more than 16 addresses";
		c->dns[c->n_dns++] = p;
	}
	return NULL;
}

static const char *take_mtu(struct vnet_config *c, const char *value)
{
	/* What IPv4 asks of every link (RFC 791), and what fits a datagram. */
	return take_number(value, 65000, &c->mtu) && c->mtu >= 576
		       ? NULL
		       : "is not a size from 576 to 65000";
}

static const char *take_listen_port(struct vnet_config *c, const char *value)
{
	unsigned n;

	if (!take_number(value, UINT16_MAX, &n))
		return "is not a port";
	c->listen_port = (uint16_t)n;
	return NULL;
}

static const char *take_public(struct vnet_config *c, const char *value)
{
	if (peer(c)->has_key)
		return "is there twice";
	peer(c)->has_key = true;
	return take_base64(value, peer(c)->public);
}

static const char *take_preshared(struct vnet_config *c, const char *value)
{
	return take_base64(value, peer(c)->preshared);
}

static const char *take_allowed(struct vnet_config *c, const char *value)
{
	struct vnet_config_peer *p = peer(c);
	char item[VALUE_MAX];

	while (next_item(&value, item)) {
		struct vnet_prefix prefix, *more;

		if (!*item && !value)
			return NULL; /* wg takes an empty list */
		if (!take_prefix(item, &prefix))
			return "is not a list of addresses with prefixes";
		if (++c->n_prefixes > VNET_CONFIG_PREFIXES_MAX)
			return "makes more than 4096 prefixes";
		more = realloc(p->allowed, (p->n_allowed + 1) * sizeof(*more));
		if (!more)
			return no_memory;
		mask(&prefix);
		p->allowed = more;
		p->allowed[p->n_allowed++] = prefix;
	}
	return NULL;
}

static const char *take_endpoint(struct vnet_config *c, const char *value)
{
	static const char wrong[] = "is not HOST:PORT, 1.2.3.4:PORT or [1::2]:PORT";
	struct vnet_config_peer *p = peer(c);
	const char *colon = strrchr(value, ':'), *end = colon;
	unsigned port;

	if (!colon || !take_number(colon + 1, UINT16_MAX, &port) || !port)
		return wrong;
	if (*value == '[') {
		value++;
		if (end == value || *--end != ']')
			return wrong;
	} else if (memchr(value, ':', (size_t)(end - value))) {
		return wrong;
	}
	if (end <= value || end - value >= VNET_CONFIG_HOST_MAX)
		return wrong;
	memset(p->host, 0, sizeof(p->host));
	memcpy(p->host, value, (size_t)(end - value));
	if (strpbrk(p->host, " \t[]/"))
		return wrong;
	p->port = (uint16_t)port;
	return NULL;
}

static const char *take_keepalive(struct vnet_config *c, const char *value)
{
	unsigned n = 0;

	if (strcasecmp(value, "off") != 0 && !take_number(value, UINT16_MAX, &n))
		return "is neither off nor a number of seconds up to 65535";
	peer(c)->keepalive = (uint16_t)n;
	return NULL;
}

static const struct key interface_keys[] = {
	{"PrivateKey", take_private},
	{"Address", take_address},
	{"DNS", take_dns},
	{"MTU", take_mtu},
	{"ListenPort", take_listen_port},
	{"FwMark", NULL},
	{"Table", NULL},
	{"PreUp", NULL},
	{"PostUp", NULL},
	{"PreDown", NULL},
	{"PostDown", NULL},
	{"SaveConfig", NULL},
	{NULL},
};

static const struct key peer_keys[] = {
	{"PublicKey", take_public},
	{"PresharedKey", take_preshared},
	{"AllowedIPs", take_allowed},
	{"Endpoint", take_endpoint},
	{"PersistentKeepalive", take_keepalive},
	{NULL},
};

static const char *add_peer(struct vnet_config *c)
{
	struct vnet_config_peer *more;

	if (c->n_peers == VNET_CONFIG_PEERS_MAX)
		return "is one peer more than 1024";
	more = realloc(c->peers, (c->n_peers + 1) * sizeof(*more));
	if (!more)
		return no_memory;
	c->peers = more;
	c->peers[c->n_peers++] = (struct vnet_config_peer){0};
	return NULL;
}

/* A line without its comment, trimmed and not empty.  What is wrong goes to @what as well. */
static const char *take_line(
	struct vnet_config *c, char *line, const struct key **section, char what[64])
{
	char *value = strchr(line, '='), *end;

	/* No more than a key's name: what follows may be a secret. */
	snprintf(what, 64, "%.*s", (int)MIN(strcspn(line, " \t="), (size_t)24), line);
	if (strcasecmp(line, "[Interface]") == 0) {
		*section = interface_keys;
		return NULL;
	}
	if (strcasecmp(line, "[Peer]") == 0) {
		*section = peer_keys;
		return add_peer(c);
	}
	if (!value)
		return "is neither a section nor KEY = VALUE";
	for (end = value; end > line && (end[-1] == ' ' || end[-1] == '\t'); end--)
		;
	*end = '\0';
	value++;
	value += strspn(value, " \t");
	for (const struct key *k = *section; k && k->name; k++) {
		if (strcasecmp(k->name, line) != 0)
			continue;
		if (k->take)
			return *value || k->take == take_allowed ? k->take(c, value)
								 : "has no value";
		if (!c->left_out[0])
			snprintf(c->left_out, sizeof(c->left_out), "%s", k->name);
		return NULL;
	}
	return *section ? "is not a key of this section" : "stands before any section";
}

static int complete(const struct vnet_config *c, const char *name, struct err *e)
{
	if (!c->has_key)
		return err_set(e, ERR_USAGE, -EINVAL, "%s: [Interface] has no PrivateKey", name);
	for (size_t i = 0; i < c->n_peers; i++) {
		if (!c->peers[i].has_key)
			return err_set(e, ERR_USAGE, -EINVAL, "%s: peer %zu has no PublicKey", name,
				i + 1);
		for (size_t j = 0; j < i; j++)
			if (!memcmp(c->peers[i].public, c->peers[j].public, VNET_KEY_LEN))
				return err_set(e, ERR_USAGE, -EINVAL,
					"%s: peers %zu and %zu have the same PublicKey", name,
					j + 1, i + 1);
	}
	return 0;
}

static int take_text(
	struct vnet_config *c, const char *text, size_t len, const char *name, struct err *e)
{
	const struct key *section = NULL;
	char line[VALUE_MAX], what[64];
	unsigned number = 0;

	for (const char *end = text + len, *next; text < end; text = next) {
		const char *eol = memchr(text, '\n', (size_t)(end - text)), *wrong, *p;
		size_t n = (size_t)((eol ? eol : end) - text);

		next = eol ? eol + 1 : end;
		number++;
		if (n >= sizeof(line) || memchr(text, '\0', n))
			return err_set(e, ERR_USAGE, -EINVAL, "%s:%u: is not a line of text", name,
				number);
		memcpy(line, text, n);
		line[n] = '\0';
		line[strcspn(line, "#")] = '\0';
		for (n = strlen(line); n && strchr(" \t\r", line[n - 1]); n--)
			line[n - 1] = '\0';
		p = line + strspn(line, " \t");
		if (!*p)
			continue;
		wrong = take_line(c, line + (p - line), &section, what);
		vnet_crypto_wipe(line, sizeof(line));
		if (wrong)
			return err_set(e, ERR_USAGE, wrong == no_memory ? -ENOMEM : -EINVAL,
				"%s:%u: %s %s", name, number, what, wrong);
	}
	return complete(c, name, e);
}

int vnet_config_parse(
	struct vnet_config *c, const char *text, size_t len, const char *name, struct err *e)
{
	int r;

	*c = (struct vnet_config){0};
	r = take_text(c, text, len, name, e);
	if (r < 0)
		vnet_config_fini(c);
	return r;
}

int vnet_config_load(struct vnet_config *c, const char *path, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct stat st;
	int r;

	r = io_read_file(AT_FDCWD, path, VNET_CONFIG_FILE_MAX, &text);
	if (r < 0) {
		err_errno(e, r, "%s", path);
		return err_reclass(e, r == -ENOENT ? ERR_NOT_FOUND : ERR_HOST);
	}
	if (stat(path, &st) == 0 && st.st_mode & (S_IRGRP | S_IROTH))
		log_warn("%s holds a private key and can be read by others: chmod 600", path);
	r = vnet_config_parse(c, (const char *)text.data, text.len, path, e);
	if (text.len)
		vnet_crypto_wipe(text.data, text.len);
	if (!r && c->left_out[0])
		log_warn("%s: %s is left out: podrun only moves packets", path, c->left_out);
	return r;
}

void vnet_config_fini(struct vnet_config *c)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		free(c->peers[i].allowed);
		vnet_crypto_wipe(&c->peers[i], sizeof(c->peers[i]));
	}
	free(c->peers);
	vnet_crypto_wipe(c, sizeof(*c));
}
