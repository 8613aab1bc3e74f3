// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * resolv - lines "nameserver ADDRESS", and "search DOMAIN ..." for sessions that begin; options are
 * their own.  An address may be of a local stub (127.0.0.53), since the
 * gateway is in the host's network, and may have a scope (fe80::1%eth0).  "[ADDRESS]:PORT" is
 * what OpenBSD has for other ports; glibc does not know it, so it is in no host's file by
 * accident.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "vnet/datagram/dns_message.h"
#include "vnet/datagram/resolv.h"

#define MAX_FILE 65536
#define BLANKS	 " \t\r"

/* "ADDRESS%SCOPE" in @word, which is changed.  False if it is none. */
static bool parse_address(char *word, uint16_t port, union vnet_resolv_server *ret)
{
	char *scope = strchr(word, '%');

	*ret = (union vnet_resolv_server){0};
	if (inet_pton(AF_INET, word, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(port);
		return true;
	}
	if (scope)
		*scope++ = 0;
	if (inet_pton(AF_INET6, word, &ret->v6.sin6_addr) != 1)
		return false;
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons(port);
	if (scope) {
		ret->v6.sin6_scope_id = if_nametoindex(scope);
		if (!ret->v6.sin6_scope_id)
			ret->v6.sin6_scope_id = (uint32_t)strtoul(scope, NULL, 10);
	}
	return true;
}

static bool parse_server(char *word, union vnet_resolv_server *ret)
{
	unsigned long port = VNET_DNS_PORT;

	if (*word == '[') {
		char *end = strchr(word, ']');

		if (!end || end[1] != ':')
			return false;
		*end = 0;
		port = strtoul(end + 2, &end, 10);
		if (*end || port < 1 || port > 65535)
			return false;
		word++;
	}
	return parse_address(word, (uint16_t)port, ret);
}

static void parse_line(struct vnet_resolv *r, char *line)
{
	char *save, *key, *word;

	key = strtok_r(line, BLANKS, &save);
	if (!key || strcmp(key, "nameserver") != 0 || r->n == VNET_RESOLV_SERVERS)
		return;
	word = strtok_r(NULL, BLANKS, &save);
	if (word && parse_server(word, &r->servers[r->n]))
		r->n++;
}

void vnet_resolv_parse(struct vnet_resolv *r, const char *text, size_t len)
{
	const char *end = text + len;

	r->n = 0;
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((nl ? nl : end) - text);
		char line[256];

		/* A longer one is no address. */
		if (n < sizeof(line)) {
			memcpy(line, text, n);
			line[n] = 0;
			parse_line(r, line);
		}
		text += n + 1;
	}
}

void vnet_resolv_add_domain(const char *word, char *list, size_t size)
{
	static const char in_names[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t n = strlen(list), len = strlen(word);

	if (!len || strspn(word, in_names) != len || n + !!n + len >= size)
		return;
	if (n)
		list[n++] = ' ';
	memcpy(list + n, word, len + 1);
}

void vnet_resolv_search(const char *text, size_t len, char *ret, size_t size)
{
	const char *end = text + len;
	char *save, *key, *word;

	ret[0] = '\0';
	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		_cleanup_free_ char *line = strndup(text, (size_t)((nl ? nl : end) - text));

		key = line ? strtok_r(line, BLANKS, &save) : NULL;
		if (key && (strcmp(key, "search") == 0 || strcmp(key, "domain") == 0)) {
			ret[0] = '\0';
			while ((word = strtok_r(NULL, BLANKS, &save)))
				vnet_resolv_add_domain(word, ret, size);
		}
		text = nl ? nl + 1 : end;
	}
}

static void use_default(struct vnet_resolv *r)
{
	r->n = 1;
	r->servers[0] =
		(union vnet_resolv_server){.v4 = {.sin_family = AF_INET,
						   .sin_port = htons(VNET_DNS_PORT),
						   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int vnet_resolv_refresh(struct vnet_resolv *r)
{
	const char *path = r->path ? r->path : "/etc/resolv.conf";
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct stat st = {0};

	/* Not there is a state like others: it has no inode. */
	if (stat(path, &st) < 0 && errno != ENOENT && r->known)
		return 0;
	if (r->known && same_file(&st, &r->seen))
		return 0;
	if (st.st_ino && io_read_file(AT_FDCWD, path, MAX_FILE, &b) < 0 && r->known)
		return 0;
	r->seen = st;
	r->known = true;
	vnet_resolv_parse(r, (const char *)b.data, b.len);
	if (!r->n)
		use_default(r);
	return 1;
}

socklen_t vnet_resolv_server_len(const union vnet_resolv_server *s)
{
	return s->sa.sa_family == AF_INET ? sizeof(s->v4) : sizeof(s->v6);
}
