// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TCP within the session, from the kernel into records; tcp_build.c is the way back.
 *
 * Theory of operation
 *
 * In a session's own network both ends of every connection are in the session.  So a record does
 * not hold a protocol's state (sequence numbers, windows, timers: nobody inside can see them) but
 * what the two ends agree on: who is connected to whom, which bytes are on their way and who has
 * said that no more will come.  From that any kernel makes the connection again by connecting.
 *
 *      what is asked                            what it means
 *      ESTABLISHED ... CLOSING, LAST_ACK        CONNECTED, with or without fin_sent
 *      CLOSE, but something was received        CONNECTED, CLOSED or RESET by the peer; or REFUSED
 *      the counterpart in INET_DIAG             FILE; without inode: PENDING or CLOSED;
 *                                               none: VANISHED
 *
 * A counterpart without an inode is either not accepted yet or closed; its state tells.  What it
 * still holds nobody can read, so data in one makes the session unfreezable for the moment; a
 * closed one is helped to deliver it.
 *
 * Those that lead out by a virtual network are another matter: OUTSIDE (tcp_live.h).
 *
 * Connections that lead out otherwise (a session on the host's network, or with an interface of the
 * host's) are refused by name, or severed: CLOSED or RESET, with what had arrived.  Not kept:
 * TIME_WAIT, urgent data, what TCP_INFO has counted.
 */
#include "ckpt/kinds/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/outside.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/kinds/tcp_live.h"
#include "ckpt/kinds/tcp_repair.h"
#include "ckpt/survey/survey.h"
#include "proto/sockets.pb-c.h"

#define DEFAULT_MSS 536	  /* TCP_MSS_DEFAULT of net/tcp.h */
#define LIMITED_MSS 32768 /* on a loopback device nothing else makes it smaller */

#define SHORT_QUEUES 4096
#define MAX_READ     (4u << 20) /* of all together */

/* Of a connection that leads out, while its packets are held: what its record says of it. */
struct queues {
	bool known;
	uint64_t received, sent; /* bytes */
	uint8_t *read;		 /* both, where they are short; NULL */
};

/* ckpt_dump.kind_state: made before the first record, for those are made by several threads. */
struct state {
	struct ckpt_inet_diag_list *list;
	size_t n;
	atomic_size_t read; /* bytes */
	struct queues queues[]; /* by file, from id 1 */
};

static void forget(void *state)
{
	struct state *s = state;

	for (size_t i = 0; i < s->n; i++)
		free(s->queues[i].read);
	free(s->list);
	free(s);
}

static bool claim(const struct ckpt_file *f)
{
	return (f->domain == AF_INET || f->domain == AF_INET6) && f->protocol == IPPROTO_TCP;
}

static int make_state(struct ckpt_dump *d, struct err *e)
{
	struct state *s = calloc(1, sizeof(*s) + d->n_files * sizeof(s->queues[0]));
	int r = s ? 0 : err_errno(e, -ENOMEM, "list of sockets");

	if (s) {
		s->list = take_ptr(d->tcp);
		r = s->list ? 0 : ckpt_sock_diag_tcp(d->world, d->diag, &s->list, e);
	}
	if (r < 0) {
		free(s);
		return r;
	}
	s->n = d->n_files;
	d->kind_state[PROTO_KIND_TCP] = s;
	return 0;
}

static int list_of(struct ckpt_dump *d, const struct ckpt_inet_diag_list **ret, struct err *e)
{
	const struct state *s = d->kind_state[PROTO_KIND_TCP];

	if (!s) {
		int r = make_state(d, e);

		if (r < 0)
			return r;
		s = d->kind_state[PROTO_KIND_TCP];
	}
	*ret = s->list;
	return 0;
}

/* NULL for a file that nobody knew of when the list was made. */
static struct queues *queues_of(struct ckpt_dump *d, const struct ckpt_file *f)
{
	struct state *s = d->kind_state[PROTO_KIND_TCP];

	return s && f->id - 1 < s->n ? &s->queues[f->id - 1] : NULL;
}

int tcp_check_closed(struct ckpt_dump *d, struct err *e)
{
	const struct ckpt_inet_diag_list *list;
	bool leads_out = d->world->vnet || d->world->wired;
	int r = leads_out ? list_of(d, &list, e) : 0;

	return r < 0 || !leads_out ? r : tcp_live_check(d, list, e);
}

static const struct ckpt_inet_diag *counterpart(
	const struct ckpt_inet_diag_list *list, const struct ckpt_inet_diag *of)
{
	return of->peer == CKPT_SOCK_NONE ? NULL : &list->entries[of->peer];
}

/* Whether connections to @a arrive at @listener. */
static bool listens_at(const struct ckpt_inet_diag *listener, const union ckpt_sockaddr *a)
{
	static const struct in6_addr any;
	bool wild = listener->domain == AF_INET
			    ? listener->local.in.sin_addr.s_addr == 0
			    : !memcmp(&listener->local.in6.sin6_addr, &any, sizeof(any));

	if (listener->state != TCP_LISTEN)
		return false;
	/* The port lies at the same place in both. */
	return wild ? listener->local.in.sin_port == a->in.sin_port
		    : ckpt_sock_addr_equal(&listener->local, a);
}

static int sever(
	const struct ckpt_dump *d, const union ckpt_sockaddr *remote, Pb__Tcp *m, struct err *e)
{
	char text[INET6_ADDRSTRLEN + 10];

	m->severed = true;
	m->fin_sent = true;
	m->peer_kind = ckpt_outside_resets(d) ? PB__TCP__PEER__RESET : PB__TCP__PEER__CLOSED;
	return ckpt_outside(d, e, "a connection to %s leads out of the session",
		ckpt_sock_addr_text(remote, text, sizeof(text)));
}

static int unread(const char *what, struct err *e)
{
	err_set(e, ERR_UNFREEZABLE, -EAGAIN, "a TCP connection %s holds data", what);
	return err_hint(e, "try again in a moment");
}

/* The closed side of @f's connection has bytes left: helps it to get rid of them. */
static int wait_for_rest(
	struct ckpt_dump *d, const struct ckpt_file *f, uint64_t bytes, struct err *e)
{
	int r = tcp_queue_make_room(d, f->fd, bytes, e);

	return r < 0 ? r : unread("which one side has closed still", e);
}

/* True if no process has it because none has accepted it yet. */
static bool is_pending(const struct ckpt_inet_diag *o)
{
	return o->ino == 0 && (o->state == TCP_ESTABLISHED || o->state == TCP_CLOSE_WAIT ||
				      o->state == TCP_SYN_RECV);
}

/* @o waits to be accepted: by whom. */
static int find_listener(struct ckpt_dump *d, const struct ckpt_inet_diag_list *list,
	const struct ckpt_inet_diag *o, Pb__Tcp *m, struct err *e)
{
	/* The end of the stream counts as a byte. */
	if (o->state != TCP_SYN_RECV && o->rqueue > (o->state == TCP_CLOSE_WAIT))
		return unread("which has not been accepted yet", e);
	for (size_t i = 0; i < list->n; i++) {
		const struct ckpt_file *f;

		if (!listens_at(&list->entries[i], &o->local))
			continue;
		f = ckpt_sock_file(d, &ckpt_kind_tcp, NULL, list->entries[i].ino);
		if (!f)
			return sever(d, &o->local, m, e);
		m->peer_kind = PB__TCP__PEER__PENDING;
		m->peer = f->id;
		return 0;
	}
	m->peer_kind = PB__TCP__PEER__VANISHED;
	return 0;
}

static int find_peer(struct ckpt_dump *d, const struct ckpt_file *f,
	const struct ckpt_inet_diag_list *list, const struct ckpt_inet_diag *x, Pb__Tcp *m,
	struct err *e)
{
	const struct ckpt_inet_diag *o = counterpart(list, x);
	const struct ckpt_file *peer;

	if (tcp_live_leads_out(d, x)) {
		m->peer_kind = PB__TCP__PEER__OUTSIDE;
		return 0;
	}
	if (!o && (d->world->ns_net < 0 || tcp_live_is_wired(d, x)))
		return sever(d, &x->remote, m, e);
	if (!o) {
		bool told = x->state != TCP_ESTABLISHED && x->state != TCP_FIN_WAIT1 &&
			    x->state != TCP_FIN_WAIT2;

		m->peer_kind = told ? PB__TCP__PEER__CLOSED : PB__TCP__PEER__VANISHED;
		return 0;
	}
	if (is_pending(o))
		return find_listener(d, list, o, m, e);
	if (o->ino == 0) {
		/* Its FIN, if not acknowledged, counts as a byte. */
		if (o->wqueue > 1)
			return wait_for_rest(d, f, o->wqueue, e);
		m->peer_kind = PB__TCP__PEER__CLOSED;
		return 0;
	}
	peer = ckpt_sock_file(d, &ckpt_kind_tcp, f, o->ino);
	if (!peer)
		return sever(d, &x->remote, m, e);
	m->peer_kind = PB__TCP__PEER__FILE;
	m->peer = peer->id;
	return 0;
}

/* True if the connection of @o, which waits in a backlog, comes from outside. */
static bool comes_from_outside(
	struct ckpt_dump *d, const struct ckpt_inet_diag_list *list, const struct ckpt_inet_diag *o)
{
	const struct ckpt_inet_diag *other = counterpart(list, o);

	if (d->world->ns_net >= 0)
		return tcp_live_is_wired(d, o);
	return !other || (other->ino && !ckpt_sock_file(d, &ckpt_kind_tcp, NULL, other->ino));
}

/* It does not come along. */
static int drop_pending(const struct ckpt_dump *d, const struct ckpt_inet_diag *o, struct err *e)
{
	char text[INET6_ADDRSTRLEN + 10];

	return ckpt_outside(d, e, "a connection from %s has not been accepted yet",
		ckpt_sock_addr_text(&o->remote, text, sizeof(text)));
}

/*
 * From outside by a virtual network: whoever carries it makes it once more (ckpt_world.redo).  What
 * it has brought only accept(2) would tell.  One in SYN_RECV has brought nothing, but for its client
 * it may be there already: TCP_DEFER_ACCEPT, or a backlog that is full.
 */
static int note_waiting(const struct ckpt_inet_diag *o, Pb__Tcp *m, struct err *e)
{
	if (o->state != TCP_SYN_RECV && o->rqueue > (o->state == TCP_CLOSE_WAIT))
		return unread("which has not been accepted yet", e);
	m->waiting[m->n_waiting] = ckpt_sock_addr_pack(&o->remote);
	return m->waiting[m->n_waiting++] ? 0 : err_errno(e, -ENOMEM, "backlog");
}

/* Connections in the backlog whose other side has been closed. */
static int find_orphans(struct ckpt_dump *d, const struct ckpt_inet_diag_list *list,
	const struct ckpt_inet_diag *x, Pb__Tcp *m, struct err *e)
{
	m->orphans = calloc(list->n + 1, sizeof(*m->orphans));
	m->waiting = calloc(list->n + 1, sizeof(*m->waiting));
	if (!m->orphans || !m->waiting)
		return err_errno(e, -ENOMEM, "backlog");
	for (size_t i = 0; i < list->n; i++) {
		const struct ckpt_inet_diag *o = &list->entries[i], *other;

		if (o == x || !is_pending(o) || !listens_at(x, &o->local))
			continue;
		if (tcp_live_leads_out(d, o)) {
			int r = note_waiting(o, m, e);

			if (r < 0)
				return r;
			continue;
		}
		if (o->state == TCP_SYN_RECV)
			continue;
		if (comes_from_outside(d, list, o)) {
			int r = drop_pending(d, o, e);

			if (r < 0)
				return r;
			continue;
		}
		other = counterpart(list, o);
		if (other && other->ino)
			continue;
		if (o->rqueue > (o->state == TCP_CLOSE_WAIT))
			return unread("which has not been accepted yet", e);
		m->orphans[m->n_orphans] = ckpt_sock_addr_pack(&o->remote);
		if (!m->orphans[m->n_orphans++])
			return err_errno(e, -ENOMEM, "backlog");
	}
	return 0;
}

/* A socket that is closed by now: was it ever connected, and how did that end? */
static void judge_closed(int fd, Pb__Tcp *m)
{
	struct pollfd p = {.fd = fd, .events = POLLIN | POLLRDHUP};

	m->state = PB__TCP__STATE__IDLE;
	m->peer_kind = PB__TCP__PEER__NONE;
	m->fin_sent = m->no_receive = false;
	if (poll(&p, 1, 0) < 1 || !(p.revents & POLLRDHUP))
		return;
	if ((p.revents & POLLERR) && tcp_was_refused(fd)) {
		m->state = PB__TCP__STATE__REFUSED;
		return;
	}
	m->state = PB__TCP__STATE__CONNECTED;
	m->peer_kind = p.revents & POLLERR ? PB__TCP__PEER__RESET : PB__TCP__PEER__CLOSED;
	m->fin_sent = true;
}

static int take_address(const union ckpt_sockaddr *a, Pb__InetAddr **ret, struct err *e)
{
	*ret = ckpt_sock_addr_pack(a);
	return *ret ? 0 : err_errno(e, -ENOMEM, "address of a socket");
}

static int dump_addresses(int fd, const struct ckpt_inet_diag *x, Pb__Tcp *m, struct err *e)
{
	static const union ckpt_sockaddr zero;
	union ckpt_sockaddr a = zero;
	socklen_t len = sizeof(a);
	int r = 0;

	/* The list has no scopes of IPv6. */
	if (m->live && x && x->domain == AF_INET) {
		r = take_address(&x->local, &m->local, e);
		return r < 0 ? r : take_address(&x->remote, &m->remote, e);
	}
	if (getsockname(fd, &a.any, &len) < 0)
		return err_errno(e, -errno, "getsockname");
	if (a.in.sin_port || (a.any.sa_family == AF_INET && a.in.sin_addr.s_addr) ||
		(a.any.sa_family == AF_INET6 &&
			memcmp(&a.in6.sin6_addr, &in6addr_any, sizeof(in6addr_any))))
		r = take_address(&a, &m->local, e);
	if (r < 0)
		return r;
	len = sizeof(a);
	if (getpeername(fd, &a.any, &len) >= 0)
		return take_address(&a, &m->remote, e);
	return m->state == PB__TCP__STATE__CONNECTING && x ? take_address(&x->remote, &m->remote, e)
							   : 0;
}

static uint32_t chosen_mss(int fd, const Pb__Tcp *m)
{
	int mss = ckpt_sock_get_int(fd, IPPROTO_TCP, TCP_MAXSEG);

	if (m->state == PB__TCP__STATE__CONNECTED || m->state == PB__TCP__STATE__CONNECTING)
		return mss > 0 && mss < LIMITED_MSS ? (uint32_t)mss : 0;
	return mss > 0 && mss != DEFAULT_MSS ? (uint32_t)mss : 0;
}

/* A socket made in another network and passed in. */
static int look_at_foreign(
	const struct ckpt_dump *d, const struct ckpt_file *f, Pb__Tcp *m, struct err *e)
{
	union ckpt_sockaddr remote;
	socklen_t len = sizeof(remote);

	if (getpeername(f->fd, &remote.any, &len) < 0)
		return err_set(e, ERR_UNFREEZABLE, -EXDEV,
			"this TCP socket belongs to another network than the session's");
	m->state = PB__TCP__STATE__CONNECTED;
	return sever(d, &remote, m, e);
}

/* The session's own socket to which connections to @a lead. */
static const struct ckpt_file *listener_at(
	struct ckpt_dump *d, const struct ckpt_inet_diag_list *list, const union ckpt_sockaddr *a)
{
	const struct ckpt_file *f = NULL;

	for (size_t i = 0; i < list->n && !f; i++)
		if (listens_at(&list->entries[i], a))
			f = ckpt_sock_file(d, &ckpt_kind_tcp, NULL, list->entries[i].ino);
	return f;
}

/* A connect(2) that has not been answered is begun again. */
static int look_at_connecting(struct ckpt_dump *d, const struct ckpt_inet_diag_list *list,
	const struct ckpt_inet_diag *x, Pb__Tcp *m, struct err *e)
{
	char text[INET6_ADDRSTRLEN + 10];

	m->state = PB__TCP__STATE__CONNECTING;
	if (tcp_live_leads_out(d, x))
		m->peer_kind = PB__TCP__PEER__OUTSIDE;
	if (!tcp_live_is_wired(d, x) && (d->world->ns_net >= 0 || listener_at(d, list, &x->remote)))
		return 0;
	return ckpt_outside(d, e, "a connection to %s, not answered yet, leads out of the session",
		ckpt_sock_addr_text(&x->remote, text, sizeof(text)));
}

/* What is held is as it was listed, or nearly so: look_outside sees to the rest. */
static int tcp_state(
	const struct ckpt_dump *d, const struct ckpt_file *f, const struct ckpt_inet_diag *x)
{
	return x && tcp_live_leads_out(d, x) ? x->state : tcp_repair_state(f->fd);
}

/* State and peer. */
static int look(struct ckpt_dump *d, const struct ckpt_file *f, Pb__Tcp *m, struct err *e)
{
	const struct ckpt_inet_diag_list *list;
	const struct ckpt_inet_diag *x;
	int r = list_of(d, &list, e), state;

	if (r < 0)
		return r;
	x = ckpt_sock_inet_by_ino(list, (uint32_t)f->st.st_ino);
	state = tcp_state(d, f, x);
	m->domain = f->domain;
	if (state == TCP_CLOSE) {
		judge_closed(f->fd, m);
		return 0;
	}
	if (!x)
		return look_at_foreign(d, f, m, e);
	m->no_receive = (x->shutdown & 1) && state != TCP_CLOSE_WAIT && state != TCP_LAST_ACK &&
			state != TCP_CLOSING;
	if (state == TCP_LISTEN) {
		m->state = PB__TCP__STATE__LISTENING;
		m->backlog = (int32_t)x->wqueue;
		return find_orphans(d, list, x, m, e);
	}
	if (state == TCP_SYN_SENT)
		return look_at_connecting(d, list, x, m, e);
	m->state = PB__TCP__STATE__CONNECTED;
	m->fin_sent = state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT;
	return find_peer(d, f, list, x, m, e);
}

static void fini(Pb__Tcp *m)
{
	if (m->common)
		ckpt_sock_common_fini(m->common);
	ckpt_sock_addr_free(m->local);
	ckpt_sock_addr_free(m->remote);
	for (size_t i = 0; i < m->n_orphans; i++)
		ckpt_sock_addr_free(m->orphans[i]);
	free(m->orphans);
	for (size_t i = 0; i < m->n_waiting; i++)
		ckpt_sock_addr_free(m->waiting[i]);
	free(m->waiting);
}

/*
 * Behind an urgent byte (MSG_OOB), read or not, nothing can be peeked at.  The kernel counts what
 * is there up to it, unless it is to be read in line; INET_DIAG counts all.
 */
static int check_urgent(
	struct ckpt_dump *d, const struct ckpt_file *f, const Pb__Tcp *m, struct err *e)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	const struct ckpt_inet_diag_list *list;
	const struct ckpt_inet_diag *x;
	uint64_t there, all;
	ssize_t seen = 0;
	int r = list_of(d, &list, e);

	x = r < 0 ? NULL : ckpt_sock_inet_by_ino(list, (uint32_t)f->st.st_ino);
	if (!x || m->state != PB__TCP__STATE__CONNECTED)
		return r;
	/* The end of the stream counts as a byte. */
	all = x->rqueue - (x->rqueue && x->state != TCP_ESTABLISHED && x->state != TCP_FIN_WAIT1 &&
				  x->state != TCP_FIN_WAIT2);
	there = all ? tcp_queue_received(f->fd) : 0;
	if (there >= all && ckpt_sock_get_int(f->fd, SOL_SOCKET, SO_OOBINLINE) == 1 && there) {
		bytes = malloc(there);
		seen = bytes ? recv(f->fd, bytes, there, MSG_PEEK | MSG_DONTWAIT) : -1;
		there = seen < 0 ? there : (uint64_t)seen;
	}
	if (there >= all)
		return 0;
	err_set(e, ERR_UNFREEZABLE, -EAGAIN, "an urgent byte (MSG_OOB) in flight is not supported");
	return err_hint(e, "try again when the program has read what it was sent");
}

