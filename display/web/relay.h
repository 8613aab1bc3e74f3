/* SPDX-License-Identifier: GPL-2.0-or-later */
/* relay - one browser: bytes between its websocket and a stream to the display server. */
#ifndef DISPLAY_WEB_RELAY_H
#define DISPLAY_WEB_RELAY_H

#include <stdbool.h>
/* One of libcrypto's types has the name of one of our error classes. */
#define ERR_STATE OPENSSL_ERR_STATE
#include <libwebsockets.h>
#undef ERR_STATE

#include "display/web/tickets.h"

struct err;

/* What all relays of a process share; lws_protocols.user of both protocols. */
struct display_relays {
	struct display_tickets tickets;
	unsigned n; /* websockets */
	bool view_only;
	unsigned quality; /* of JPEG that the page is to ask for; 0: lossless */
	/* A connected stream socket that becomes ours, or a negative errno; -ESTALE for good. */
	int (*connect)(void *ctx, struct err *e);
	/* Somebody has shown who he is. */
	void (*seated)(void *ctx, const struct lws *websocket);
	/* A token has been used. */
	void (*admitted)(void *ctx);
	void *ctx;
};

#define DISPLAY_RELAY_STREAM "podrun-stream" /* the name of the stream's protocol */

struct display_relay;
size_t display_relay_size(void);
/* Callbacks of the websocket's protocol, @user a struct display_relay, and of the stream's. */
int display_relay_websocket(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len);
int display_relay_stream(
	struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t len);

#endif
