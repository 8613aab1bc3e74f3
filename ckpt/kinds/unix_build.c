// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unix sockets, from records into the kernel.
 *
 *      create   (the first one makes all) Sockets with their names.  Connected ones come in pairs,
 *               and before those that listen.  A pair without names is a socketpair; where one
 *               end has a name it is the accepted end of a connection to a listening socket made
 *               for the moment: only accept(2) gives a name that another socket has as well.
 *      link     Queues are filled by sending from the other end; the backlog by connecting again;
 *               ends whose peer is gone lose the stand-in they had until now.
 *      finish   What would have been in the way: shutdown, options, deleted nodes.
 *
 * A datagram keeps the address of its sender.  It is sent by the socket that has this name if
 * there is one, otherwise by one made for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>

#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/kinds/unix.h"
#include "proto/sockets.pb-c.h"

#define MAX_PENDING 65536

/* One socket while it is being made; ckpt_record.state. */
struct end {
	Pb__Unix *m;
	uint32_t id;
	int fd;	      /* made with its peer, until its own create takes it */
	int stand_in; /* the other end while its peer is gone; -1 */
	bool made;
	struct unix_address address;
	struct unix_address stand_in_address; /* of a datagram socket to connect to */
};

static struct end *end_of_record(struct ckpt_record *r, struct err *e)
{
	struct end *u = r->state;

	if (u)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u) {
		err_errno(e, -ENOMEM, "unix socket");
		return NULL;
	}
	u->m = pb__unix__unpack(NULL, r->len, r->body);
	if (!u->m || !u->m->common || u->m->n_pending > MAX_PENDING) {
		pb__unix__free_unpacked(u->m, NULL);
		free(u);
		ckpt_common_bad(r, e);
		return NULL;
	}
	u->id = (uint32_t)r->subject;
	u->fd = u->stand_in = -1;
	return r->state = u;
}

/* The socket that record @id describes; NULL if there is none. */
static struct end *end_of(struct ckpt_build *b, uint32_t id, struct err *e)
{
	struct ckpt_record *r = ckpt_build_record(b, PROTO_KIND_UNIX, id);

	if (!r) {
		err_set(e, ERR_IMAGE, -EBADMSG, "a unix socket's peer is missing");
		return NULL;
	}
	return end_of_record(r, e);
}

static int fd_of(struct ckpt_build *b, const struct end *u)
{
	const struct ckpt_build_file *f = ckpt_build_file(b, u->id);

	return u->fd >= 0 || !f ? u->fd : f->fd;
}

static struct unix_name name_of(const struct end *u)
{
	return (struct unix_name){u->m->name.data, u->m->name.len};
}

static pid_t cred_pid(const Pb__Unix *m)
{
	return m->peer_cred ? m->peer_cred->pid : 0;
}

/* ---- create --------------------------------------------------------------------------------- */

static bool is_abstract(struct unix_name name)
{
	return name.len && !name.data[0];
}

static int make_socket(struct ckpt_build *b, const struct end *u, struct err *e)
{
	bool inside = b->world->names && is_abstract(name_of(u));
	_cleanup_close_ int fd = inside ? unix_socket_inside(b, u->m->common->type, e)
					: ckpt_sock_create(AF_UNIX, u->m->common, e);
	int r;

	if (fd < 0)
		return fd;
	r = ckpt_sock_options_early(fd, u->m->common, e);
	return r < 0 ? r : take_fd(&fd);
}

/* A backlog may have been made shorter than what waits: it is that only when they have connected. */
static int room(const struct end *u)
{
	return (uint32_t)u->m->backlog < u->m->n_pending ? (int)u->m->n_pending : u->m->backlog;
}

