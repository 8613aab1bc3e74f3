/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter - what a browser sends, on its way to the display server.
 *
 * The display server takes who connects to its socket for the owner.  A browser may be somebody
 * else's, so what it may do is decided here: each message is looked at, HELLO is packed anew, and
 * whoever may only look sends no input.
 */
#ifndef DISPLAY_WEB_FILTER_H
#define DISPLAY_WEB_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct display_filter {
	bool view_only;
	bool greeted;	  /* HELLO has passed: it is the first message, and comes once */
	struct buf begun; /* a message that is not complete: its header, or a whole HELLO */
	size_t passing;	  /* bytes of a body still to come, */
	bool dropped;	  /* which go nowhere */
};

void display_filter_init(struct display_filter *f, bool view_only);
void display_filter_fini(struct display_filter *f);
/*
 * Appends what of the next @n bytes may pass.  -EBADMSG: this is not the protocol, -EMSGSIZE: a
 * message is too long, -ENOMEM.
 */
int display_filter_feed(struct display_filter *f, const void *data, size_t n, struct buf *out);

#endif
