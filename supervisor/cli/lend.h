/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lend - the way back to this host's gateway, for a session that migrate moves away from it with
 * its connections.
 *
 *      lend_begin      starts `podrun gateway --lend` for a session that needs it
 *      lend_await      the session can be attached at the other host
 *      lend_keep       it is given away: the line is its own
 *      lend_end        anything else: there is no line, and the connections are here
 */
#ifndef SUPERVISOR_CLI_LEND_H
#define SUPERVISOR_CLI_LEND_H

#include <stdbool.h>
#include <sys/types.h>

struct cli;

struct lend {
	pid_t pid; /* 0: none */
	int life;  /* its stdin: what we say, and our end */
	int said;  /* its stdout */
};
#define LEND_INIT         \
	{                 \
		0, -1, -1 \
	}

/*
 * Session @name goes to @host by the shell's words @ssh, where @podrun is.  Nothing is begun for
 * one that has no connections at this host's gateway, and nothing fails.
 */
void lend_begin(struct lend *l, struct cli *c, const char *name, const char *host, const char *ssh,
	const char *podrun);
/* False when there was one begun, and it has come to nothing. */
bool lend_await(struct lend *l);
void lend_keep(struct lend *l);
/* Returns when it is gone.  Nothing there, or kept: fine. */
void lend_end(struct lend *l);

/* The gateway on another host that it has, as a word of a line; NULL: none.  Freed by the caller. */
char *lend_gateway(struct cli *c, const char *name);

/*
 * The TCP ports at which others may look for the session by its name in DNS (--dns-update) when it
 * has been moved, as vnet/forward.h wants them; NULL: none.  Freed by the caller.
 */
char *lend_ports(struct cli *c, const char *name);
/* It was moved to @host, without connections: leaves a forwarder behind for a while. */
void lend_forward(
	struct cli *c, const char *host, const char *ssh, const char *podrun, const char *ports);

#endif