/* A socket alone, with its name. */
static int make_single(struct ckpt_build *b, struct end *u, struct err *e)
{
	/* The node of a connected socket leads nowhere: the tree has it as a plain node. */
	bool reachable = u->m->state != PB__UNIX__STATE__CONNECTED;
	int r = 0;

	u->fd = make_socket(b, u, e);
	if (u->fd < 0)
		return u->fd;
	if (u->m->name.len)
		r = unix_bind(b, u->fd, name_of(u), reachable ? u->m->node : "", u->m->node_mode,
			&u->address, e);
	if (r >= 0 && u->m->state == PB__UNIX__STATE__LISTENING)
		r = unix_listen_as(b, cred_pid(u->m), u->fd, room(u), e);
	u->made = true;
	return r;
}

/* True if some other socket of the image has the same name, so that only accept could give it. */
static bool name_is_shared(struct ckpt_build *b, const struct end *u)
{
	for (size_t i = 0; i < b->n_records; i++) {
		const struct end *o;

		if (!b->records[i].kind || b->records[i].kind->number != PROTO_KIND_UNIX)
			continue;
		o = end_of_record(&b->records[i], NULL);
		if (o && o != u && o->m->name.len == u->m->name.len &&
			!memcmp(o->m->name.data, u->m->name.data, u->m->name.len))
			return true;
	}
	return false;
}

struct connection {
	int type;
	struct unix_name server, client; /* names of the two ends; server's is not empty */
	const Pb__SockCommon *common;	 /* of both, as far as it matters before connecting */
	pid_t listener, connector;
};

/* Connects through a listening socket that exists for this purpose. */
static int connect_pair(struct ckpt_build *b, const struct connection *c, int *ret_server,
	int *ret_client, struct err *e)
{
	_cleanup_close_ int listener = socket(AF_UNIX, c->type | SOCK_CLOEXEC, 0);
	_cleanup_close_ int client = socket(AF_UNIX, c->type | SOCK_CLOEXEC, 0);
	struct unix_address to, own;
	int r;

	if (listener < 0 || client < 0)
		return err_errno(e, -errno, "socket");
	r = unix_bind(b, listener, c->server, "", 0, &to, e);
	if (r >= 0 && c->client.len)
		r = unix_bind(b, client, c->client, "", 0, &own, e);
	if (r >= 0)
		r = unix_listen_as(b, c->listener, listener, 1, e);
	if (r >= 0)
		r = unix_connect_as(b, c->connector, client, &to, e);
	if (r < 0)
		return r;
	*ret_server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (*ret_server < 0)
		return err_errno(e, -errno, "accept");
	*ret_client = take_fd(&client);
	return 0;
}

/* Two connected ends; @peer_name and @peer_cred where there is no record of the second. */
static int make_pair(
	struct ckpt_build *b, const struct end *u, const struct end *p, int ret[2], struct err *e)
{
	struct unix_name mine = name_of(u), theirs = {u->m->peer_name.data, u->m->peer_name.len};
	struct connection c = {.type = u->m->common->type};
	bool serving;

	if (p)
		theirs = name_of(p);
	if (!mine.len && !theirs.len)
		return unix_pair_as(b, cred_pid(u->m), c.type, ret, e);
	serving = mine.len && (!theirs.len || name_is_shared(b, u));
	/* Each end shows the process at the other: the accepted one who connected. */
	c.server = serving ? mine : theirs;
	c.client = serving ? theirs : mine;
	c.connector = serving ? cred_pid(u->m) : p ? cred_pid(p->m) : 0;
	c.listener = serving ? (p ? cred_pid(p->m) : 0) : cred_pid(u->m);
	return connect_pair(b, &c, &ret[!serving], &ret[serving], e);
}

static bool is_stream(const struct end *u)
{
	return u->m->common->type != SOCK_DGRAM;
}

/* True if only a socketpair can have made @u's connection. */
static bool is_dgram_pair(const struct end *u, const struct end *p)
{
	return !is_stream(u) && (!u->m->name.len || !p->m->name.len) &&
	       p->m->peer_kind == PB__UNIX__PEER__FILE && p->m->peer == u->id;
}

