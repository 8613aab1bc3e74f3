// SPDX-License-Identifier: GPL-2.0-or-later
#include "display/web/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/base.h"

#define BACKLOG	 128
#define HOST_MAX 256

void display_address_loopback(struct display_address *ret)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	*ret = (struct display_address){.len = sizeof(in)};
	memcpy(&ret->sock, &in, sizeof(in));
}

/* The C library takes 70000 for 4464, and -1 for 65535. */
static bool is_port(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n <= 5 && !text[n] && strtoul(text, NULL, 10) <= UINT16_MAX;
}

int display_address_parse(struct display_address *ret, const char *text, struct err *e)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
		.ai_socktype = SOCK_STREAM};
	const char *colon = strrchr(text, ':');
	size_t len = colon ? (size_t)(colon - text) : 0;
	struct addrinfo *found;
	char host[INET6_ADDRSTRLEN + 3] = "";

	if (!colon || !is_port(colon + 1) || len >= sizeof(host))
		goto bad;
	if (len > 2 && text[0] == '[' && text[len - 1] == ']')
		memcpy(host, text + 1, len - 2);
	else
		memcpy(host, text, len);
	if (getaddrinfo(len ? host : NULL, colon + 1, &hints, &found) != 0)
		goto bad;
	*ret = (struct display_address){.len = found->ai_addrlen, .https = true};
	memcpy(&ret->sock, found->ai_addr, found->ai_addrlen);
	freeaddrinfo(found);
	return 0;
bad:
	err_set(e, ERR_USAGE, -EINVAL, "'%.64s' is no address to listen at", text);
	return err_hint(e, "ADDRESS:PORT in numbers, as 192.0.2.1:8443 or [2001:db8::1]:8443");
}

static int port_of(const struct sockaddr_storage *s)
{
	return ntohs(s->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)s)->sin6_port
					      : ((const struct sockaddr_in *)s)->sin_port);
}

int display_address_listen(struct display_address *a, struct err *e)
{
	_cleanup_close_ int fd =
		socket(a->sock.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);

	if (fd < 0)
		return err_errno(e, -errno, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
	if (bind(fd, (struct sockaddr *)&a->sock, a->len) < 0 || listen(fd, BACKLOG) < 0 ||
		getsockname(fd, (struct sockaddr *)&bound, &len) < 0)
		return err_errno(e, -errno, "can't listen at port %d", port_of(&a->sock));
	a->port = port_of(&bound);
	return take_fd(&fd);
}

void display_address_url(const struct display_address *a, char *ret, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "", here[HOST_MAX] = "localhost";
	bool six = a->sock.ss_family == AF_INET6;
	const void *in = six ? (const void *)&((const struct sockaddr_in6 *)&a->sock)->sin6_addr
			     : (const void *)&((const struct sockaddr_in *)&a->sock)->sin_addr;
	static const uint8_t any[16];

	/* All addresses is none that a browser could be given. */
	if (memcmp(in, any, six ? 16 : 4) == 0) {
		gethostname(here, sizeof(here) - 1);
		snprintf(ret, size, "https://%s:%d/", here, a->port);
		return;
	}
	inet_ntop(a->sock.ss_family, in, host, sizeof(host));
	snprintf(ret, size, six ? "%s://[%s]:%d/" : "%s://%s:%d/", a->https ? "https" : "http",
		host, a->port);
}

bool display_address_host_is_ours(const struct display_address *a, const char *host)
{
	char ours[2][64];

	if (!host || !host[0] || strlen(host) >= HOST_MAX)
		return false;
	/* Under a foreign name our certificate is good for nobody, and no page gets this far. */
	if (a->https)
		return true;
	snprintf(ours[0], sizeof(ours[0]), "127.0.0.1:%d", a->port);
	snprintf(ours[1], sizeof(ours[1]), "localhost:%d", a->port);
	return strcasecmp(host, ours[0]) == 0 || strcasecmp(host, ours[1]) == 0;
}

bool display_address_origin_is_ours(
	const struct display_address *a, const char *host, const char *origin)
{
	const char *scheme = a->https ? "https://" : "http://";

	return display_address_host_is_ours(a, host) && origin &&
	       strncasecmp(origin, scheme, strlen(scheme)) == 0 &&
	       strcasecmp(origin + strlen(scheme), host) == 0;
}
