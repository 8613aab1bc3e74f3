/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * sock - what the socket kinds have in common: options, addresses, queues, diagnostics.
 *
 * Restoring an option has two moments.  Some must be there before a name is given or a connection
 * made (SO_REUSEADDR, IPV6_V6ONLY ...): ckpt_sock_options_early.  All are put right when nothing
 * else is going to happen to the socket: ckpt_sock_options_late.
 */
#ifndef CKPT_KINDS_SOCK_H
#define CKPT_KINDS_SOCK_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/base.h"
#include "ckpt/ckpt.h"

struct ckpt_build;
struct ckpt_dump;
struct ckpt_file;
struct ckpt_inet_diag;
struct ckpt_kind;
struct Pb__InetAddr;
struct Pb__SockCommon;
struct Pb__SockMessage;

/* IP_LOCAL_PORT_RANGE of include/uapi/linux/in.h, which the headers of Debian 12 lack. */
#define IP_LOCAL_PORTS 51

/* SO_DOMAIN, SO_TYPE, SO_PROTOCOL of @fd; -1 where it is not a socket. */
int ckpt_sock_get_int(int fd, int level, int name);

/* ---- options (sock_options.c) --------------------------------------------------------------- */

/* Fills @m (initialised) from @f; what it allocates ckpt_sock_common_fini frees. */
int ckpt_sock_common_dump(
	struct ckpt_dump *d, const struct ckpt_file *f, struct Pb__SockCommon *m, struct err *e);
/*
 * The same of a TCP socket that is made anew: what new ones have as 0 is left out where it is 0.
 * @told: of a list of when nothing happened to it any more; what stands there is not asked.
 */
int ckpt_sock_common_dump_live(struct ckpt_dump *d, const struct ckpt_file *f,
	const struct ckpt_inet_diag *told, struct Pb__SockCommon *m, struct err *e);
/* Frees what ckpt_sock_common_dump put into @m, not @m itself. */
void ckpt_sock_common_fini(struct Pb__SockCommon *m);
/* A new socket of the builder as @m says, close-on-exec. */
int ckpt_sock_create(int domain, const struct Pb__SockCommon *m, struct err *e);
int ckpt_sock_options_early(int fd, const struct Pb__SockCommon *m, struct err *e);
/* Also the file's status flags, owner and mode. */
int ckpt_sock_options_late(
	struct ckpt_build *b, int fd, const struct Pb__SockCommon *m, struct err *e);
/*
 * The same, with less to ask: @fresh remembers what new sockets of one type and protocol, and of
 * both internet families, say.  For sockets that ckpt_sock_create has made, and for which nobody
 * has set other options meanwhile.  NULL: everything is asked.
 */
struct ckpt_sock_fresh;
/* One block, freed with free(); NULL when memory is gone. */
struct ckpt_sock_fresh *ckpt_sock_fresh_new(void);
/* Asks sockets of that family, if they haven't been.  Afterwards several threads may use it. */
void ckpt_sock_fresh_ask(
	struct ckpt_sock_fresh *fresh, int domain, const struct Pb__SockCommon *m);
int ckpt_sock_options_early_of(
	int fd, const struct Pb__SockCommon *m, struct ckpt_sock_fresh *fresh, struct err *e);
int ckpt_sock_options_late_of(struct ckpt_build *b, int fd, const struct Pb__SockCommon *m,
	struct ckpt_sock_fresh *fresh, struct err *e);
/* Room for what is put into a queue before the late options set the socket's own sizes. */
void ckpt_sock_widen(int fd);

/* ---- addresses (sock_addr.c) ---------------------------------------------------------------- */

union ckpt_sockaddr {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage space;
};

/* A new message (ckpt_sock_addr_free frees it), or NULL when memory is gone or @a is no address. */
struct Pb__InetAddr *ckpt_sock_addr_pack(const union ckpt_sockaddr *a);
void ckpt_sock_addr_free(struct Pb__InetAddr *m);
/* The address for a socket of @domain; returns its length, or -EINVAL. */
int ckpt_sock_addr_unpack(
	const struct Pb__InetAddr *m, int domain, union ckpt_sockaddr *ret, struct err *e);
/* The same address and port; an IPv4 address and its form in IPv6 are the same. */
bool ckpt_sock_addr_equal(const union ckpt_sockaddr *a, const union ckpt_sockaddr *b);
/* What tells one connection from another: the same for both of its ends. */
struct ckpt_sock_key {
	uint8_t low[18], high[18];
};
void ckpt_sock_addr_key(const struct ckpt_inet_diag *d, struct ckpt_sock_key *ret);
struct ckpt_dump;
/*
 * Is @fd bound to an address that a network of the session's own has again when it is rebuilt?
 * ERR_UNFREEZABLE: one that a root inside has given it.
 */
int ckpt_sock_addr_check(const struct ckpt_dump *d, int fd, struct err *e);
/* "127.0.0.1:80" or "[::1]:80" */
const char *ckpt_sock_addr_text(const union ckpt_sockaddr *a, char *buf, size_t size);
/* The same of a recorded one, for a kind's `show`; "-" for none, or one that makes no sense. */
void ckpt_sock_addr_show(const struct Pb__InetAddr *m, int domain, FILE *out);

/* ---- queues (sock_queue.c) ------------------------------------------------------------------ */

