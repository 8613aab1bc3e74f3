// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TCP within the session, from records into the kernel.
 *
 * Connections are made as they were made at first: by connecting.  The kernel then has every
 * sequence number, window and timer right by itself, whatever kernel it is.
 *
 *      create   (the first one makes all) connections, each through a listening socket that
 *               exists for the moment; then bound sockets; then the session's listening ones
 *      data     bytes are sent by the peer: what the receiver takes is received, what it does
 *               not stays unsent, as it was
 *      link     shutdown, closing of stand-ins for peers nobody has any more, backlogs
 *      finish   connects that had not been answered, or refused; options
 *
 * SO_REUSEADDR is on for all until the end: addresses are given in another order than they were.
 * What it takes to have these on the host's network is in tcp_address.h.
 * Where more is on its way than a fresh socket would take, the defaults for buffers are raised for
 * the moment of creation (net.ipv4.tcp_rmem and tcp_wmem are the session network's own); on the
 * host's network a receiver is only told to have room.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/kinds/tcp.h"
#include "ckpt/kinds/tcp_address.h"
#include "ckpt/kinds/tcp_end.h"
#include "ckpt/kinds/tcp_sizes.h"
#include "proto/sockets.pb-c.h"

#define PATIENCE_MS 2000
#define SMALL_QUEUE 16384
#define MAX_QUEUE   (1ull << 30)
#define TIMESTAMPS  12 /* bytes that the option takes from every segment */

bool tcp_end_is_live(const struct tcp_end *u)
{
	return u->m->peer_kind == PB__TCP__PEER__OUTSIDE &&
	       u->m->state == PB__TCP__STATE__CONNECTED;
}

/* Its peer is another's: it has been reset. */
static void lose(struct tcp_end *u)
{
	u->lost = true;
	u->m->live->state = 0;
	if (u->m->state == PB__TCP__STATE__CONNECTED) {
		u->m->severed = true;
		u->m->fin_sent = true;
		u->m->peer_kind = PB__TCP__PEER__RESET;
	}
}

int tcp_read(struct ckpt_record *r, struct err *e)
{
	struct tcp_end *u = calloc(1, sizeof(*u));
	const Pb__Tcp *m;

	if (!u)
		return err_errno(e, -ENOMEM, "TCP socket");
	m = u->m = pb__tcp__unpack(NULL, r->len, r->body);
	if (!m || !m->common || (m->domain != AF_INET && m->domain != AF_INET6) ||
		m->common->type != SOCK_STREAM || m->received > MAX_QUEUE ||
		m->unsent > MAX_QUEUE ||
		(m->peer_kind == PB__TCP__PEER__OUTSIDE && !tcp_live_valid(m))) {
		pb__tcp__free_unpacked(u->m, NULL);
		free(u);
		return ckpt_common_bad(r, e);
	}
	u->id = (uint32_t)r->subject;
	u->fd = u->stand_in = -1;
	r->state = u;
	return 0;
}

struct tcp_end *tcp_end_of(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct tcp_end *u;

	if (!r->state && tcp_read(r, e) < 0)
		return NULL;
	u = r->state;
	if (u->placed)
		return u;
	if (u->m->peer_kind == PB__TCP__PEER__OUTSIDE && (!b->world->vnet || b->world->vnet_lost))
		lose(u);
	/* Its addresses were those of another place: it gets whatever is free. */
	if (u->m->severed) {
		pb__inet_addr__free_unpacked(take_ptr(u->m->local), NULL);
		pb__inet_addr__free_unpacked(take_ptr(u->m->remote), NULL);
	}
	u->placed = true;
	return u;
}

/* Its own, if it is connected to itself. */
static struct tcp_end *peer_of(struct ckpt_build *b, const struct tcp_end *u, struct err *e)
{
	struct ckpt_record *r = ckpt_build_record(b, PROTO_KIND_TCP, u->m->peer);
	struct tcp_end *p = r ? tcp_end_of(b, r, e) : NULL;

	if (!p) {
		err_set(e, ERR_IMAGE, -EBADMSG, "a TCP socket's peer is missing");
		return NULL;
	}
	return p;
}

int tcp_end_fd(struct ckpt_build *b, const struct tcp_end *u)
{
	const struct ckpt_build_file *f = ckpt_build_file(b, u->id);

	return u->fd >= 0 || !f ? u->fd : f->fd;
}

/* Where bytes for @u are written; -1 if it has no peer yet. */
static int source_of(struct ckpt_build *b, const struct tcp_end *u, struct err *e)
{
	const struct tcp_end *p;

	if (u->stand_in >= 0)
		return u->stand_in;
	p = u->m->peer_kind == PB__TCP__PEER__FILE ? peer_of(b, u, e) : NULL;
	return p ? tcp_end_fd(b, p) : -1;
}

/* ---- sockets -------------------------------------------------------------------------------- */

static int set_int(int fd, int level, int name, int value)
{
	return setsockopt(fd, level, name, &value, sizeof(value));
}

/* A socket as @m says that can take an address others have had. */
static int make_socket(const Pb__Tcp *m, struct err *e)
{
	_cleanup_close_ int fd = ckpt_sock_create(m->domain, m->common, e);
	bool live = m->state == PB__TCP__STATE__CONNECTED;
	int r;

	if (fd < 0)
		return fd;
	r = ckpt_sock_options_early(fd, m->common, e);
	if (r < 0)
		return r;
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	/* A connection does nothing with it but to keep others waiting while it is made. */
	if (live)
		set_int(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, 0);
	if (m->mss && m->mss < UINT16_MAX)
		set_int(fd, IPPROTO_TCP, TCP_MAXSEG, (int)m->mss + (live ? TIMESTAMPS : 0));
	return take_fd(&fd);
}

/* ---- connections ---------------------------------------------------------------------------- */

/* Two records of one connection; that of the accepted end first. */
struct sides {
	const Pb__Tcp *server, *client;
	const Pb__InetAddr *server_at, *client_at; /* NULL: any */
};

/*
 * An address of the loopback device that can be reached from @from, or by who has none yet: who is
 * bound to a mapped address, as an IPv6 socket is that was accepted from IPv4, reaches mapped ones
 * only.
 */
static socklen_t loopback_for(int domain, const Pb__InetAddr *from, union ckpt_sockaddr *ret)
{
	union ckpt_sockaddr a;

	memset(ret, 0, sizeof(*ret));
	ret->any.sa_family = (sa_family_t)domain;
	if (domain == AF_INET) {
		ret->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(ret->in);
	}
	ret->in6.sin6_addr = in6addr_loopback;
	if (from && ckpt_sock_addr_unpack(from, AF_INET6, &a, NULL) >= 0 &&
		IN6_IS_ADDR_V4MAPPED(&a.in6.sin6_addr)) {
		ret->in6.sin6_addr = a.in6.sin6_addr;
		ret->in6.sin6_addr.s6_addr32[3] = htonl(INADDR_LOOPBACK);
	}
	return sizeof(ret->in6);
}

static int listen_for(
	const struct sides *s, union ckpt_sockaddr *ret, socklen_t *ret_len, struct err *e)
{
	_cleanup_close_ int fd = make_socket(s->server, e);
	int r = 0;

	if (fd < 0)
		return fd;
	if (s->server_at) {
		r = tcp_bind_to(fd, s->server->domain, s->server_at, e);
	} else {
		*ret_len = loopback_for(s->server->domain, s->client_at, ret);
		if (bind(fd, &ret->any, *ret_len) < 0)
			r = err_errno(e, -errno, "bind");
	}
	if (r < 0)
		return r;
	*ret_len = sizeof(*ret);
	if (listen(fd, 1) < 0 || getsockname(fd, &ret->any, ret_len) < 0)
		return err_errno(e, -errno, "cannot listen for a connection of the image");
	return take_fd(&fd);
}

/* Makes the connection; the two descriptors. */
static int make_connection(const struct sides *s, int *ret_server, int *ret_client, struct err *e)
{
	union ckpt_sockaddr to;
	socklen_t len;
	_cleanup_close_ int listener = listen_for(s, &to, &len, e);
	_cleanup_close_ int client = -1;
	int r = 0;

	if (listener < 0)
		return listener;
	/* The client may be of the other family, connected to a mapped address. */
	if (s->server_at) {
		r = ckpt_sock_addr_unpack(s->server_at, s->client->domain, &to, e);
		len = (socklen_t)r;
	}
	if (r < 0)
		return r;
	client = make_socket(s->client, e);
	if (client < 0)
		return client;
	if (s->client_at && s->client->remote)
		r = tcp_bind_to_connect(client, s->client->domain, s->client_at, e);
	else if (s->client_at)
		r = tcp_bind_to(client, s->client->domain, s->client_at, e);
	/* One that is closed on both sides still shows its address, if nobody else has it. */
	if (r == -EADDRINUSE && !s->client->remote)
		r = 0;
	if (r >= 0)
		r = tcp_connect_to(client, &to, len, e);
	if (r < 0)
		return r;
	*ret_server = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	if (*ret_server < 0)
		return err_errno(e, -errno, "accept");
	*ret_client = take_fd(&client);
	return 0;
}

/* The ports the session listens on, one bit each. */
struct ports {
	uint8_t bits[8192];
};

static void note_ports(struct ckpt_build *b, struct ports *p)
{
	for (size_t i = 0; i < b->n_records; i++) {
		const struct tcp_end *o;

		if (!b->records[i].kind || b->records[i].kind->number != PROTO_KIND_TCP)
			continue;
		o = tcp_end_of(b, &b->records[i], NULL);
		if (o && o->m->state == PB__TCP__STATE__LISTENING && o->m->local)
			p->bits[(o->m->local->port & 0xffff) / 8] |=
				(uint8_t)(1 << (o->m->local->port % 8));
	}
}

/* True if the session listens on the port of @a: then that end was accepted there. */
static bool is_served(const struct ports *p, const Pb__InetAddr *a)
{
	return a && (p->bits[(a->port & 0xffff) / 8] & (1 << (a->port % 8)));
}

/* Both sides begin to connect at the same time, as one. */
static int make_loop(const struct ckpt_build *b, struct tcp_end *u, struct err *e)
{
	union ckpt_sockaddr local, remote;
	int len = ckpt_sock_addr_unpack(u->m->local, u->m->domain, &local, e), r;

	if (len < 0 || ckpt_sock_addr_unpack(u->m->remote, u->m->domain, &remote, e) < 0)
		return -EBADMSG;
	if (!ckpt_sock_addr_equal(&local, &remote))
		return err_set(
			e, ERR_IMAGE, -EBADMSG, "a TCP socket is its own peer at two addresses");
	u->fd = make_socket(u->m, e);
	r = u->fd < 0 ? u->fd : tcp_bind_to(u->fd, u->m->domain, u->m->local, e);
	r = r < 0 ? r : tcp_connect_to(u->fd, &remote, (socklen_t)len, e);
	if (r >= 0)
		tcp_hold_back(b, u->fd);
	return r;
}

static int make_connected(
	struct ckpt_build *b, struct tcp_end *u, const struct ports *ports, struct err *e)
{
	struct tcp_end *p = NULL;
	struct sides s;
	int r, *peer = &u->stand_in;
	bool serving;

	if (u->m->peer_kind == PB__TCP__PEER__FILE) {
		p = peer_of(b, u, e);
		if (!p)
			return -EBADMSG;
		if (p == u)
			return make_loop(b, u, e);
		if (p->m->state != PB__TCP__STATE__CONNECTED ||
			p->m->peer_kind != PB__TCP__PEER__FILE || p->m->peer != u->id || p->fd >= 0)
			return err_set(
				e, ERR_IMAGE, -EBADMSG, "TCP sockets disagree about their peers");
		peer = &p->fd;
	}
	serving = u->m->remote && is_served(ports, u->m->local);
	s.server = serving || !p ? u->m : p->m;
	s.client = serving && p ? p->m : u->m;
	s.server_at = serving ? u->m->local : u->m->remote;
	s.client_at = serving ? u->m->remote : u->m->local;
	/* An IPv6 socket can have a stand-in of its own family whatever the address. */
	r = serving ? make_connection(&s, &u->fd, peer, e) : make_connection(&s, peer, &u->fd, e);
	if (r >= 0) {
		tcp_hold_back(b, u->fd);
		tcp_hold_back(b, *peer);
	}
	return r;
}

static int make_idle(const struct tcp_end *u, int fd, struct err *e)
{
	bool pending = u->m->peer_kind == PB__TCP__PEER__PENDING;

	if (!u->m->local)
		return 0;
	return (pending ? tcp_bind_to_connect : tcp_bind_to)(fd, u->m->domain, u->m->local, e);
}

static int make_listening(const struct tcp_end *u, int fd, struct err *e)
{
	int r = make_idle(u, fd, e);

	if (r >= 0 && listen(fd, u->m->backlog) < 0)
		r = err_errno(e, -errno, "cannot listen again");
	return r;
}

static bool is_connection(const struct tcp_end *u)
{
	return !tcp_end_is_live(u) && u->m->state == PB__TCP__STATE__CONNECTED &&
	       u->m->peer_kind != PB__TCP__PEER__PENDING;
}

static int make_alone(struct tcp_end *u, struct err *e)
{
	u->fd = make_socket(u->m, e);
	if (u->fd < 0)
		return u->fd;
	return u->m->state == PB__TCP__STATE__LISTENING ? make_listening(u, u->fd, e)
							: make_idle(u, u->fd, e);
}

/* Connections first: while nothing else has their addresses. */
static int make_all(struct ckpt_build *b, struct err *e)
{
	struct ports ports = {0};

	note_ports(b, &ports);
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < b->n_records; i++) {
			struct ckpt_record *r = &b->records[i];
			bool listening;
			struct tcp_end *u;
			int rc = 0;

			if (!r->kind || r->kind->number != PROTO_KIND_TCP)
				continue;
			u = tcp_end_of(b, r, e);
			if (!u)
				return -EBADMSG;
			listening = u->m->state == PB__TCP__STATE__LISTENING;
			if (u->fd >= 0)
				continue;
			if (round == 0 && is_connection(u))
				rc = make_connected(b, u, &ports, e);
			else if (!is_connection(u) && round == (listening ? 2 : 1))
				rc = make_alone(u, e);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

/* ---- sizes ---------------------------------------------------------------------------------- */

static uint64_t largest_queue(struct ckpt_build *b)
{
	uint64_t largest = 0;

	for (size_t i = 0; i < b->n_records; i++) {
		const struct tcp_end *u;

		if (!b->records[i].kind || b->records[i].kind->number != PROTO_KIND_TCP)
			continue;
		u = tcp_end_of(b, &b->records[i], NULL);
		if (u && !tcp_end_is_live(u))
			largest = MAX(largest, u->m->received + u->m->unsent);
	}
	return MIN(largest, (uint64_t)(256 << 20));
}

/* The kernel counts overhead into a buffer's size: four times the bytes is plenty. */
static int make_all_sized(struct ckpt_build *b, struct err *e)
{
	uint64_t largest = largest_queue(b), plenty = 4 * largest + 65536;
	struct tcp_sizes sizes;
	int r;

	tcp_sizes_begin(&sizes, b);
	r = tcp_many_make(b, &sizes, e);
	if (r >= 0 && largest > SMALL_QUEUE)
		tcp_sizes_raise(&sizes, plenty, plenty);
	else
		tcp_sizes_end(&sizes);
	if (r >= 0)
		r = make_all(b, e);
	tcp_sizes_end(&sizes);
	return r;
}

/* ---- stages --------------------------------------------------------------------------------- */

int tcp_create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	struct tcp_end *u = tcp_end_of(b, r, e);
	int rc;

	if (!u)
		return -EBADMSG;
	if (u->fd < 0) {
		rc = make_all_sized(b, e);
		if (rc < 0)
			return rc;
	}
	*ret_fd = take_fd(&u->fd);
	return 0;
}

int tcp_data(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset, const void *data,
	size_t len, struct err *e)
{
	struct tcp_end *u = tcp_end_of(b, r, e);
	int fd;

	if (u && tcp_end_is_live(u))
		return tcp_live_data(&u->live, tcp_end_fd(b, u), u->m, offset, data, len, e);
	fd = u && u->m->state == PB__TCP__STATE__CONNECTED ? source_of(b, u, e) : -1;
	/* What it has sent itself has gone with whom it was for. */
	if (u && u->lost && offset == u->filled + u->dropped && offset + len > u->m->received) {
		size_t all = len;

		len = offset < u->m->received ? (size_t)(u->m->received - offset) : 0;
		u->dropped += all - len;
		offset = u->filled;
	}
	if (fd < 0 || offset != u->filled)
		return ckpt_common_bad(r, e);
	if (!offset && b->world->ns_net < 0)
		tcp_queue_invite(tcp_end_fd(b, u), u->m->received + u->m->unsent);
	for (size_t at = 0; at < len;) {
		struct pollfd p = {.fd = fd, .events = POLLOUT};
		ssize_t n =
			send(fd, (const char *)data + at, len - at, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0)
			at += (size_t)n;
		else if (errno != EAGAIN)
			return err_errno(e, -errno, "cannot fill a TCP queue");
		else if (poll(&p, 1, PATIENCE_MS) != 1)
			return err_set(e, ERR_HOST, -ENOBUFS,
				"this host's TCP buffers are too small for what was on its way");
	}
	u->filled += len;
	return 0;
}

/* Lets what could be read already arrive; it is on the loopback device. */
static void await(int fd, uint64_t bytes)
{
	for (int i = 0; i < PATIENCE_MS / 10 && tcp_queue_received(fd) < bytes; i++)
		poll(NULL, 0, i < 10 ? 1 : 10);
}

static void end_stand_in(const struct ckpt_build *b, struct tcp_end *u)
{
	const struct linger reset = {.l_onoff = 1};

	tcp_let_go(b, u->stand_in, NULL);
	if (u->m->peer_kind == PB__TCP__PEER__VANISHED)
		set_int(u->stand_in, IPPROTO_TCP, TCP_REPAIR, 1);
	else if (u->m->peer_kind == PB__TCP__PEER__RESET)
		setsockopt(u->stand_in, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	u->stand_in = close_fd(u->stand_in);
}

/*
 * More may wait at a listener than its backlog has room for: it may have been made shorter.  Only for
 * as long as those connect: whoever had no answer must find it full again.
 */
static void widen(struct ckpt_build *b, const struct tcp_end *listener, bool wide)
{
	if (listener->m->state == PB__TCP__STATE__LISTENING)
		listen(tcp_end_fd(b, listener), wide ? INT_MAX : listener->m->backlog);
}

/* How many wait there.  Whoever connects hears that it is connected before the listener does. */
static uint32_t waiting(struct ckpt_build *b, const struct tcp_end *listener)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (listener->m->state != PB__TCP__STATE__LISTENING)
		return UINT32_MAX;
	getsockopt(tcp_end_fd(b, listener), IPPROTO_TCP, TCP_INFO, &info, &len);
	return info.tcpi_unacked;
}

static void await_waiting(struct ckpt_build *b, const struct tcp_end *listener, uint32_t before)
{
	for (int i = 0; i < 20 && waiting(b, listener) <= before; i++)
		poll(NULL, 0, i < 10 ? 1 : 10);
}

/* A connection to wait in a backlog, whose other side nobody has any more. */
static int leave_orphan(const struct tcp_end *u, const Pb__InetAddr *from, struct err *e)
{
	union ckpt_sockaddr to;
	_cleanup_close_ int fd = socket(u->m->domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int len = ckpt_sock_addr_unpack(u->m->local, u->m->domain, &to, e), r;

	if (len < 0)
		return len;
	if (fd < 0)
		return err_errno(e, -errno, "socket");
	set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	r = tcp_bind_to_connect(fd, u->m->domain, from, e);
	return r < 0 ? r : tcp_connect_to(fd, &to, (socklen_t)len, e);
}

static int leave_orphans(struct ckpt_build *b, const struct tcp_end *u, struct err *e)
{
	uint32_t before;
	int r = 0;

	if (!u->m->n_orphans)
		return 0;
	widen(b, u, true);
	for (size_t i = 0; i < u->m->n_orphans && r >= 0; i++) {
		before = waiting(b, u);
		r = leave_orphan(u, u->m->orphans[i], e);
		if (r >= 0 && before != UINT32_MAX)
			await_waiting(b, u, before);
	}
	widen(b, u, false);
	return r;
}

static int join_backlog(struct ckpt_build *b, const struct tcp_end *u, int fd, struct err *e)
{
	const struct tcp_end *listener = peer_of(b, u, e);
	union ckpt_sockaddr to;
	int len = ckpt_sock_addr_unpack(u->m->remote, u->m->domain, &to, e), r;
	uint32_t before;

	if (!listener || len < 0)
		return -EBADMSG;
	widen(b, listener, true);
	before = waiting(b, listener);
	r = tcp_connect_to(fd, &to, (socklen_t)len, e);
	if (r >= 0 && before != UINT32_MAX)
		await_waiting(b, listener, before);
	widen(b, listener, false);
	return r;
}

/* Whoever had connected from outside does so once more. */
static int call_again(const struct ckpt_build *b, const struct tcp_end *u, struct err *e)
{
	const struct ckpt_world *w = b->world;

	if (!w->vnet || w->vnet_lost || !w->redo || !u->m->local)
		return 0;
	for (size_t i = 0; i < u->m->n_waiting; i++) {
		union ckpt_sockaddr from;
		int r = ckpt_sock_addr_unpack(u->m->waiting[i], u->m->domain, &from, e);

		tcp_live_unmap(&from);
		if (r >= 0)
			r = w->redo(w->ctx, &from.any, (uint16_t)u->m->local->port, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int tcp_link(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct tcp_end *u = tcp_end_of(b, r, e);
	int fd, rc = 0;

	if (!u)
		return -EBADMSG;
	fd = tcp_end_fd(b, u);
	if (tcp_end_is_live(u))
		rc = tcp_live_link(&u->live, fd, u->m, e);
	if (u->m->peer_kind == PB__TCP__PEER__PENDING)
		rc = join_backlog(b, u, fd, e);
	if (rc >= 0)
		rc = leave_orphans(b, u, e);
	if (rc >= 0)
		rc = call_again(b, u, e);
	if (rc < 0)
		return rc;
	if (is_connection(u))
		await(fd, MIN(u->m->received, u->filled));
	if (u->stand_in >= 0)
		end_stand_in(b, u);
	if (u->m->fin_sent && !tcp_end_is_live(u))
		shutdown(fd, SHUT_WR);
	if (u->m->no_receive)
		shutdown(fd, SHUT_RD);
	return 0;
}

/* A connect that nobody has answered goes on as it began. */
static int connect_on(const struct tcp_end *u, int fd, struct err *e)
{
	union ckpt_sockaddr to;
	int len = ckpt_sock_addr_unpack(u->m->remote, u->m->domain, &to, e);

	if (len < 0)
		return len;
	if (u->m->peer_kind == PB__TCP__PEER__OUTSIDE && !u->lost) {
		int r = tcp_live_number_syn(fd, u->m->live, e);

		if (r < 0)
			return r;
	}
	io_set_nonblock(fd, true);
	if (connect(fd, &to.any, (socklen_t)len) < 0 && errno != EINPROGRESS)
		log_info("a connect is not pending any more: %s", strerror(errno));
	return 0;
}

/* Nobody listens at a port that somebody has for the moment. */
static void be_refused(const struct tcp_end *u, int fd)
{
	_cleanup_close_ int other = socket(u->m->domain, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	union ckpt_sockaddr to;
	socklen_t len = loopback_for(u->m->domain, u->m->local, &to);

	io_set_nonblock(fd, true);
	/* Where there is no IPv6 nobody has ::1. */
	if (other < 0 || bind(other, &to.any, len) < 0 || getsockname(other, &to.any, &len) < 0 ||
		connect(fd, &to.any, len) == 0 || errno != EINPROGRESS ||
		poll(&p, 1, PATIENCE_MS) != 1)
		log_info("the failure of a connect has been forgotten");
}

static int finish_alone(struct ckpt_build *b, const struct tcp_end *u, int fd, struct err *e)
{
	int r = 0;

	if (u->m->state == PB__TCP__STATE__CONNECTING)
		r = connect_on(u, fd, e);
	else if (u->m->state == PB__TCP__STATE__REFUSED)
		be_refused(u, fd);
	return r < 0 ? r : ckpt_sock_options_late(b, fd, u->m->common, e);
}

int tcp_finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct tcp_end *u = tcp_end_of(b, r, e);
	struct linger *as = NULL;
	bool held;
	int fd, rc = 0;

	if (!u)
		return -EBADMSG;
	fd = tcp_end_fd(b, u);
	held = u->m && is_connection(u);
	if (u->m && tcp_end_is_live(u))
		rc = tcp_many_finish(b, e);
	if (held)
		tcp_let_go(b, fd, NULL);
	if (u->m && rc >= 0)
		rc = finish_alone(b, u, fd, e);
	if (held)
		as = tcp_hold_on(b, fd);
	tcp_live_fini(&u->live);
	pb__tcp__free_unpacked(u->m, NULL);
	free(u);
	r->state = as;
	return rc;
}

void tcp_release(struct ckpt_build *b, struct ckpt_record *r)
{
	const struct ckpt_build_file *f = ckpt_build_file(b, (uint32_t)r->subject);

	if (f && r->state)
		tcp_let_go(b, f->fd, r->state);
}
