// SPDX-License-Identifier: GPL-2.0-or-later
/* From records into the kernel.  The theory of operation is in tcp_live.h. */
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/tcp_live.h"
#include "ckpt/kinds/tcp_repair.h"
#include "ckpt/kinds/tcp_sizes.h"
#include "proto/sockets.pb-c.h"

#define MAX_QUEUE   (1ull << 30)
#define MAX_SCALE   14 /* RFC 7323 */
#define ROOM	    32768
#define PATIENCE_MS 1000

void tcp_live_fini(struct tcp_live *l)
{
	buf_fini(&l->unsent);
}

bool tcp_live_valid(const Pb__Tcp *m)
{
	const Pb__TcpLive *live = m->live;

	if (!live || !m->remote || !m->local)
		return false;
	if (m->state == PB__TCP__STATE__CONNECTING)
		return live->state == TCP_SYN_SENT;
	if (m->state != PB__TCP__STATE__CONNECTED || live->sent > MAX_QUEUE ||
		live->unsent > MAX_QUEUE || live->mss == 0 || live->mss > UINT16_MAX ||
		live->send_scale > MAX_SCALE || live->receive_scale > MAX_SCALE)
		return false;
	return live->state == TCP_ESTABLISHED || live->state == TCP_FIN_WAIT1 ||
	       live->state == TCP_FIN_WAIT2 || live->state == TCP_CLOSE_WAIT ||
	       live->state == TCP_LAST_ACK || live->state == TCP_CLOSING;
}

/* ---- create ---------------------------------------------------------------------------------- */

static int set(int fd, int name, const void *value, size_t len, const char *what, struct err *e)
{
	if (setsockopt(fd, IPPROTO_TCP, name, value, (socklen_t)len) == 0)
		return 0;
	err_errno(e, -errno, "%s", what);
	/* It is not for the host to refuse that; what makes no sense is the image's. */
	return errno == EINVAL || errno == EFBIG ? err_reclass(e, ERR_IMAGE) : e->error;
}

static int set_seq(int fd, int queue, uint32_t seq, struct err *e)
{
	int r = set(fd, TCP_REPAIR_QUEUE, &queue, sizeof(queue), "TCP_REPAIR_QUEUE", e);

	return r < 0 ? r : set(fd, TCP_QUEUE_SEQ, &seq, sizeof(seq), "TCP_QUEUE_SEQ", e);
}

static int name(int fd, const Pb__Tcp *m, struct err *e)
{
	union ckpt_sockaddr local, remote;
	char text[64];
	int len = ckpt_sock_addr_unpack(m->local, m->domain, &local, e);

	if (len < 0 || ckpt_sock_addr_unpack(m->remote, m->domain, &remote, e) < 0)
		return -EBADMSG;
	if (bind(fd, &local.any, (socklen_t)len) < 0)
		return err_errno(e, -errno, "cannot bind a TCP connection to %s",
			ckpt_sock_addr_text(&local, text, sizeof(text)));
	if (connect(fd, &remote.any, (socklen_t)len) < 0)
		return err_errno(e, -errno, "cannot take up the TCP connection to %s",
			ckpt_sock_addr_text(&remote, text, sizeof(text)));
	return 0;
}

static int set_options(int fd, const Pb__TcpLive *m, struct err *e)
{
	struct tcp_repair_opt o[4] = {{TCPOPT_MAXSEG, m->mss}};
	size_t n = 1;

	if (m->options & TCPI_OPT_WSCALE)
		o[n++] = (struct tcp_repair_opt){
			TCPOPT_WINDOW, m->send_scale | m->receive_scale << 16};
	if (m->options & TCPI_OPT_SACK)
		o[n++] = (struct tcp_repair_opt){TCPOPT_SACK_PERMITTED, 0};
	if (m->options & TCPI_OPT_TIMESTAMPS)
		o[n++] = (struct tcp_repair_opt){TCPOPT_TIMESTAMP, 0};
	return set(fd, TCP_REPAIR_OPTIONS, o, n * sizeof(o[0]), "TCP_REPAIR_OPTIONS", e);
}

static uint64_t size_option(const Pb__Tcp *m, int name)
{
	for (size_t i = 0; i < m->common->n_options; i++) {
		const Pb__SockOption *o = m->common->options[i];
		uint32_t size;

		if (o->level != SOL_SOCKET || o->name != name || o->value.len != sizeof(size))
			continue;
		memcpy(&size, o->value.data, sizeof(size));
		return size;
	}
	return 0;
}

/*
 * The peer may go on to send what it has been promised room for: the receive buffer must not
 * become smaller, and gets its size here, for no option could make it so large.  That of the send
 * buffer is put right by the late options.
 */
