// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * --publish, --address, --gateway, --host-loopback, --link-local, --dns-update, --carrier and
 * --on-move are of a virtual network: where one of them is given and --net is not, --net vnat is
 * meant.  All that is left open is decided here and written into the config, so that a session
 * keeps its addresses for life, whatever a later version of podrun would give to a new one.
 */
#include "supervisor/cli/run_net.h"

#include <arpa/inet.h>
#include <string.h>

#include "proto/control.pb-c.h"
#include "vnet/vnet.h"

/*
 * The same for all sessions, which never meet by them: translation keeps them apart.  They were
 * picked to be nobody else's: RFC 1918, and RFC 4193 with "podrun" for random bits.
 */
#define ADDRESS4 "10.171.0.2"
#define GATEWAY4 "10.171.0.1"
#define ADDRESS6 "fd7a:706f:6472::2"
#define GATEWAY6 "fd7a:706f:6472::1"
/* Any tunnel between hosts takes it, and a connection's segments can't shrink when it moves. */
#define MTU 1420

static int bad_port(const char *text, struct err *e)
{
	err_set(e, ERR_USAGE, -EINVAL, "--publish: '%s' is not valid here", text);
	return err_hint(e,
		"[IP:]HOST:SESSION[/udp], such as 8080:80, 127.0.0.1:8080:80 or [::1]:53:53/udp");
}

/* A port behind which the text ends at @end. */
static int parse_port(const char *from, const char *end, uint32_t *ret)
{
	char digits[8];
	uint64_t n;

	if (end - from < 1 || end - from >= (ptrdiff_t)sizeof(digits))
		return -EINVAL;
	snprintf(digits, sizeof(digits), "%.*s", (int)(end - from), from);
	if (cli_parse_number(digits, &n) < 0 || n < 1 || n > UINT16_MAX)
		return -EINVAL;
	*ret = (uint32_t)n;
	return 0;
}

/*
 * The address in front of the ports, with or without brackets; *ret_rest is what follows its ':'.
 */
static int parse_host(const char *text, const char *last, char **ret, const char **ret_rest)
{
	struct in6_addr bytes;
	const char *colon = memchr(text, ':', (size_t)(last - text));
	int family = text[0] == '[' ? AF_INET6 : AF_INET;

	if (family == AF_INET6) {
		colon = strstr(text, "]:");
		colon = colon ? colon + 1 : NULL;
	}
	*ret_rest = text;
	*ret = NULL;
	if (!colon || colon >= last)
		return text[0] == '[' ? -EINVAL : 0;
	*ret = family == AF_INET6 ? strndup(text + 1, (size_t)(colon - text) - 2)
				  : strndup(text, (size_t)(colon - text));
	*ret_rest = colon + 1;
	if (!*ret)
		return -ENOMEM;
	return inet_pton(family, *ret, &bytes) == 1 ? 0 : -EINVAL;
}

int run_net_parse_publish(const char *text, Pb__PublishedPort *ret, struct err *e)
{
	const char *end = text + strlen(text), *slash = strrchr(text, '/'), *last, *rest;
	_cleanup_free_ char *address = NULL;
	bool udp = false;

	if (slash) {
		udp = strcmp(slash, "/udp") == 0;
		if (!udp && strcmp(slash, "/tcp") != 0)
			return bad_port(text, e);
		end = slash;
	}
	last = memrchr(text, ':', (size_t)(end - text));
	pb__published_port__init(ret);
	if (!last || parse_port(last + 1, end, &ret->session) < 0 ||
		parse_host(text, last, &address, &rest) < 0 ||
		parse_port(rest, last, &ret->host) < 0)
		return bad_port(text, e);
	ret->udp = udp;
	if (address)
		ret->address = take_ptr(address);
	return 0;
}

/* Of an address to publish at: *ret_family is 0 for none, which is all of both families. */
static struct in6_addr publish_host(const Pb__PublishedPort *p, int *ret_family)
{
	struct in6_addr bytes = {0};

	*ret_family = !p->address || !p->address[0]	? 0
		      : strchr(p->address, ':') != NULL ? AF_INET6
							: AF_INET;
	if (*ret_family)
		inet_pton(*ret_family, p->address, &bytes);
	return bytes;
}

