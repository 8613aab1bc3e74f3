// SPDX-License-Identifier: GPL-2.0-or-later
/* From the kernel into records.  The theory of operation is in tcp_live.h. */
#include "ckpt/kinds/tcp_live.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/ioctl.h>

#include "ckpt/kinds/tcp_repair.h"
#include "ckpt/survey/survey.h"
#include "proto/sockets.pb-c.h"

#define KEPT_OPTIONS (TCPI_OPT_TIMESTAMPS | TCPI_OPT_SACK | TCPI_OPT_WSCALE)

static bool is_loopback(const union ckpt_sockaddr *a)
{
	const struct in6_addr *six = &a->in6.sin6_addr;

	if (a->any.sa_family == AF_INET)
		return ntohl(a->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return IN6_IS_ADDR_LOOPBACK(six) ||
	       (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == IN_LOOPBACKNET);
}

static bool same_host(const union ckpt_sockaddr *a, const union ckpt_sockaddr *b)
{
	if (a->any.sa_family == AF_INET)
		return a->in.sin_addr.s_addr == b->in.sin_addr.s_addr;
	return IN6_ARE_ADDR_EQUAL(&a->in6.sin6_addr, &b->in6.sin6_addr);
}

static bool leaves(const struct ckpt_dump *d, const struct ckpt_inet_diag *x)
{
	return d->world->ns_net >= 0 && x->peer == CKPT_SOCK_NONE && !is_loopback(&x->local) &&
	       !is_loopback(&x->remote) && !same_host(&x->local, &x->remote);
}

bool tcp_live_leads_out(const struct ckpt_dump *d, const struct ckpt_inet_diag *x)
{
	return d->world->vnet && leaves(d, x);
}

bool tcp_live_is_wired(const struct ckpt_dump *d, const struct ckpt_inet_diag *x)
{
	return d->world->wired && leaves(d, x);
}

int tcp_live_check(const struct ckpt_dump *d, const struct ckpt_inet_diag_list *list, struct err *e)
{
	char text[INET6_ADDRSTRLEN + 10];

	for (size_t i = 0; i < list->n; i++) {
		const struct ckpt_inet_diag *x = &list->entries[i];

		if (x->ino || !leaves(d, x) ||
			(x->state != TCP_FIN_WAIT1 && x->state != TCP_CLOSING &&
				x->state != TCP_LAST_ACK))
			continue;
		err_set(e, ERR_UNFREEZABLE, -EAGAIN,
			"a connection to %s, which the session has closed, still has to deliver "
			"data",
			ckpt_sock_addr_text(&x->remote, text, sizeof(text)));
		return err_hint(e, "try again in a moment");
	}
	return 0;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static bool has_peers_fin(uint8_t state)
{
	return state == TCP_CLOSE_WAIT || state == TCP_LAST_ACK || state == TCP_CLOSING;
}

static bool has_unacked_fin(uint8_t state)
{
	return state == TCP_FIN_WAIT1 || state == TCP_LAST_ACK || state == TCP_CLOSING;
}

/* Bytes behind an ioctl of tcp(7), of which @fin is no byte. */
static int count(int fd, unsigned long what, bool fin, uint64_t *ret, struct err *e)
{
	int n = 0;

	if (ioctl(fd, what, &n) < 0)
		return err_errno(e, -errno, "cannot look at a TCP queue");
	*ret = n > fin ? (uint64_t)(n - fin) : 0;
	return 0;
}

#define LOOKS 100 /* at a queue: what was on its way when all stood still comes at once */

/* Where the received queue ends, and its length, of one moment: a packet may come between. */
static int look_at_received(int fd, uint32_t *ret_next, uint64_t *ret_received, struct err *e)
{
	uint32_t again;
	int r = tcp_repair_seq(fd, TCP_RECV_QUEUE, &again, e);

	for (int i = 0; r >= 0 && i < LOOKS; i++) {
		*ret_next = again;
		r = count(fd, SIOCINQ, false, ret_received, e);
		if (r >= 0)
			r = tcp_repair_seq_again(fd, &again, e);
		if (r >= 0 && again == *ret_next)
			return 0;
	}
	return r < 0 ? r
		     : err_set(e, ERR_UNFREEZABLE, -EAGAIN, "a TCP queue does not come to rest");
}

/* The queue that is chosen, behind what is in @both already. */
static int read_short(int fd, uint64_t n, struct tcp_live_short *both, struct err *e)
{
	size_t before = both->bytes.len;
	int r = 0;

	if (n && n <= both->most - before)
		r = tcp_repair_peek(fd, n, &both->bytes, e);
	if (r < 0)
		return r;
	/* It is read by itself later, which tells why. */
	if (both->bytes.len - before != n)
		both->most = both->bytes.len = 0;
	return 0;
}

static int read_short_received(int fd, uint64_t n, struct tcp_live_short *both, struct err *e)
{
	if (n && ckpt_sock_get_int(fd, SOL_SOCKET, SO_PEEK_OFF) >= 0)
		both->most = 0;
	return read_short(fd, n, both, e);
}

/* In repair mode: lengths of the queues, and where they begin. */
static int dump_queues(int fd, Pb__TcpLive *m, uint64_t *ret_received, struct tcp_live_short *both,
	struct err *e)
{
	uint8_t state = (uint8_t)m->state;
	bool unacked = has_unacked_fin(state), fin = unacked || state == TCP_FIN_WAIT2;
	uint64_t queued = 0, unsent = 0;
	uint32_t next, end;

	if (look_at_received(fd, &next, ret_received, e) < 0 ||
		read_short_received(fd, *ret_received, both, e) < 0 ||
		tcp_repair_seq(fd, TCP_SEND_QUEUE, &end, e) < 0 ||
		count(fd, SIOCOUTQ, unacked, &queued, e) < 0 ||
		count(fd, SIOCOUTQNSD, unacked, &unsent, e) < 0 ||
		read_short(fd, queued, both, e) < 0)
		return e->error;
	m->unsent = MIN(unsent, queued);
	m->sent = queued - m->unsent;
	m->receive_seq = next - has_peers_fin(state) - (uint32_t)*ret_received;
	m->send_seq = end - fin - (uint32_t)queued;
	return 0;
}

static int dump_window(int fd, Pb__TcpLive *m, uint64_t received, struct err *e)
{
	uint32_t next = m->receive_seq + (uint32_t)received;
	struct tcp_repair_window w;
	socklen_t len = sizeof(w);

	if (getsockopt(fd, IPPROTO_TCP, TCP_REPAIR_WINDOW, &w, &len) < 0)
		return err_errno(e, -errno, "TCP_REPAIR_WINDOW");
	/* It counts the FIN, too, which comes later. */
	if ((int32_t)(w.rcv_wup - next) > 0)
		w.rcv_wup = next;
	m->send_wl1 = w.snd_wl1;
	m->send_window = w.snd_wnd;
	m->max_window = w.max_window;
	m->receive_window = w.rcv_wnd;
	m->receive_wup = w.rcv_wup;
	return 0;
}

/* In repair mode the MSS is what the peer has said. */
static int dump_options(int fd, const struct tcp_info *info, Pb__TcpLive *m, struct err *e)
{
	socklen_t len = sizeof(m->timestamp);
	int mss = ckpt_sock_get_int(fd, IPPROTO_TCP, TCP_MAXSEG);

	if (mss < 0 || getsockopt(fd, IPPROTO_TCP, TCP_TIMESTAMP, &m->timestamp, &len) < 0)
		return err_errno(e, -errno, "TCP_TIMESTAMP");
	m->mss = (uint32_t)mss;
	m->options = info->tcpi_options & KEPT_OPTIONS;
	m->send_scale = info->tcpi_snd_wscale;
	m->receive_scale = info->tcpi_rcv_wscale;
	return 0;
}

static int dump_all(int fd, const struct tcp_info *info, Pb__TcpLive *m, uint64_t *ret_received,
	struct tcp_live_short *both, struct err *e)
{
	int r;

	if (m->state == TCP_SYN_SENT) {
		r = tcp_repair_seq(fd, TCP_SEND_QUEUE, &m->send_seq, e);
		m->send_seq--; /* the SYN takes one */
		return r;
	}
	r = dump_queues(fd, m, ret_received, both, e);
	if (r >= 0)
		r = dump_window(fd, m, *ret_received, e);
	return r < 0 ? r : dump_options(fd, info, m, e);
}

int tcp_live_dump(
	int fd, Pb__TcpLive *m, uint64_t *ret_received, struct tcp_live_short *both, struct err *e)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);
	struct tcp_repair repair;
	int r;

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return err_errno(e, -errno, "TCP_INFO");
	m->state = info.tcpi_state;
	*ret_received = 0;
	if (m->state == TCP_CLOSE)
		return 0;
	r = tcp_repair_on(&repair, fd, e);
	if (r >= 0)
		r = dump_all(fd, &info, m, ret_received, both, e);
	tcp_repair_off(&repair);
	return r;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Exactly @expected bytes of a queue. */
static int read_queue(int fd, int queue, uint64_t expected, struct buf *ret, struct err *e)
{
	size_t before = ret->len;
	uint32_t seq;
	int r = tcp_repair_seq(fd, queue, &seq, e);

	if (r >= 0)
		r = tcp_repair_peek(fd, expected, ret, e);
	if (r >= 0 && ret->len - before != expected)
		r = err_set(e, ERR_UNFREEZABLE, -EAGAIN, "a TCP queue does not come to rest");
	return r;
}

int tcp_live_read(int fd, uint64_t received, uint64_t sent, struct buf *ret, struct err *e)
{
	int peek_off = ckpt_sock_get_int(fd, SOL_SOCKET, SO_PEEK_OFF), none = -1, r;
	struct tcp_repair repair;

	if (peek_off >= 0)
		setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &none, sizeof(none));
	r = tcp_repair_on(&repair, fd, e);
	if (r >= 0)
		r = read_queue(fd, TCP_RECV_QUEUE, received, ret, e);
	if (r >= 0)
		r = read_queue(fd, TCP_SEND_QUEUE, sent, ret, e);
	tcp_repair_off(&repair);
	if (peek_off >= 0)
		setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &peek_off, sizeof(peek_off));
	return r;
}
