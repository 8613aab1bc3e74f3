// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      zone       ZONE SOA
 *      update     delete all A of NAME; delete all AAAA of NAME; add one of each that there is
 *      additional TSIG: an HMAC over all before it
 *
 * The answer is not checked against the key: it comes from the server's address to a connected
 * socket with a random id, and a forged one could only hide that a server has refused.
 */
#include "vnet/nsupdate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/base.h"
#include "vnet/tunnel/crypto.h"

#define ALGORITHM "hmac-sha256"
#define MAC_LEN	  32
#define FUDGE	  300 /* seconds that clocks may differ */
#define KEY_FILE  65536
#define HEADER	  12

enum { TYPE_A = 1, TYPE_SOA = 6, TYPE_AAAA = 28, TYPE_TSIG = 250 };
enum { CLASS_IN = 1, CLASS_NONE = 254, CLASS_ANY = 255 };
#define OPCODE_UPDATE 5

/* ---- what is said ------------------------------------------------------------------------ */

/* Letters, digits, '-' and '_' in labels of at most 63. */
static bool is_name(const char *name)
{
	size_t label = 0, n = strlen(name);

	if (!n || n > 253)
		return false;
	for (size_t i = 0; i < n; i++) {
		bool dot = name[i] == '.';

		if (!dot &&
			!strchr("-_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
				name[i]))
			return false;
		if (dot && !label)
			return false;
		label = dot ? 0 : label + 1;
		if (label > 63)
			return false;
	}
	return label;
}

static void strip_dot(char *name)
{
	size_t n = strlen(name);

	if (n && name[n - 1] == '.')
		name[n - 1] = '\0';
}

/* "192.0.2.53", "[2001:db8::53]", either with a port behind '#'.  *ret_rest: what follows. */
static bool parse_server(const char *text, struct vnet_endpoint *ret, const char **ret_rest)
{
	bool six = text[0] == '[';
	const char *end = six ? strchr(text, ']') : text + strcspn(text, ":#");
	char address[INET6_ADDRSTRLEN];
	size_t n = end ? (size_t)(end - text) - six : sizeof(address);
	unsigned long port = 53;
	char *after;

	if (n >= sizeof(address))
		return false;
	memcpy(address, text + six, n);
	address[n] = '\0';
	*ret = (struct vnet_endpoint){.family = six ? AF_INET6 : AF_INET};
	if (inet_pton(ret->family, address, &ret->v6) != 1)
		return false;
	*ret_rest = end + six;
	if (**ret_rest == '#') {
		port = strtoul(*ret_rest + 1, &after, 10);
		*ret_rest = after;
	}
	ret->port = (uint16_t)port;
	return port > 0 && port <= UINT16_MAX && (!**ret_rest || **ret_rest == ':');
}

static int bad(const char *text, struct err *e)
{
	err_set(e, ERR_USAGE, -EINVAL, "--dns-update: '%.256s' is not valid here", text);
	return err_hint(e,
		"ZONE/NAME@SERVER[:KEYFILE], such as example.org/web@192.0.2.53:/home/me/tsig.key");
}

int vnet_nsupdate_parse(const char *text, struct vnet_nsupdate *ret, struct err *e)
{
	const char *slash = strchr(text, '/'), *at = slash ? strchr(slash, '@') : NULL, *rest;
	struct vnet_nsupdate u = {0};
	char zone[256], name[256];

	/* "@" is the zone itself, as in its files. */
	if (at && at == slash + 1 && at[1] == '@')
		at++;
	if (!at || slash - text >= (ptrdiff_t)sizeof(zone) ||
		at - slash > (ptrdiff_t)sizeof(name) || !parse_server(at + 1, &u.server, &rest))
		return bad(text, e);
	snprintf(zone, sizeof(zone), "%.*s", (int)(slash - text), text);
	snprintf(name, sizeof(name), "%.*s", (int)(at - slash - 1), slash + 1);
	strip_dot(zone);
	snprintf(u.zone, sizeof(u.zone), "%s", zone);
	if (strcmp(name, "@") == 0)
		snprintf(u.name, sizeof(u.name), "%s", zone);
	else if ((size_t)snprintf(u.name, sizeof(u.name), "%s.%s", name, zone) >= sizeof(u.name))
		return bad(text, e);
	if (!is_name(u.zone) || !is_name(u.name))
		return bad(text, e);
	if (rest[0] && (rest[1] == '\0' || strlen(rest + 1) >= sizeof(u.key_file)))
		return bad(text, e);
	if (rest[0])
		snprintf(u.key_file, sizeof(u.key_file), "%s", rest + 1);
	*ret = u;
	return 0;
}