/* Whether no host has both. The same said twice is one. */
static bool publish_clash(const Pb__PublishedPort *a, const Pb__PublishedPort *b)
{
	static const struct in6_addr any;
	int family_a, family_b;
	struct in6_addr host_a = publish_host(a, &family_a), host_b = publish_host(b, &family_b);
	bool same = family_a == family_b && memcmp(&host_a, &host_b, sizeof(host_a)) == 0;

	if (a->udp != b->udp || a->host != b->host)
		return false;
	if (same)
		return a->session != b->session;
	return !family_a || !family_b ||
	       (family_a == family_b && (memcmp(&host_a, &any, sizeof(any)) == 0 ||
						memcmp(&host_b, &any, sizeof(any)) == 0));
}

static int fill_publish(const struct cli_list *list, Pb__VirtualNetwork *n, struct err *e)
{
	n->publish = calloc(list->n + 1, sizeof(*n->publish));
	for (size_t i = 0; i < list->n; i++) {
		Pb__PublishedPort *p = n->publish ? calloc(1, sizeof(*p)) : NULL;

		if (!p)
			return err_errno(e, -ENOMEM, "network");
		n->publish[n->n_publish++] = p;
		if (run_net_parse_publish(list->items[i], p, e) < 0)
			return e->error;
		for (size_t j = 0; j < i; j++)
			if (publish_clash(n->publish[j], p))
				return err_set(e, ERR_USAGE, -EINVAL,
					"--publish: '%s' and '%s' take the same port of the host",
					list->items[j], list->items[i]);
	}
	return 0;
}

/* One that a host of its own can have: not 0, not the loopback, not multicast. */
static bool usable4(const char *text)
{
	struct in_addr a;
	uint32_t n;

	if (inet_pton(AF_INET, text, &a) != 1)
		return false;
	n = ntohl(a.s_addr);
	return n >> 24 != 0 && n >> 24 != 127 && n >> 28 < 14;
}

static bool usable6(const char *text)
{
	struct in6_addr a;

	return inet_pton(AF_INET6, text, &a) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&a) &&
	       !IN6_IS_ADDR_LOOPBACK(&a) && !IN6_IS_ADDR_MULTICAST(&a) &&
	       !IN6_IS_ADDR_LINKLOCAL(&a) && !IN6_IS_ADDR_V4MAPPED(&a);
}

static int fill_addresses(const struct cli_list *list, Pb__VirtualNetwork *n, struct err *e)
{
	char **slots[] = {&n->address4, &n->address6};
	bool said[2] = {false, false};

	n->gateway4 = (char *)GATEWAY4;
	n->gateway6 = (char *)GATEWAY6;
	n->address4 = (char *)ADDRESS4;
	n->address6 = (char *)ADDRESS6;
	for (size_t i = 0; i < list->n; i++) {
		const char *text = list->items[i];
		int six = strchr(text, ':') != NULL;

		if (!(six ? usable6(text) : usable4(text))) {
			err_set(e, ERR_USAGE, -EINVAL,
				"--address: '%s' is no address that a session can have", text);
			return err_hint(e, "such as %s or %s", ADDRESS4, ADDRESS6);
		}
		if (strcmp(text, six ? GATEWAY6 : GATEWAY4) == 0)
			return err_set(
				e, ERR_USAGE, -EINVAL, "--address: %s is the gateway's", text);
		if (said[six])
			return err_set(e, ERR_USAGE, -EINVAL,
				"--address: one for IPv4 and one for IPv6, not two of a kind");
		said[six] = true;
		*slots[six] = (char *)text;
	}
	return 0;
}

static int fill_gateway(const char *gateway, Pb__VirtualNetwork *n, struct err *e)
{
	char *path;

	n->gateway = (char *)"local";
	if (!gateway)
		return 0;
	if (!gateway[0] || strchr(gateway, ' ') || gateway[0] == '-')
		return err_set(e, ERR_USAGE, -EINVAL,
			"--gateway: '%s' is not valid here: it takes local|HOST|wg:FILE", gateway);
	n->gateway = (char *)gateway;
	if (strncmp(gateway, "wg:", 3) != 0)
		return 0;
	path = realpath(gateway + 3, NULL);
	if (!path) {
		err_errno(e, -errno, "--gateway: %s", gateway + 3);
		return err_reclass(e, ERR_NOT_FOUND);
	}
	if (asprintf(&n->gateway, "wg:%s", path) < 0)
		return err_errno(e, -ENOMEM, "network");
	free(path);
	return 0;
}

