/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tickets - who may come in over http.
 *
 * A token is part of an address that somebody is given, and works once.  Whoever shows it gets a
 * ticket, with which he comes in again as often as he likes: his tab was loaded anew, the line
 * broke.  A ticket is good as long as the process; nothing is on disk.
 */
#ifndef DISPLAY_WEB_TICKETS_H
#define DISPLAY_WEB_TICKETS_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define DISPLAY_TICKET_LEN 64 /* hexadecimal digits of 32 random bytes */
#define DISPLAY_SEATS	   16

struct display_seat {
	char ticket[DISPLAY_TICKET_LEN + 1];
	void *guest; /* who is on it now; the caller's */
};

struct display_tickets {
	char token[DISPLAY_TICKET_LEN + 1]; /* "": used, and there is no other */
	bool several;			    /* a token that was used is followed by another */
	struct display_seat seats[DISPLAY_SEATS];
	size_t n;
};

/* With a first token. */
int display_tickets_init(struct display_tickets *t, bool several, struct err *e);
/* The seat for a token, which is used up, or for a ticket; NULL: neither is known, or all seats
 * are taken. */
struct display_seat *display_tickets_admit(struct display_tickets *t, const char *token);
struct display_seat *display_tickets_return(struct display_tickets *t, const char *ticket);

#endif
