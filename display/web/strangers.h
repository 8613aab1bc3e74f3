/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * strangers - connections of people that nobody has admitted, of which there are only so many.
 *
 * Anybody may connect to --listen, and say nothing.  Who comes when there is no room takes the
 * place of the one that has been there for longest, among those of his own address if they have
 * their share, else of the address with most: whoever fills all places stands in his own way.
 */
#ifndef DISPLAY_WEB_STRANGERS_H
#define DISPLAY_WEB_STRANGERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define DISPLAY_STRANGERS      64
#define DISPLAY_STRANGERS_FROM 16 /* one address; of IPv6, one network of 64 bits */

struct display_strangers {
	struct display_stranger {
		void *who; /* the caller's; NULL: free */
		uint64_t from[2];
		uint64_t came; /* a number that grows */
	} all[DISPLAY_STRANGERS];
	uint64_t n_came;
};

/* @who has come from @a.  Returns who has to go for that, and is forgotten, or NULL. */
void *display_strangers_add(
	struct display_strangers *s, void *who, const struct sockaddr_storage *a);
/* He has been admitted, or is gone; nothing if he is not known. */
void display_strangers_remove(struct display_strangers *s, const void *who);
/*
 * The one of an address with most who has been there for longest, forgotten from now on, or NULL.
 */
void *display_strangers_least_welcome(struct display_strangers *s);

#endif