/* One message, or in a stream a run of bytes; valid during the call that gets it. */
struct ckpt_sock_message {
	const uint8_t *data;
	size_t len;
	int *fds; /* closed afterwards, unless replaced by -1 */
	size_t n_fds;
	bool has_cred; /* with cred: as the calling process sees the numbers */
	struct ucred cred;
	const struct sockaddr *from;
	socklen_t from_len;
};
typedef int (*ckpt_sock_each)(void *ctx, struct ckpt_sock_message *m, struct err *e);

/*
 * Shows everything that waits in the queue of @fd (not TCP), oldest first, and leaves it there.
 * Nobody may use the socket meanwhile; its options are put back.  In a stream, the bytes that
 * descriptors came with are a message of their own.
 */
int ckpt_sock_peek(int fd, ckpt_sock_each each, void *ctx, struct err *e);

/* ---- queues as records (sock_record.c) ------------------------------------------------------ */

/*
 * The queue of @fd as messages: descriptors in flight taken up as files of the dump, numbers of
 * processes and users the session's own.  Freed with ckpt_sock_queue_free.
 */
int ckpt_sock_queue_dump(
	struct ckpt_dump *d, int fd, struct Pb__SockMessage ***ret, size_t *ret_n, struct err *e);
void ckpt_sock_queue_free(struct Pb__SockMessage **messages, size_t n);
/* Users and groups of the host as the session sees them. */
uint32_t ckpt_sock_uid(const struct ckpt_dump *d, uid_t uid);
uint32_t ckpt_sock_gid(const struct ckpt_dump *d, gid_t gid);
/* Bytes in all of them. */
size_t ckpt_sock_queue_bytes(struct Pb__SockMessage *const *messages, size_t n);

/* ---- diagnostics (sock_diag.c) -------------------------------------------------------------- */

/* One socket of the session's network, as sock_diag(7) tells. */
struct ckpt_inet_diag {
	uint32_t ino;  /* 0: no process has it (yet, or any more) */
	uint8_t state; /* TCP_* */
	int domain;
	union ckpt_sockaddr local, remote;
	uint32_t rqueue, wqueue;
	uint8_t shutdown;
	uint32_t peer; /* index of the other end of the connection, or CKPT_SOCK_NONE */
	/* of options what was told of all of these, of TCP */
	bool told;
	bool recverr, recverr_rfc4884, freebind, transparent, bind_address_no_port;
	uint8_t tos;
	uint32_t receive_buffer, send_buffer;
	char congestion[16]; /* TCP_CA_NAME_MAX */
};
#define CKPT_SOCK_NONE UINT32_MAX

#define CKPT_MAX_UNIX_PENDING 4096
struct ckpt_unix_diag {
	uint32_t ino;
	uint8_t type, state;
	bool has_peer;
	uint32_t peer; /* inode number; 0 with has_peer: no process has it (yet, or any more) */
	uint8_t shutdown;
	bool has_node;
	uint32_t node_ino, node_dev;	/* of a path's node */
	uint32_t backlog, queued;	/* of a listening one */
	uint32_t pending_at, n_pending; /* of a listening one: in the list's pending */
};

/* Arrays in one block each, by inode number; freed with free(). */
struct ckpt_inet_diag_list {
	size_t n;
	struct ckpt_inet_diag entries[];
};
struct ckpt_unix_diag_list {
	size_t n, n_pending;
	struct ckpt_unix_diag *entries;
	uint32_t *pending; /* inode numbers of connecting sockets, 0: gone */
};

/*
 * A socket that asks the session's network; -1 with the story in @e.  To make one takes a child,
 * which is better done before the session stands still.
 */
int ckpt_sock_diag_open(const struct ckpt_world *w, struct err *e);
/*
 * All TCP sockets that listen or are, or were, connected, both domains.  @diag: what
 * ckpt_sock_diag_open gave, or -1.
 */
int ckpt_sock_diag_tcp(
	const struct ckpt_world *w, int diag, struct ckpt_inet_diag_list **ret, struct err *e);

struct inet_diag_msg;
struct inet_diag_req_v2;
/* What the kernel says of a socket, @len bytes with its attributes; -errno to leave off. */
typedef int (*ckpt_inet_diag_fn)(void *ctx, const struct inet_diag_msg *m, size_t len);
/*
 * Each TCP socket whose state is in @states (1 << TCP_...), as inet_diag has it.  @diag: of
 * ckpt_sock_diag_open.  0, or -errno of the kernel or of @each.
 */
int ckpt_sock_diag_each(int diag, uint32_t states, ckpt_inet_diag_fn each, void *ctx);
/* The one with the addresses and the cookie of @q, without a walk through all; -ENOENT: none. */
int ckpt_sock_diag_one(
	int diag, const struct inet_diag_req_v2 *q, ckpt_inet_diag_fn each, void *ctx);

/*
 * All unix sockets of the session's network, and of those nested in it whose descriptors are in
 * @nets.
 */
int ckpt_sock_diag_unix(const struct ckpt_world *w, int diag, const int *nets, size_t n_nets,
	struct ckpt_unix_diag_list **ret, struct err *e);
/* The entry with @ino, or NULL. */
const struct ckpt_inet_diag *ckpt_sock_inet_by_ino(
	const struct ckpt_inet_diag_list *list, uint32_t ino);
const struct ckpt_unix_diag *ckpt_sock_unix_by_ino(
	const struct ckpt_unix_diag_list *list, uint32_t ino);
/* The open file of @kind with inode number @ino, looked for around @near first; or NULL. */
struct ckpt_file *ckpt_sock_file(const struct ckpt_dump *d, const struct ckpt_kind *kind,
	const struct ckpt_file *near, uint32_t ino);

#endif
