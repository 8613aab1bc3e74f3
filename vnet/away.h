/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * away - a gateway on another host, behind a byte stream: `ssh HOST podrun gateway --join`.
 */
#ifndef VNET_AWAY_H
#define VNET_AWAY_H

struct err;

#define VNET_AWAY_SOCKET 3 /* where the carrying process finds its session's socket */

/*
 * Starts a process that carries a session's packets and requests to the gateway at @host.  A
 * connected SOCK_SEQPACKET socket on which it speaks as a gateway of this host would, or a
 * negative errno.  Whether @host can be reached is told by the first answer, or by the end.
 */
int vnet_away_connect(const char *host, struct err *e);

/* That process; ends when the session does, or the line.  Returns the exit code. */
int vnet_away_carry(const char *host);

/*
 * The other end, on stdin and stdout: attaches whoever is there to the gateway of this user,
 * whose directory is @runtime, starting one if needed.  0 at the end of either.
 */
int vnet_away_join(const char *runtime, struct err *e);

/*
 * A session that has moved away keeps this host's gateway.  Goes to @host by ssh, where @podrun (a
 * command) is to borrow() the line for session @id (32 hexadecimal digits); writes a newline to
 * stdout as soon as the session can be attached there.  stdin is its mover's: its end undoes
 * everything, unless a byte came before.  Returns 0 at the end of the line.
 */
int vnet_away_lend(
	const char *runtime, const char *host, const char *podrun, const char *id, struct err *e);
/*
 * Its other end, on stdin and stdout: offers the line to session @id, once.  0 at the end of
 * either.
 */
int vnet_away_borrow(const char *runtime, const char *id, struct err *e);

/*
 * vnet_nsupdate_withdraw on @host, whose addresses and whose key they are: -ECONNRESET if it has
 * not said within half a minute what has become of that.
 */
int vnet_away_withdraw(const char *host, const char *update, struct err *e);
/* Its other end, on stdin and stdout. */
void vnet_away_withdraw_here(void);

#endif
