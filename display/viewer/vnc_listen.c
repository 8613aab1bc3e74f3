// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/viewer/vnc_listen.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "display/viewer/vnc_library.h"
#include "display/web/address.h"

#define PORT_FIRST 5900
#define PORT_LAST  5999

static void set_port(struct display_address *a, unsigned port)
{
	if (a->sock.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&a->sock)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)&a->sock)->sin_port = htons((uint16_t)port);
}

static int parse(struct display_address *ret, const char *text, struct err *e)
{
	const char *colon = strrchr(text, ':'), *digits = colon ? colon + 1 : text;
	char whole[128];
	struct err why = {0};
	char *end;
	unsigned long port = strtoul(digits, &end, 10);

	snprintf(whole, sizeof(whole), "%s%.100s", colon ? "" : "127.0.0.1:", text);
	if (*digits < '0' || *digits > '9' || *end || port > 65535 || colon == text ||
		display_address_parse(ret, whole, &why) < 0)
		return err_set(e, ERR_USAGE, -EINVAL, "--vnc: '%.64s' is not [ADDR:]PORT", text);
	ret->port = (int)port;
	return 0;
}

static void say_where(const struct display_address *a, char *ret, size_t size)
{
	bool six = a->sock.ss_family == AF_INET6;
	char host[INET6_ADDRSTRLEN] = "";

	inet_ntop(a->sock.ss_family,
		six ? (const void *)&((const struct sockaddr_in6 *)&a->sock)->sin6_addr
		    : (const void *)&((const struct sockaddr_in *)&a->sock)->sin_addr,
		host, sizeof(host));
	snprintf(ret, size, six ? "[%s]:%d" : "%s:%d", host, a->port);
}

int display_vnc_listen(const char *text, char *ret_where, size_t size, struct err *e)
{
	struct display_address a;
	unsigned first, last;
	int fd = -1;

	if (parse(&a, text, e) < 0 || display_vnc_load(e) < 0)
		return e->error;
	first = a.port ? (unsigned)a.port : PORT_FIRST;
	last = a.port ? (unsigned)a.port : PORT_LAST;
	for (unsigned port = first; port <= last && fd < 0; port++) {
		*e = (struct err){0};
		set_port(&a, port);
		fd = display_address_listen(&a, e);
	}
	if (fd < 0)
		return err_wrap(e, "--vnc %s", text);
	say_where(&a, ret_where, size);
	return fd;
}
