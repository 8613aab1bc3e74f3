/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * web - a session's display for browsers: serves the page, and relays its websockets.
 */
#ifndef DISPLAY_WEB_WEB_H
#define DISPLAY_WEB_WEB_H

#include <stdbool.h>

struct display_web;
struct err;

struct display_web_options {
	const char *listen; /* "ADDR:PORT" for https; NULL: http on the loopback address only */
	const char *keys;   /* with listen: the directory where our key is kept, or is put */
	bool view_only;
	unsigned quality; /* of JPEG; 0: every picture exact */
	/*
	 * Makes a stream to the display server, a connected socket; or a negative errno.  -ESTALE:
	 * what was served is no more, and nobody is to be served.
	 */
	int (*connect)(void *ctx, struct err *e);
	/* An address that lets one browser in, once.  With listen, again each time it was used. */
	void (*address)(void *ctx, const char *url);
	void *ctx;
};

/* @options is borrowed.  Errors: of the address, the key, the network. */
int display_web_new(
	struct display_web **ret, const struct display_web_options *options, struct err *e);
void display_web_free(struct display_web *w);
/* SHA-256 of the certificate as browsers show it, "" without one. */
const char *display_web_fingerprint(const struct display_web *w);
/* Serves until SIGINT, SIGTERM or SIGHUP comes, which the caller has blocked; or -ESTALE. */
int display_web_run(struct display_web *w, struct err *e);

#endif