static int bind_pair_end(struct ckpt_build *b, struct end *u, struct err *e)
{
	u->made = true;
	if (!u->m->name.len || is_stream(u))
		return 0;
	return unix_bind(b, u->fd, name_of(u), u->m->node, u->m->node_mode, &u->address, e);
}

static int make_both(struct ckpt_build *b, struct end *u, struct end *p, struct err *e)
{
	int pair[2], r;

	if (p == u || p->made || p->m->common->type != u->m->common->type ||
		p->m->peer_kind != PB__UNIX__PEER__FILE || p->m->peer != u->id)
		return err_set(e, ERR_IMAGE, -EBADMSG, "unix sockets disagree about their peers");
	if (is_stream(u))
		r = make_pair(b, u, p, pair, e);
	else
		r = unix_pair_as(b, cred_pid(u->m), SOCK_DGRAM, pair, e);
	if (r < 0)
		return r;
	u->fd = pair[0];
	p->fd = pair[1];
	r = ckpt_sock_options_early(u->fd, u->m->common, e);
	if (r >= 0)
		r = ckpt_sock_options_early(p->fd, p->m->common, e);
	if (r >= 0)
		r = bind_pair_end(b, u, e);
	return r < 0 ? r : bind_pair_end(b, p, e);
}

/* A datagram socket with a name, which anybody could send to before it was connected. */
static int make_beside_stand_in(struct ckpt_build *b, struct end *u, struct err *e)
{
	struct unix_name theirs = {u->m->peer_name.data, u->m->peer_name.len};
	int r = make_single(b, u, e);

	if (r < 0)
		return r;
	u->stand_in = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (u->stand_in < 0)
		return err_errno(e, -errno, "socket");
	return unix_bind(b, u->stand_in, theirs, "", 0, &u->stand_in_address, e);
}

/* The two ends of a datagram socketpair, which may have got names later. */
static int make_dgram_pair(struct ckpt_build *b, struct end *u, int ret[2], struct err *e)
{
	struct unix_name theirs = {u->m->peer_name.data, u->m->peer_name.len};
	struct unix_address ignored;
	int r = unix_pair_as(b, cred_pid(u->m), SOCK_DGRAM, ret, e);

	if (r >= 0 && theirs.len)
		r = unix_bind(b, ret[1], theirs, "", 0, &ignored, e);
	if (r >= 0 && u->m->name.len)
		r = unix_bind(b, ret[0], name_of(u), u->m->node, u->m->node_mode, &u->address, e);
	return r;
}

static int make_with_stand_in(struct ckpt_build *b, struct end *u, struct err *e)
{
	int pair[2], r;

	if (!is_stream(u) && u->m->name.len && u->m->peer_name.len)
		return make_beside_stand_in(b, u, e);
	r = is_stream(u) ? make_pair(b, u, NULL, pair, e) : make_dgram_pair(b, u, pair, e);
	if (r < 0)
		return r;
	u->fd = pair[0];
	u->stand_in = pair[1];
	u->made = true;
	return ckpt_sock_options_early(u->fd, u->m->common, e);
}

static int make(struct ckpt_build *b, struct end *u, struct err *e)
{
	struct end *p = NULL;

	if (u->m->peer_kind == PB__UNIX__PEER__FILE) {
		p = end_of(b, u->m->peer, e);
		if (!p)
			return -EBADMSG;
	}
	if (p && (is_stream(u) || is_dgram_pair(u, p)))
		return make_both(b, u, p, e);
	if (u->m->peer_kind == PB__UNIX__PEER__GONE || u->m->peer_kind == PB__UNIX__PEER__SEVERED)
		return make_with_stand_in(b, u, e);
	return make_single(b, u, e);
}