static int peer_fd(const struct ckpt_dump *d, const Pb__Tcp *m)
{
	return m->peer_kind == PB__TCP__PEER__FILE ? d->files[m->peer - 1]->fd : -1;
}

/* SO_REUSEADDR; what it was. */
static int share_address(int fd, int share)
{
	int was = ckpt_sock_get_int(fd, SOL_SOCKET, SO_REUSEADDR);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &share, sizeof(share));
	return was;
}

/* Only the owner of the network can read what has not been delivered (tcp_queue.c). */
static int deliver(struct ckpt_dump *d, const struct ckpt_file *f, const Pb__Tcp *m, struct err *e)
{
	int from = peer_fd(d, m), r, of_receiver, of_sender;

	if (d->world->ns_net >= 0 || !tcp_queue_unsent(from))
		return 0;
	/* With the last byte may come the end of both: who keeps their addresses for a
	 * minute must share them. */
	of_receiver = share_address(f->fd, 1);
	of_sender = share_address(from, 1);
	r = tcp_queue_deliver(d, f->fd, from, e);
	/* In this order: the two may be one socket. */
	share_address(from, of_sender);
	share_address(f->fd, of_receiver);
	if (r < 0 || !tcp_queue_unsent(from))
		return r;
	return unread(
		"within the session, on the host's network, has more data on its way than its "
		"receiver has room for: it",
		e);
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	Pb__Tcp m = PB__TCP__INIT;
	char ulp[16] = "";
	socklen_t len = sizeof(ulp);
	int r = ckpt_sock_addr_check(d, s.file->fd, e);

	if (r >= 0)
		r = look(d, s.file, &m, e);
	if (r >= 0 && getsockopt(s.file->fd, IPPROTO_TCP, TCP_ULP, ulp, &len) == 0 && len)
		r = err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"a TCP socket with kernel TLS or the like (%.*s) is not supported",
			(int)sizeof(ulp) - 1, ulp);
	if (r >= 0)
		r = check_urgent(d, s.file, &m, e);
	if (r >= 0)
		r = deliver(d, s.file, &m, e);
	fini(&m);
	return r;
}