/* ---- keys -------------------------------------------------------------------------------- */

/* The next word: quotes are left out, and ';', '{' and '}' are words. */
static bool next_word(const char **at, char *word, size_t room)
{
	const char *p = *at + strspn(*at, " \t\r\n");
	size_t n;

	if (!*p)
		return false;
	if (*p == '"')
		n = strcspn(++p, "\"");
	else
		n = strchr(";{}", *p) ? 1 : strcspn(p, " \t\r\n;{}\"");
	if (n >= room)
		return false;
	memcpy(word, p, n);
	word[n] = '\0';
	p += n;
	*at = p + (*p == '"');
	return true;
}

static bool decode(const char *text, struct vnet_nsupdate_key *ret)
{
	ssize_t n = vnet_crypto_base64(text, ret->secret, sizeof(ret->secret));

	ret->len = n > 0 ? (size_t)n : 0;
	return ret->len;
}

static bool parse_key(const char *text, struct vnet_nsupdate_key *ret)
{
	char word[512], key[16] = "";
	bool algorithm = false;

	if (!next_word(&text, word, sizeof(word)) || strcmp(word, "key") != 0 ||
		!next_word(&text, word, sizeof(word)))
		return false;
	strip_dot(word);
	if (!is_name(word))
		return false;
	snprintf(ret->name, sizeof(ret->name), "%.255s", word);
	while (next_word(&text, word, sizeof(word))) {
		if (strcmp(key, "algorithm") == 0)
			algorithm = strcasecmp(word, ALGORITHM) == 0;
		if (strcmp(key, "secret") == 0 && !decode(word, ret))
			return false;
		snprintf(key, sizeof(key), "%.15s", word);
	}
	vnet_crypto_wipe(word, sizeof(word));
	return algorithm && ret->len;
}

/* A gateway that waited for a pipe or a terminal would do nothing else. */
static int read_key(const char *path, struct buf *b)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size > KEY_FILE)
		return -EFBIG;
	if (!buf_reserve(b, KEY_FILE))
		return -ENOMEM;
	n = io_read_full(fd, b->data, KEY_FILE);
	b->len = n > 0 ? (size_t)n : 0;
	return n < 0 ? (int)n : 0;
}

int vnet_nsupdate_key_load(const char *path, struct vnet_nsupdate_key *ret, struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct vnet_nsupdate_key key = {0};
	int r = read_key(path, &b);

	if (r < 0)
		return err_errno(e, r, "%s", path);
	if (!buf_cstr(&b) || !parse_key(buf_cstr(&b), &key)) {
		err_set(e, ERR_USAGE, -EINVAL, "%s is no key of %s", path, ALGORITHM);
		return err_hint(e, "tsig-keygen NAME > FILE makes one");
	}
	vnet_crypto_wipe(b.data, b.len);
	*ret = key;
	return 0;
}

/* ---- messages ---------------------------------------------------------------------------- */

struct out {
	uint8_t *data;
	size_t len, room;
	bool full;
};

static void put(struct out *o, const void *data, size_t n)
{
	if (o->full || n > o->room - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->data + o->len, data, n);
	o->len += n;
}