static void sizes_of(const Pb__Tcp *m, const struct tcp_sizes *sizes, uint64_t ret[2])
{
	uint64_t bytes = m->live->sent + m->live->unsent;
	uint64_t receive = m->received + m->received / 16 + ROOM;

	ret[0] = MAX(size_option(m, SO_RCVBUF), receive);
	ret[1] = MAX((uint64_t)sizes->before[1][1], 4 * bytes + ROOM);
}

bool tcp_live_alike(const Pb__Tcp *x, const Pb__Tcp *y, const struct tcp_sizes *sizes)
{
	uint64_t of_x[2], of_y[2];

	sizes_of(x, sizes, of_x);
	sizes_of(y, sizes, of_y);
	return of_x[0] == of_y[0] && of_x[1] == of_y[1] && x->domain == y->domain;
}

struct ckpt_sock_fresh *tcp_live_fresh(struct ckpt_build *b, const Pb__Tcp *m)
{
	void **slot = &b->kind_state[PROTO_KIND_TCP];

	if (m->common->protocol != IPPROTO_TCP)
		return NULL;
	if (!*slot)
		*slot = ckpt_sock_fresh_new();
	return *slot;
}

void tcp_live_prepare(struct ckpt_build *b, const Pb__Tcp *m, struct tcp_sizes *sizes)
{
	struct ckpt_sock_fresh *fresh = tcp_live_fresh(b, m);
	uint64_t size[2];

	if (fresh)
		ckpt_sock_fresh_ask(fresh, m->domain, m->common);
	sizes_of(m, sizes, size);
	tcp_sizes_choose(sizes, size[0], size[1]);
}

int tcp_live_make(struct ckpt_build *b, const Pb__Tcp *m, struct err *e)
{
	const Pb__TcpLive *live = m->live;
	_cleanup_close_ int fd = ckpt_sock_create(m->domain, m->common, e);
	int r = fd < 0 ? fd : ckpt_sock_options_early_of(fd, m->common, tcp_live_fresh(b, m), e);
	int on = TCP_REPAIR_ON;

	if (r >= 0)
		r = set(fd, TCP_REPAIR, &on, sizeof(on), "TCP_REPAIR", e);
	if (r >= 0)
		r = set_seq(fd, TCP_RECV_QUEUE, live->receive_seq, e);
	if (r >= 0)
		r = set_seq(fd, TCP_SEND_QUEUE, live->send_seq, e);
	if (r >= 0)
		r = name(fd, m, e);
	if (r >= 0)
		r = set_options(fd, live, e);
	if (r >= 0 && (live->options & TCPI_OPT_TIMESTAMPS))
		r = set(fd, TCP_TIMESTAMP, &live->timestamp, sizeof(live->timestamp),
			"TCP_TIMESTAMP", e);
	return r < 0 ? r : take_fd(&fd);
}

/* ---- data ------------------------------------------------------------------------------------ */

static int put(int fd, const uint8_t *data, size_t len, struct err *e)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return err_set(e, ERR_HOST, -errno,
				"this host's TCP buffers are too small for what was on its way: %s",
				strerror(errno));
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

static int put_queue(int fd, int queue, const uint8_t *data, size_t len, struct err *e)
{
	int r = set(fd, TCP_REPAIR_QUEUE, &queue, sizeof(queue), "TCP_REPAIR_QUEUE", e);

	return r < 0 ? r : put(fd, data, len, e);
}

int tcp_live_data(struct tcp_live *l, int fd, const Pb__Tcp *m, uint64_t offset,
	const uint8_t *data, size_t len, struct err *e)
{
	const uint64_t ends[] = {m->received, m->received + m->live->sent,
		m->received + m->live->sent + m->live->unsent};

	if (offset != l->filled || len > ends[2] - offset)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a TCP queue makes no sense");
	l->filled += len;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t n = offset < ends[i] ? MIN(len, (size_t)(ends[i] - offset)) : 0;
		int r = 0;

		if (!n)
			continue;
		if (i < 2)
			r = put_queue(fd, i ? TCP_SEND_QUEUE : TCP_RECV_QUEUE, data, n, e);
		else
			buf_put(&l->unsent, data, n);
		if (r < 0)
			return r;
		offset += n;
		data += n;
		len -= n;
	}
	return buf_error(&l->unsent) < 0 ? err_errno(e, -ENOMEM, "queue of a socket") : 0;
}

/* ---- link, finish ---------------------------------------------------------------------------- */

static bool has_own_fin(uint32_t state)
{
	return state != TCP_ESTABLISHED && state != TCP_CLOSE_WAIT;
}

static bool has_peers_fin(uint32_t state)
{
	return state == TCP_CLOSE_WAIT || state == TCP_LAST_ACK || state == TCP_CLOSING;
}