/* Without a value it is the gateway's own address. */
static int fill_loopback(const char *loopback, Pb__VirtualNetwork *n, struct err *e)
{
	if (!loopback)
		return 0;
	n->host_loopback = (char *)(loopback[0] ? loopback : GATEWAY4);
	if (!usable4(n->host_loopback) && !usable6(n->host_loopback))
		return err_set(
			e, ERR_USAGE, -EINVAL, "--host-loopback: '%s' is no address", loopback);
	if (strcmp(n->host_loopback, n->address4) == 0 ||
		strcmp(n->host_loopback, n->address6) == 0)
		return err_set(e, ERR_USAGE, -EINVAL,
			"--host-loopback: %s is the session's own address", loopback);
	return 0;
}

/* The key is the gateway's to read: where that is here, it is looked at now. */
static int fill_update(const char *text, Pb__VirtualNetwork *n, struct err *e)
{
	struct vnet_nsupdate_key key;
	struct vnet_nsupdate u;
	char *path;

	if (!text)
		return 0;
	if (vnet_nsupdate_parse(text, &u, e) < 0)
		return e->error;
	n->dns_update = (char *)text;
	if (!u.key_file[0])
		return 0;
	if (strcmp(n->gateway, "local") != 0)
		return u.key_file[0] == '/'
			       ? 0
			       : err_set(e, ERR_USAGE, -EINVAL,
					 "--dns-update: %s is to be a whole path on %s", u.key_file,
					 n->gateway);
	path = realpath(u.key_file, NULL);
	if (!path) {
		err_errno(e, -errno, "--dns-update: %s", u.key_file);
		return err_reclass(e, ERR_NOT_FOUND);
	}
	if (vnet_nsupdate_key_load(path, &key, e) < 0)
		return err_wrap(e, "--dns-update");
	explicit_bzero(&key, sizeof(key));
	if (asprintf(&n->dns_update, "%.*s%s", (int)(strlen(text) - strlen(u.key_file)), text,
		    path) < 0)
		return err_errno(e, -ENOMEM, "network");
	free(path);
	return 0;
}

/* The first option given that needs a virtual network, or NULL. */
static const char *wants_virtual(const struct run_net *o)
{
	if (o->publish.n)
		return "--publish";
	if (o->address.n)
		return "--address";
	if (o->gateway)
		return "--gateway";
	if (o->host_loopback)
		return "--host-loopback";
	if (o->link_local)
		return "--link-local";
	if (o->dns_update)
		return "--dns-update";
	if (o->carrier)
		return "--carrier";
	return o->on_move ? "--on-move" : NULL;
}

const char *run_net_of(const struct run_net *o)
{
	return o->net ? o->net : wants_virtual(o) ? "vnat" : "none";
}

int run_net_fill(const struct run_net *o, Pb__Config *c, struct err *e)
{
	const char *wanted = wants_virtual(o);
	Pb__VirtualNetwork *n;

	c->net = (char *)run_net_of(o);
	c->net_said = o->net != NULL;
	if (strcmp(c->net, "vnat") != 0) {
		if (!wanted)
			return 0;
		err_set(e, ERR_USAGE, -EINVAL, "%s does not go with --net %s", wanted, c->net);
		return err_hint(e, "say --net vnat");
	}
	if (o->publish.n && o->gateway && strncmp(o->gateway, "wg:", 3) == 0) {
		err_set(e, ERR_USAGE, -EINVAL, "--publish does not go with --gateway wg:FILE");
		return err_hint(e, "all ports are reached at the address that the file gives");
	}
	if (o->dns_update && o->gateway && strncmp(o->gateway, "wg:", 3) == 0)
		return err_set(
			e, ERR_USAGE, -EINVAL, "--dns-update does not go with --gateway wg:FILE");
	if (o->carrier && o->gateway && strncmp(o->gateway, "wg:", 3) == 0)
		return err_set(
			e, ERR_USAGE, -EINVAL, "--carrier does not go with --gateway wg:FILE");
	n = c->network = malloc(sizeof(*n));
	if (!n)
		return err_errno(e, -ENOMEM, "network");
	pb__virtual_network__init(n);
	n->mtu = MTU;
	n->link_local = o->link_local;
	if (o->on_move)
		n->on_move = (char *)o->on_move;
	if (o->carrier)
		n->carrier = (char *)o->carrier;
	if (fill_addresses(&o->address, n, e) < 0 || fill_gateway(o->gateway, n, e) < 0 ||
		fill_loopback(o->host_loopback, n, e) < 0 || fill_update(o->dns_update, n, e) < 0)
		return e->error;
	return fill_publish(&o->publish, n, e);
}