static void put_number(struct out *o, uint64_t v, unsigned bytes)
{
	uint8_t b[8];

	for (unsigned i = 0; i < bytes; i++)
		b[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
	put(o, b, bytes);
}

/* In lower case and never compressed, as a MAC wants it. */
static void put_name(struct out *o, const char *name)
{
	while (*name) {
		size_t n = strcspn(name, ".");

		put_number(o, n, 1);
		for (size_t i = 0; i < n; i++)
			put_number(o,
				(uint8_t)(name[i] | (name[i] >= 'A' && name[i] <= 'Z' ? 32 : 0)),
				1);
		name += n + (name[n] == '.');
	}
	put_number(o, 0, 1);
}

/* Of a record all but its data. */
static void put_head(
	struct out *o, const char *name, uint16_t type, uint16_t class, uint32_t ttl, size_t len)
{
	put_name(o, name);
	put_number(o, type, 2);
	put_number(o, class, 2);
	put_number(o, ttl, 4);
	put_number(o, len, 2);
}

static void put_address(
	struct out *o, const char *name, uint16_t class, const struct vnet_endpoint *a)
{
	size_t n = a->family == AF_INET ? 4 : 16;

	put_head(o, name, n == 4 ? TYPE_A : TYPE_AAAA, class,
		class == CLASS_IN ? VNET_NSUPDATE_TTL : 0, n);
	put(o, &a->v6, n);
}

/* What is signed behind the message, and the record that says so. */
static void sign(struct out *o, const struct vnet_nsupdate_key *key, uint16_t id, uint64_t unix_s)
{
	uint8_t room[VNET_NSUPDATE_ROOM + 1024], mac[MAC_LEN];
	struct out all = {room, 0, sizeof(room), false};

	put(&all, o->data, o->len);
	put_name(&all, key->name);
	put_number(&all, CLASS_ANY, 2);
	put_number(&all, 0, 4);
	put_name(&all, ALGORITHM);
	put_number(&all, unix_s, 6);
	put_number(&all, FUDGE, 2);
	put_number(&all, 0, 4); /* no error, no other data */
	if (all.full || o->full ||
		vnet_crypto_hmac(key->secret, key->len, all.data, all.len, mac) < 0) {
		o->full = true;
		return;
	}
	put_head(o, key->name, TYPE_TSIG, CLASS_ANY, 0, sizeof(ALGORITHM) + 1 + 16 + MAC_LEN);
	put_name(o, ALGORITHM);
	put_number(o, unix_s, 6);
	put_number(o, FUDGE, 2);
	put_number(o, MAC_LEN, 2);
	put(o, mac, MAC_LEN);
	put_number(o, id, 2);
	put_number(o, 0, 4);
	if (!o->full)
		o->data[11] = 1; /* additional records; the MAC is of the message without */
}

ssize_t vnet_nsupdate_make(const struct vnet_nsupdate *u, enum vnet_nsupdate_change change,
	const struct vnet_nsupdate_key *key, uint16_t id, uint64_t unix_s,
	const struct vnet_endpoint *addresses, size_t n, uint8_t *out, size_t room)
{
	bool has = change == VNET_NSUPDATE_HAS;
	struct out o = {out, 0, MIN(room, (size_t)VNET_NSUPDATE_ROOM), false};

	put_number(&o, id, 2);
	put_number(&o, OPCODE_UPDATE << 11, 2);
	put_number(&o, 1, 2);	  /* zones */
	put_number(&o, 0, 2);	  /* prerequisites */
	put_number(&o, n + (has ? 2 : 0), 2); /* updates */
	put_number(&o, 0, 2);
	put_name(&o, u->zone);
	put_number(&o, TYPE_SOA, 2);
	put_number(&o, CLASS_IN, 2);
	if (has) {
		put_head(&o, u->name, TYPE_A, CLASS_ANY, 0, 0);
		put_head(&o, u->name, TYPE_AAAA, CLASS_ANY, 0, 0);
	}
	/* Of class NONE it is that one record that goes (RFC 2136, 2.5.4). */
	for (size_t i = 0; i < n; i++)
		put_address(&o, u->name, has ? CLASS_IN : CLASS_NONE, &addresses[i]);
	if (key)
		sign(&o, key, id, unix_s);
	return o.full ? -ENOSPC : (ssize_t)o.len;
}

int vnet_nsupdate_answer(const uint8_t *message, size_t len, uint16_t id)
{
	if (len < HEADER || (message[0] << 8 | message[1]) != id || !(message[2] & 0x80) ||
		(message[2] >> 3 & 15) != OPCODE_UPDATE)
		return -EBADMSG;
	return message[3] & 15;
}

const char *vnet_nsupdate_rcode(int rcode)
{
	static const char *const names[] = {"done", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP",
		"REFUSED", "YXDOMAIN", "YXRRSET", "NXRRSET", "NOTAUTH", "NOTZONE"};

	return rcode >= 0 && (size_t)rcode < ARRAY_SIZE(names) ? names[rcode] : "an error";
}
