/* SPDX-License-Identifier: GPL-2.0-or-later */
/* away_lent - where a session that has moved finds its line, and who waits for whom until it has. */
#ifndef VNET_AWAY_LENT_H
#define VNET_AWAY_LENT_H

#include <stdbool.h>
#include <sys/un.h>

struct err;

/* The session takes it: a connected socket; -ENOENT, with @e unset, when there is none. */
int vnet_away_connect_lent(const char *runtime, const char *id, struct err *e);

/* Of the line for session @id, in the gateway's directory @dir. */
int vnet_away_lent_address(int dir, const char *id, struct sockaddr_un *ret, struct err *e);
/* The one who connects, or -ECONNRESET when the stream @in ends first. */
int vnet_away_accept_one(int listener, int in);
/*
 * A thread: the mover's word that the session is given away; without it his end is that of the
 * process.
 */
void *vnet_away_await_word(void *ctx);
/* True when the session is there, false when its mover is gone. */
bool vnet_away_await_session(int in);

#endif
