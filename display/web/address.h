/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * address - where the page is served, and whether a request was meant for there.
 *
 * Any page of the web can make a browser ask servers on this machine, and by a name server of its
 * own can make a browser believe that they are its own (DNS rebinding).  What a page can't do is
 * lie about the name it used and about where it comes from: Host must be a name of ours, and a
 * websocket's Origin our own page's.
 */
#ifndef DISPLAY_WEB_ADDRESS_H
#define DISPLAY_WEB_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

struct err;

struct display_address {
	struct sockaddr_storage sock;
	socklen_t len;
	bool https; /* somebody else's machine may ask, by whatever name it knows ours */
	int port;   /* once it is listened at */
};

/* The loopback address, any port. */
void display_address_loopback(struct display_address *ret);
/* "ADDR:PORT", "[ADDR]:PORT", ":PORT" (all addresses); numbers only. ERR_USAGE. */
int display_address_parse(struct display_address *ret, const char *text, struct err *e);
/* A listening socket, non-blocking; @a->port is known then. */
int display_address_listen(struct display_address *a, struct err *e);
/* The beginning of an URL: "http://127.0.0.1:PORT/". */
void display_address_url(const struct display_address *a, char *ret, size_t size);

/* Is a request with this Host, NULL if there is none, meant for us? */
bool display_address_host_is_ours(const struct display_address *a, const char *host);
/* Does a page of ours ask, one that was got with the same Host? */
bool display_address_origin_is_ours(
	const struct display_address *a, const char *host, const char *origin);

#endif