/* Connections first: while no listening socket has their names. */
static int make_all(struct ckpt_build *b, struct err *e)
{
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < b->n_records; i++) {
			struct ckpt_record *r = &b->records[i];
			struct end *u;
			int rc = 0;

			if (!r->kind || r->kind->number != PROTO_KIND_UNIX)
				continue;
			u = end_of_record(r, e);
			if (!u)
				return -EBADMSG;
			if (!u->made && (round || u->m->state == PB__UNIX__STATE__CONNECTED))
				rc = make(b, u, e);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

int unix_create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	struct end *u = end_of_record(r, e);
	int rc = 0;

	if (!u)
		return -EBADMSG;
	if (!u->made)
		rc = make_all(b, e);
	if (rc >= 0)
		*ret_fd = take_fd(&u->fd);
	return rc;
}

/* ---- link ----------------------------------------------------------------------------------- */

/* The socket that datagrams from @name came from, as a descriptor; -1 if it is not of the image. */
static int sender_with(struct ckpt_build *b, const ProtobufCBinaryData *name)
{
	for (size_t i = 0; i < b->n_records && name->len; i++) {
		const struct end *o;

		if (!b->records[i].kind || b->records[i].kind->number != PROTO_KIND_UNIX)
			continue;
		o = end_of_record(&b->records[i], NULL);
		if (o && !is_stream(o) && o->m->name.len == name->len &&
			!memcmp(o->m->name.data, name->data, name->len))
			return fd_of(b, o);
	}
	return -1;
}

/* A nameless socket, or one with a name that nobody has any more. */
static int make_sender(struct ckpt_build *b, const ProtobufCBinaryData *name, struct err *e)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct unix_address a;
	int r = 0;

	if (fd < 0)
		return err_errno(e, -errno, "socket");
	ckpt_sock_widen(fd);
	if (name->len)
		r = unix_bind(b, fd, (struct unix_name){name->data, name->len}, "", 0, &a, e);
	return r < 0 ? r : take_fd(&fd);
}

/* One datagram to a socket that everybody can reach by its name. */
static int send_datagram(
	struct ckpt_build *b, const struct end *u, const Pb__SockMessage *m, struct err *e)
{
	_cleanup_close_ int made = -1;
	struct unix_send s = {.to = &u->address, .message = m};

	if (!u->address.len)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a datagram for a socket without a name");
	s.fd = sender_with(b, &m->from);
	if (s.fd < 0)
		s.fd = made = make_sender(b, &m->from, e);
	return s.fd < 0 ? s.fd : unix_send_all(b, &s, 1, e);
}

static int fill_from(struct ckpt_build *b, const struct end *u, int fd, struct err *e)
{
	_cleanup_free_ struct unix_send *sends = calloc(u->m->n_queue + 1, sizeof(*sends));

	if (!sends)
		return err_errno(e, -ENOMEM, "queue of a socket");
	for (size_t i = 0; i < u->m->n_queue; i++)
		sends[i] = (struct unix_send){.fd = fd, .message = u->m->queue[i]};
	ckpt_sock_widen(fd);
	return unix_send_all(b, sends, u->m->n_queue, e);
}

static int fill(struct ckpt_build *b, const struct end *u, const struct end *p, struct err *e)
{
	int r = 0;

	if (!u->m->n_queue)
		return 0;
	if (u->stand_in >= 0 && !u->stand_in_address.len)
		return fill_from(b, u, u->stand_in, e);
	if (p && (is_stream(u) || is_dgram_pair(u, p)))
		return fill_from(b, u, fd_of(b, p), e);
	if (is_stream(u))
		return err_set(e, ERR_IMAGE, -EBADMSG, "bytes in a socket without a peer");
	for (size_t i = 0; i < u->m->n_queue && r >= 0; i++)
		r = send_datagram(b, u, u->m->queue[i], e);
	return r;
}