/*
 * On the host's network a connection within the session would leave TIME_WAIT behind, and with it
 * its addresses for a minute.  It ends without a goodbye, which nobody is left to hear.
 */
static void leave(struct ckpt_dump *d, const struct ckpt_file *f)
{
	const struct linger at_once = {.l_onoff = 1};
	Pb__Tcp m = PB__TCP__INIT;

	if (d->world->ns_net < 0 && look(d, f, &m, NULL) >= 0 &&
		m.peer_kind != PB__TCP__PEER__NONE && !m.severed)
		setsockopt(f->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	fini(&m);
}

/*
 * Records are made by several threads, and written by one: so short queues, of which there may be
 * thousands, are read with the record.
 */
static void keep_queues(struct ckpt_dump *d, struct queues *q, const struct buf *bytes)
{
	struct state *s = d->kind_state[PROTO_KIND_TCP];

	free(q->read);
	q->read = NULL;
	if (!bytes->len || atomic_fetch_add(&s->read, bytes->len) > MAX_READ)
		return;
	q->read = malloc(bytes->len);
	if (q->read)
		memcpy(q->read, bytes->data, bytes->len);
}

static void fini_short(struct tcp_live_short *s)
{
	buf_fini(&s->bytes);
}

/* More of one that leads out: @live, which becomes @m's unless it has ended. */
static int look_outside(struct ckpt_dump *d, const struct ckpt_file *f, Pb__Tcp *m,
	Pb__TcpLive *live, struct err *e)
{
	_cleanup_(fini_short) struct tcp_live_short both = {.most = SHORT_QUEUES};
	struct queues *q = queues_of(d, f);
	int r = tcp_live_dump(f->fd, live, &m->received, &both, e);

	if (r < 0)
		return r;
	if (live->state == TCP_CLOSE) {
		judge_closed(f->fd, m);
		return 0;
	}
	/* The answer had arrived, and was looked at only after the list was made. */
	if (live->state != TCP_SYN_SENT)
		m->state = PB__TCP__STATE__CONNECTED;
	m->live = live;
	if (!q)
		return 0;
	q->known = true;
	q->received = m->received;
	q->sent = live->sent + live->unsent;
	keep_queues(d, q, &both.bytes);
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	Pb__SockCommon common = PB__SOCK_COMMON__INIT;
	Pb__TcpLive live = PB__TCP_LIVE__INIT;
	const struct ckpt_inet_diag_list *list;
	const struct ckpt_inet_diag *x = NULL;
	Pb__Tcp m = PB__TCP__INIT;
	int r;

	m.common = &common;
	r = look(d, f, &m, e);
	if (r >= 0 && m.peer_kind == PB__TCP__PEER__OUTSIDE)
		r = look_outside(d, f, &m, &live, e);
	if (r >= 0)
		r = list_of(d, &list, e);
	if (r >= 0) {
		x = ckpt_sock_inet_by_ino(list, (uint32_t)f->st.st_ino);
		r = m.live && x ? ckpt_sock_common_dump_live(d, f, x, &common, e)
				: ckpt_sock_common_dump(d, f, &common, e);
	}
	if (r >= 0)
		r = dump_addresses(f->fd, x, &m, e);
	if (r >= 0) {
		m.mss = m.live ? 0 : chosen_mss(f->fd, &m);
		if (!m.live && m.state == PB__TCP__STATE__CONNECTED) {
			m.received = tcp_queue_received(f->fd);
			m.unsent = tcp_queue_unsent(peer_fd(d, &m));
		}
		r = ckpt_pack(&m.base, body, e);
	}
	fini(&m);
	return r;
}

/* Of one that stays inside, or has ended. */
static int read_inside(
	struct ckpt_dump *d, const struct ckpt_file *f, struct buf *bytes, struct err *e)
{
	Pb__Tcp m = PB__TCP__INIT;
	int r = look(d, f, &m, e);

	if (r >= 0 && m.state == PB__TCP__STATE__CONNECTED)
		r = tcp_queue_read(f->fd, peer_fd(d, &m), bytes, e);
	fini(&m);
	return r;
}

static int dump_data(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	_cleanup_buf_ struct buf bytes = BUF_INIT;
	const struct ckpt_file *f = s.file;
	const struct queues *q = queues_of(d, f);
	int r = 0;

	/* Nothing changes while its packets are held back. */
	if (q && q->read)
		return ckpt_dump_data(
			d, &ckpt_kind_tcp, f->id, 0, q->read, q->received + q->sent, e);
	if (!q || !q->known)
		r = read_inside(d, f, &bytes, e);
	else if (q->received || q->sent)
		r = tcp_live_read(f->fd, q->received, q->sent, &bytes, e);
	if (r >= 0 && bytes.len)
		r = ckpt_dump_data(d, &ckpt_kind_tcp, f->id, 0, bytes.data, bytes.len, e);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	static const char *const states[] = {
		"idle", "listening", "connected", "connecting", "refused"};
	static const char *const peers[] = {
		"", " file", " closed", " pending at file", " vanished", " reset", " outside"};
	Pb__Tcp *m = pb__tcp__unpack(NULL, len, body);

	if (!m)
		return;
	fprintf(out, "%s ", (unsigned)m->state < ARRAY_SIZE(states) ? states[m->state] : "?");
	ckpt_sock_addr_show(m->local, m->domain, out);
	if (m->remote) {
		fputs(" to ", out);
		ckpt_sock_addr_show(m->remote, m->domain, out);
	}
	fputs((unsigned)m->peer_kind < ARRAY_SIZE(peers) ? peers[m->peer_kind] : "?", out);
	if (m->n_waiting)
		fprintf(out, ", %zu from outside wait", m->n_waiting);
	if (m->severed)
		fputs(", severed", out);
	if (m->peer)
		fprintf(out, " %u", bare ? 0 : m->peer);
	if (m->received || m->unsent)
		fprintf(out, ", %llu bytes unread", (unsigned long long)(m->received + m->unsent));
	if (m->live && (m->live->sent || m->live->unsent))
		fprintf(out, ", %llu not acknowledged",
			(unsigned long long)(m->live->sent + m->live->unsent));
	pb__tcp__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_tcp = {
	.number = PROTO_KIND_TCP,
	.name = "tcp",
	.scope = CKPT_FILE,
	.claim = claim,
	.check = check,
	.dump = dump,
	.dump_data = dump_data,
	.leave = leave,
	.forget = forget,
	.many = true,
	.read = tcp_read,
	.create = tcp_create,
	.data = tcp_data,
	.link = tcp_link,
	.finish = tcp_finish,
	.release = tcp_release,
	.show = show,
};
