/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * net_text - a session's virtual network in words, as ps, inspect and net ls show it.
 */
#ifndef SUPERVISOR_CLI_NET_TEXT_H
#define SUPERVISOR_CLI_NET_TEXT_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct client_session;

/*
 * "8080->80", "127.0.0.1:53->53/udp", "[::1]:8080->80".  @address: outside, "" for all of the
 * host's.
 */
void net_text_put_port(
	struct buf *b, const char *address, uint32_t host, uint32_t session, bool udp);

/*
 * The network in one cell of a table: "none", or
 * "vnat 10.171.0.2, fd7a:706f:6472::2, 8080->80, gateway: HOST".
 */
void net_text_put_cell(struct buf *b, const struct client_session *s);

/*
 * The residual dependency: what else the session's connections to the outside need now, beside the
 * host on which it is, as a sentence without an end.  "" if that is nothing.
 */
void net_text_put_dependency(struct buf *b, const struct client_session *s);

#endif
