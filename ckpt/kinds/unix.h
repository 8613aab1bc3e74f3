/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unix - the parts of the kind, private to it.
 *
 *      unix.c        kernel -> record
 *      unix_build.c  record -> kernel: sockets, connections, queues
 *      unix_node.c   finds nodes
 *      unix_name.c   gives sockets their names, wherever their nodes are now
 *      unix_task.c   does things as a certain process, for SO_PEERCRED and SCM_CREDENTIALS
 */
#ifndef CKPT_KINDS_UNIX_H
#define CKPT_KINDS_UNIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

#include "ckpt/kind.h"

struct Pb__SockMessage;
struct Pb__Unix;

/* The restore side's ops of kind UNIX (ckpt/kind.h), in unix_build.c. */
int unix_create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e);
int unix_link(struct ckpt_build *b, struct ckpt_record *r, struct err *e);
int unix_finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e);

/* ---- names ---------------------------------------------------------------------------------- */

#define UNIX_NAME_MAX 108 /* of sun_path */

/* A name as bind(2) takes it: a path, or abstract behind a NUL byte. */
struct unix_name {
	const uint8_t *data;
	size_t len;
};

/* How to reach a socket. */
struct unix_address {
	struct sockaddr_un un;
	socklen_t len; /* 0: it can't be reached */
};

/*
 * Gives @fd exactly the name @name.  A path's node comes to lie at @node, replacing a socket's
 * node there, with permissions @mode; if @node is "" it lies in the staging directory, for as
 * long as the build needs it, and is deleted with that.
 */
int unix_bind(struct ckpt_build *b, int fd, struct unix_name name, const char *node, mode_t mode,
	struct unix_address *ret, struct err *e);
/*
 * The path of node @ino in the session, which may be @guess, and its mode; NULL: it is nowhere to
 * be found (or no memory).  Caller frees.
 */
char *unix_find_node(
	const struct ckpt_world *w, const char *guess, uint32_t ino, mode_t *ret_mode);
/* Removes the staging directory. */
void unix_names_end(struct ckpt_build *b);

/* ---- as a certain process ------------------------------------------------------------------- */

/*
 * Runs listen(2), connect(2) or socketpair(2) on descriptors of the builder as process @vpid of the
 * session: inside it if it lives, in a short-lived process with its number if it has ended.  If
 * neither can be (@vpid is 0, or not free), the builder does it itself.
 */
int unix_listen_as(struct ckpt_build *b, pid_t vpid, int fd, int backlog, struct err *e);
int unix_connect_as(
	struct ckpt_build *b, pid_t vpid, int fd, const struct unix_address *to, struct err *e);
int unix_pair_as(struct ckpt_build *b, pid_t vpid, int type, int ret[2], struct err *e);

/* A socket that one of the session's processes has made: the builder's descriptor. */
int unix_socket_inside(struct ckpt_build *b, int type, struct err *e);

/* One message as it is to be sent. */
struct unix_send {
	int fd;			       /* by this socket */
	const struct unix_address *to; /* NULL: to its peer */
	const struct Pb__SockMessage *message;
};
/* Sends @n messages; those with credentials under the right numbers. */
int unix_send_all(struct ckpt_build *b, const struct unix_send *sends, size_t n, struct err *e);

#endif
