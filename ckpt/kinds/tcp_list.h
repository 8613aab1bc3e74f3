/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tcp_list - who is connected to whom, asked by a thread of its own.
 *
 * The kernel goes through the whole host's table of connections for it: milliseconds, in which the
 * thread that freezes looks at open files, and asks nothing of the same netlink socket.
 */
#ifndef CKPT_KINDS_TCP_LIST_H
#define CKPT_KINDS_TCP_LIST_H

#include <stdbool.h>

struct ckpt_inet_diag_list;
struct ckpt_world;
struct tcp_list;

/* Has the session's network any TCP socket?  False also where it is not told. */
bool tcp_list_pays(int host_proc, const struct ckpt_world *w);
/*
 * Begins to make the list, of the moment it is made in; @diag: of ckpt_sock_diag_open, and @w stays
 * until the end.  NULL where there is no thread for it.
 */
struct tcp_list *tcp_list_begin(const struct ckpt_world *w, int diag);
/* Waits for it and frees @l; NULL if there is none, for which one asks again to be told why. */
struct ckpt_inet_diag_list *tcp_list_end(struct tcp_list *l);

#endif