/* One that waits to be accepted.  For a place in the backlog nobody would ever stop waiting. */
static int connect_pending(struct ckpt_build *b, const struct ckpt_build_file *f,
	const struct unix_address *to, struct err *e)
{
	int flags = fcntl(f->fd, F_GETFL), r;

	fcntl(f->fd, F_SETFL, flags | O_NONBLOCK);
	r = unix_connect_as(b, f->holder, f->fd, to, e);
	fcntl(f->fd, F_SETFL, flags);
	/* As one of another type is by an abstract name: nobody refuses but a lie. */
	if (r == -ECONNREFUSED)
		return err_reclass(e, ERR_IMAGE);
	if (r != -EAGAIN)
		return r;
	err_set(e, ERR_HOST, r, "fewer connections than before may wait at a socket here");
	return err_hint(e, "net.core.somaxconn of the host limits them");
}

/* The connections that wait to be accepted, in their order; each made by a holder of its file. */
static int fill_backlog(struct ckpt_build *b, const struct end *u, struct err *e)
{
	if (u->m->n_pending && u->m->state != PB__UNIX__STATE__LISTENING)
		return err_set(e, ERR_IMAGE, -EBADMSG,
			"connections wait at a unix socket that does not listen");
	for (size_t i = 0; i < u->m->n_pending; i++) {
		const struct ckpt_build_file *f = ckpt_build_file(b, u->m->pending[i]);
		int r;

		if (!f || f->fd < 0)
			return err_set(e, ERR_IMAGE, -EBADMSG, "a pending connection is missing");
		r = connect_pending(b, f, &u->address, e);
		if (r < 0)
			return r;
	}
	if (u->m->n_pending && room(u) != u->m->backlog)
		return unix_listen_as(b, cred_pid(u->m), fd_of(b, u), u->m->backlog, e);
	return 0;
}

/* What a closed peer leaves: end of file, or ECONNRESET if it had not read everything. */
static void lose_stand_in(struct end *u, int fd)
{
	if (u->m->peer_reset)
		send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	u->stand_in = close_fd(u->stand_in);
}

/* From now on it takes nothing but from its peer. */
static int connect_datagrams(int fd, const struct unix_address *to, struct err *e)
{
	if (!to->len)
		return err_set(e, ERR_IMAGE, -EBADMSG,
			"a unix socket is connected to one that can't be reached");
	if (connect(fd, (const void *)&to->un, to->len) == 0)
		return 0;
	err_errno(e, -errno, "cannot connect a datagram socket again");
	return e->error == -ECONNREFUSED ? err_reclass(e, ERR_IMAGE) : e->error;
}

int unix_link(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct end *u = end_of_record(r, e), *p = NULL;
	int rc, fd;

	if (!u)
		return -EBADMSG;
	fd = fd_of(b, u);
	if (u->m->peer_kind == PB__UNIX__PEER__FILE) {
		p = end_of(b, u->m->peer, e);
		if (!p)
			return -EBADMSG;
	}
	rc = fill(b, u, p, e);
	if (rc >= 0)
		rc = fill_backlog(b, u, e);
	if (rc >= 0 && p && !is_stream(u) && !is_dgram_pair(u, p))
		rc = connect_datagrams(fd, &p->address, e);
	if (rc >= 0 && u->stand_in_address.len)
		rc = connect_datagrams(fd, &u->stand_in_address, e);
	if (rc < 0)
		return rc;
	if (u->stand_in >= 0)
		lose_stand_in(u, fd);
	return 0;
}

/* ---- finish --------------------------------------------------------------------------------- */

int unix_finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct end *u = end_of_record(r, e);
	int fd, rc;

	if (!u)
		return -EBADMSG;
	fd = fd_of(b, u);
	if (u->m->shutdown & 3)
		shutdown(fd, (u->m->shutdown & 3) == 3 ? SHUT_RDWR
			     : (u->m->shutdown & 1)    ? SHUT_RD
						       : SHUT_WR);
	rc = ckpt_sock_options_late(b, fd, u->m->common, e);
	unix_names_end(b);
	pb__unix__free_unpacked(u->m, NULL);
	free(u);
	r->state = NULL;
	return rc;
}