int tcp_live_link(struct tcp_live *l, int fd, const Pb__Tcp *m, struct err *e)
{
	const Pb__TcpLive *live = m->live;
	struct tcp_repair_window w = {
		.snd_wl1 = live->send_wl1,
		.snd_wnd = live->send_window,
		.max_window = live->max_window,
		.rcv_wnd = live->receive_window,
		.rcv_wup = live->receive_wup,
	};

	if (l->filled != m->received + live->sent + live->unsent)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a TCP queue is not there");
	/* There must be room for the FIN; nothing else will come. */
	if (has_peers_fin(live->state)) {
		w.rcv_wup = live->receive_seq + (uint32_t)m->received;
		w.rcv_wnd = MAX(w.rcv_wnd, 1u);
	}
	return set(fd, TCP_REPAIR_WINDOW, &w, sizeof(w), "TCP_REPAIR_WINDOW", e);
}

static int await_state(int fd, uint32_t state, struct err *e)
{
	for (int i = 0; tcp_repair_state(fd) != (int)state; i++) {
		if (i == PATIENCE_MS)
			return err_set(e, ERR_HOST, -ETIMEDOUT,
				"a TCP connection does not hear of its end");
		poll(NULL, 0, 1);
	}
	return 0;
}

void tcp_live_unmap(union ckpt_sockaddr *a)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = a->in6.sin6_port};

	if (a->any.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr))
		return;
	memcpy(&in.sin_addr, &a->in6.sin6_addr.s6_addr[12], sizeof(in.sin_addr));
	a->in = in;
}

/* The peer is heard to say @seq. */
static int hear(const struct tcp_peer *peer, const Pb__Tcp *m, uint32_t seq, bool fin, struct err *e)
{
	const Pb__TcpLive *live = m->live;
	union ckpt_sockaddr local, remote;
	const struct tcp_segment segment = {
		.from = &remote,
		.to = &local,
		.seq = seq,
		.ack = live->send_seq,
		.window = (uint16_t)MIN(live->send_window >> live->send_scale, UINT16_MAX + 0u),
		.fin = fin,
	};

	if (ckpt_sock_addr_unpack(m->local, m->domain, &local, e) < 0 ||
		ckpt_sock_addr_unpack(m->remote, m->domain, &remote, e) < 0)
		return -EBADMSG;
	tcp_live_unmap(&local);
	tcp_live_unmap(&remote);
	if (local.any.sa_family != remote.any.sa_family)
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad address of a socket");
	return tcp_peer_say(peer, &segment, e);
}

static int hear_fin(
	int fd, const struct tcp_peer *peer, const Pb__Tcp *m, uint32_t state, struct err *e)
{
	int r = hear(peer, m, m->live->receive_seq + (uint32_t)m->received, true, e);

	return r < 0 ? r : await_state(fd, state, e);
}

/* Nothing but speed depends on it. */
static void say_how_far(const struct tcp_peer *peer, const Pb__Tcp *m)
{
	struct err e = {0};

	if (!has_peers_fin(m->live->state) &&
		hear(peer, m, m->live->receive_wup - 1, false, &e) < 0)
		log_debug("%s", e.msg);
}

/* In the order in which they came to pass. */
static int end(int fd, const struct tcp_peer *peer, const Pb__Tcp *m, struct err *e)
{
	uint32_t state = m->live->state;
	bool last = state == TCP_CLOSING;
	int r = 0;

	if (has_peers_fin(state) && !last)
		r = hear_fin(fd, peer, m, TCP_CLOSE_WAIT, e);
	if (r >= 0 && has_own_fin(state) && shutdown(fd, SHUT_WR) < 0)
		r = err_errno(e, -errno, "shutdown");
	return r >= 0 && last ? hear_fin(fd, peer, m, TCP_CLOSING, e) : r;
}

int tcp_live_finish(struct tcp_live *l, int fd, const Pb__Tcp *m, const struct tcp_peer *peer,
	struct err *e)
{
	int off = TCP_REPAIR_OFF_NO_WP, none = TCP_NO_QUEUE, r;

	r = set(fd, TCP_REPAIR_QUEUE, &none, sizeof(none), "TCP_REPAIR_QUEUE", e);
	if (r >= 0)
		r = set(fd, TCP_REPAIR, &off, sizeof(off), "TCP_REPAIR", e);
	if (r >= 0)
		r = put(fd, l->unsent.data, l->unsent.len, e);
	if (r >= 0)
		r = end(fd, peer, m, e);
	/* The peer is asked for its window. */
	off = TCP_REPAIR_OFF;
	if (r >= 0)
		r = set(fd, TCP_REPAIR, &off, sizeof(off), "TCP_REPAIR", e);
	if (r >= 0)
		say_how_far(peer, m);
	return r;
}

int tcp_live_number_syn(int fd, const Pb__TcpLive *m, struct err *e)
{
	struct tcp_repair repair;
	int r = tcp_repair_on(&repair, fd, e);

	if (r >= 0)
		r = set_seq(fd, TCP_SEND_QUEUE, m->send_seq, e);
	tcp_repair_off(&repair);
	return r;
}
