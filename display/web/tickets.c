// SPDX-License-Identifier: GPL-2.0-or-later
/* What is compared is a secret: how long it takes tells nothing of how much of it was right. */
#include "display/web/tickets.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"

static int make(char ret[DISPLAY_TICKET_LEN + 1], struct err *e)
{
	uint8_t bytes[DISPLAY_TICKET_LEN / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return err_errno(e, -errno, "getrandom");
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static bool same(const char *secret, const char *shown)
{
	unsigned differ = 0;

	if (!secret[0] || strlen(shown) != DISPLAY_TICKET_LEN)
		return false;
	for (size_t i = 0; i < DISPLAY_TICKET_LEN; i++)
		differ |= (unsigned)(secret[i] ^ shown[i]);
	return differ == 0;
}

int display_tickets_init(struct display_tickets *t, bool several, struct err *e)
{
	*t = (struct display_tickets){.several = several};
	return make(t->token, e);
}

struct display_seat *display_tickets_admit(struct display_tickets *t, const char *token)
{
	struct display_seat *s = &t->seats[t->n];
	struct err ignored = {0};

	if (t->n == DISPLAY_SEATS || !same(t->token, token) || make(s->ticket, &ignored) < 0)
		return NULL;
	t->n++;
	/* With the last seat there is nothing that another token would be good for. */
	if (!t->several || t->n == DISPLAY_SEATS || make(t->token, &ignored) < 0)
		t->token[0] = '\0';
	return s;
}

struct display_seat *display_tickets_return(struct display_tickets *t, const char *ticket)
{
	for (size_t i = 0; i < t->n; i++)
		if (same(t->seats[i].ticket, ticket))
			return &t->seats[i];
	return NULL;
}
