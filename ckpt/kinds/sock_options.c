// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Options of sockets, as a table: which there are, for whom, and when they are set again.
 *
 * Every option is asked for; one that the socket or the kernel does not know is left out.  When
 * restoring, a value is set only where the new socket has another one: what was never touched need
 * not be possible to set.  Where many sockets of one kind are made in one way, what a fresh one
 * says is asked once (ckpt_sock_fresh), and of each of them only what is to be something else, or
 * may have changed on the way.  socket(7), ip(7), ipv6(7), tcp(7), udp(7), netlink(7), and the uapi
 * headers for the numbers younger than libc's.
 */
#include "ckpt/kinds/sock.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/stat.h>

#include "ckpt/kinds/common.h"
#include "proto/sockets.pb-c.h"

#define MAX_VALUE 64

enum {
	EARLY = 1, /* before a name, a connection or a backlog */
	SIZE = 2,  /* a buffer: told doubled, limited by the host, set by size() */
	SOFT = 4,  /* the host may refuse it */
	ASKED = 8, /* set by the kind itself: dumped only */
	ZERO = 32, /* 0 in every new socket of TCP, whatever the host */
	MOVES = 16, /* changes without being set, by what happens to the socket or by another option */
};

struct option_row {
	int domain, type, protocol; /* 0: any */
	int level, name;
	unsigned how;
	uint8_t size;
};

/* Not in the headers of Debian 12; include/uapi/asm-generic/socket.h, linux/in.h, linux/in6.h. */
enum {
	PASS_RIGHTS = 83,
	PASS_PIDFD = 76,
	BUF_LOCK = 72,
	RCV_MARK = 75,
	RCV_PRIORITY = 82,
	IP_RECVERR_RFC4884_ = 26,
	UDP_GRO_ = 104,
	UDP_SEGMENT_ = 103,
	TCP_TX_DELAY_ = 37,
	TIMESTAMPING_NEW = 65,
	TX_REHASH = 74,
	IPV6_FLOWINFO_ = 11,
	IPV6_RECVERR_RFC4884_ = 31,
	IPV6_ROUTER_ALERT_ISOLATE_ = 30,
	IPV6_FLOWINFO_SEND_ = 33,
	TCP_FASTOPEN_NO_COOKIE_ = 34,
	TCP_RTO_MAX_MS_ = 44,
	TCP_RTO_MIN_US_ = 45,
	TCP_DELACK_MAX_US_ = 46,
};

#define ANY 0, 0, 0
static const struct option_row rows[] = {
	{ANY, SOL_SOCKET, SO_REUSEADDR, EARLY | MOVES, 4},
	{ANY, SOL_SOCKET, SO_REUSEPORT, EARLY, 4},
	{ANY, SOL_SOCKET, SO_BINDTODEVICE, EARLY, 16},
	{ANY, SOL_SOCKET, SO_MARK, EARLY, 4},
	{ANY, SOL_SOCKET, SO_BROADCAST, EARLY, 4},
	{ANY, SOL_SOCKET, SO_DONTROUTE, ZERO, 4},
	{ANY, SOL_SOCKET, SO_KEEPALIVE, ZERO, 4},
	{ANY, SOL_SOCKET, SO_OOBINLINE, ZERO, 4},
	{ANY, SOL_SOCKET, SO_LINGER, ZERO, 8},
	{ANY, SOL_SOCKET, SO_RCVLOWAT, MOVES, 4},
	{ANY, SOL_SOCKET, SO_RCVTIMEO_NEW, ZERO, 16},
	{ANY, SOL_SOCKET, SO_SNDTIMEO_NEW, ZERO, 16},
	{ANY, SOL_SOCKET, SO_TIMESTAMP_OLD, ZERO, 4},
	{ANY, SOL_SOCKET, SO_TIMESTAMPNS_OLD, ZERO, 4},
	{ANY, SOL_SOCKET, SO_TIMESTAMP_NEW, ZERO, 4},
	{ANY, SOL_SOCKET, SO_TIMESTAMPNS_NEW, ZERO, 4},
	{ANY, SOL_SOCKET, SO_TIMESTAMPING_OLD, SOFT, 4},
	/* Behind the old one, which says the same and takes the new layout away. */
	{ANY, SOL_SOCKET, TIMESTAMPING_NEW, SOFT, 8},
	{ANY, SOL_SOCKET, SO_RXQ_OVFL, ZERO, 4},
	{ANY, SOL_SOCKET, SO_PEEK_OFF, 0, 4},
	{ANY, SOL_SOCKET, SO_MAX_PACING_RATE, SOFT | MOVES, 8},
	{ANY, SOL_SOCKET, SO_ZEROCOPY, ZERO, 4},
	{ANY, SOL_SOCKET, RCV_MARK, SOFT, 4},
	{ANY, SOL_SOCKET, RCV_PRIORITY, SOFT | ZERO, 4},
	{ANY, SOL_SOCKET, SO_WIFI_STATUS, ZERO, 4},
	{ANY, SOL_SOCKET, SO_NOFCS, ZERO, 4},
	{ANY, SOL_SOCKET, SO_INCOMING_CPU, SOFT | MOVES, 4},
	{ANY, SOL_SOCKET, SO_NO_CHECK, ZERO, 4},
	{ANY, SOL_SOCKET, SO_BUSY_POLL, SOFT, 4},
	{ANY, SOL_SOCKET, SO_SELECT_ERR_QUEUE, ZERO, 4},
	{ANY, SOL_SOCKET, SO_TXTIME, SOFT, 8},
	{ANY, SOL_SOCKET, SO_LOCK_FILTER, ASKED, 4}, /* behind the filter */
	{AF_UNIX, 0, 0, SOL_SOCKET, SO_PASSCRED, 0, 4},
	{AF_UNIX, 0, 0, SOL_SOCKET, SO_PASSSEC, 0, 4},
	{AF_UNIX, 0, 0, SOL_SOCKET, PASS_PIDFD, 0, 4},
	{AF_UNIX, 0, 0, SOL_SOCKET, PASS_RIGHTS, 0, 4},
	{AF_NETLINK, 0, 0, SOL_SOCKET, SO_PASSCRED, 0, 4},
	{AF_NETLINK, 0, 0, SOL_SOCKET, SO_PASSSEC, 0, 4},
	/* The sizes, and after them which of them the user had chosen. */
	{ANY, SOL_SOCKET, SO_SNDBUF, SIZE | SOFT | MOVES, 4},
	{ANY, SOL_SOCKET, SO_RCVBUF, SIZE | SOFT | MOVES, 4},
	{ANY, SOL_SOCKET, BUF_LOCK, SOFT | MOVES, 4},

	{AF_INET, 0, 0, IPPROTO_IP, IP_FREEBIND, EARLY, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_TRANSPARENT, EARLY, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_LOCAL_PORTS, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_TOS, MOVES, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_TTL, 0, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_MINTTL, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_MTU_DISCOVER, 0, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_PKTINFO, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_RECVERR, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_RECVTTL, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_RECVTOS, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_RECVOPTS, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_RETOPTS, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_RECVORIGDSTADDR, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_RECVFRAGSIZE, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_RECVERR_RFC4884_, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_PASSSEC, ZERO, 4},
	{AF_INET, 0, 0, IPPROTO_IP, 23 /* IP_CHECKSUM */, ZERO, 4},
	{AF_INET, SOCK_DGRAM, 0, IPPROTO_IP, IP_MULTICAST_TTL, 0, 4},
	{AF_INET, SOCK_DGRAM, 0, IPPROTO_IP, IP_MULTICAST_LOOP, 0, 4},
	{AF_INET, SOCK_DGRAM, 0, IPPROTO_IP, IP_MULTICAST_ALL, 0, 4},
	{AF_INET, SOCK_DGRAM, 0, IPPROTO_IP, IP_MULTICAST_IF, 0, 4},
	{AF_INET, 0, 0, IPPROTO_IP, IP_UNICAST_IF, 0, 4},

	/* A bound address switches it on, for good. */
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_V6ONLY, EARLY | SOFT | MOVES, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_FREEBIND, EARLY, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_TRANSPARENT, EARLY, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_UNICAST_HOPS, 0, 4},
	{AF_INET6, SOCK_DGRAM, 0, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, 0, 4},
	{AF_INET6, SOCK_DGRAM, 0, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, 0, 4},
	{AF_INET6, SOCK_DGRAM, 0, IPPROTO_IPV6, IPV6_MULTICAST_IF, 0, 4},
	{AF_INET6, SOCK_DGRAM, 0, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_MTU_DISCOVER, 0, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVERR, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVERR_RFC4884_, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_FLOWINFO_, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_FLOWINFO_SEND_, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_2292PKTINFO, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_2292HOPOPTS, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_2292DSTOPTS, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_2292RTHDR, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_2292HOPLIMIT, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVPKTINFO, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVTCLASS, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVHOPOPTS, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVDSTOPTS, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVRTHDR, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVPATHMTU, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_RECVFRAGSIZE, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_MINHOPCOUNT, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_TCLASS, MOVES, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_DONTFRAG, ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_ROUTER_ALERT_ISOLATE_, SOFT | ZERO, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_UNICAST_IF, 0, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_ADDR_PREFERENCES, SOFT, 4},
	{AF_INET6, 0, 0, IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, SOFT, 4},
	/* Behind IP_TOS, which sets it as well. */
	{ANY, SOL_SOCKET, SO_PRIORITY, SOFT | MOVES, 4},

	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_MAXSEG, ASKED, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_CONGESTION, EARLY | SOFT | MOVES, 16},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_DEFER_ACCEPT, EARLY, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_SAVE_SYN, EARLY, 4},
	/* Only of a socket that is not connected; of others it has been of use. */
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_FASTOPEN_CONNECT, SOFT, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_FASTOPEN, EARLY | SOFT, 4},
	/* Told only of a socket that has one of its own. */
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_FASTOPEN_KEY, SOFT, 32},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_NODELAY, ZERO, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_CORK, ZERO, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_KEEPIDLE, 0, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_KEEPINTVL, 0, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_KEEPCNT, 0, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_SYNCNT, 0, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_LINGER2, SOFT, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_USER_TIMEOUT, ZERO, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_NOTSENT_LOWAT, 0, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, ZERO, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_INQ, ZERO, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_TX_DELAY_, SOFT, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE_, EARLY | SOFT, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_RTO_MAX_MS_, SOFT, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_RTO_MIN_US_, SOFT, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, IPPROTO_TCP, TCP_DELACK_MAX_US_, SOFT, 4},
	{0, SOCK_STREAM, IPPROTO_TCP, SOL_SOCKET, TX_REHASH, SOFT, 4},

	{0, SOCK_DGRAM, IPPROTO_UDP, IPPROTO_UDP, 1 /* UDP_CORK */, 0, 4},
	{0, SOCK_DGRAM, IPPROTO_UDP, IPPROTO_UDP, 101 /* UDP_NO_CHECK6_TX */, 0, 4},
	{0, SOCK_DGRAM, IPPROTO_UDP, IPPROTO_UDP, 102 /* UDP_NO_CHECK6_RX */, 0, 4},
	{0, SOCK_DGRAM, IPPROTO_UDP, IPPROTO_UDP, UDP_SEGMENT_, 0, 4},
	{0, SOCK_DGRAM, IPPROTO_UDP, IPPROTO_UDP, UDP_GRO_, 0, 4},
	{0, SOCK_DGRAM, IPPROTO_UDP, IPPROTO_UDP, 100 /* UDP_ENCAP */, SOFT, 4},
	{0, SOCK_DGRAM, IPPROTO_UDPLITE, IPPROTO_UDPLITE, 1 /* UDP_CORK */, 0, 4},
	{0, SOCK_DGRAM, IPPROTO_UDPLITE, IPPROTO_UDPLITE, 101 /* UDP_NO_CHECK6_TX */, 0, 4},
	{0, SOCK_DGRAM, IPPROTO_UDPLITE, IPPROTO_UDPLITE, 102 /* UDP_NO_CHECK6_RX */, 0, 4},
	{0, SOCK_DGRAM, IPPROTO_UDPLITE, IPPROTO_UDPLITE, 10 /* UDPLITE_SEND_CSCOV */, 0, 4},
	{0, SOCK_DGRAM, IPPROTO_UDPLITE, IPPROTO_UDPLITE, 11 /* UDPLITE_RECV_CSCOV */, 0, 4},

	{AF_NETLINK, 0, 0, SOL_NETLINK, NETLINK_PKTINFO, 0, 4},
	{AF_NETLINK, 0, 0, SOL_NETLINK, NETLINK_BROADCAST_ERROR, 0, 4},
	{AF_NETLINK, 0, 0, SOL_NETLINK, NETLINK_NO_ENOBUFS, 0, 4},
	{AF_NETLINK, 0, 0, SOL_NETLINK, NETLINK_LISTEN_ALL_NSID, SOFT, 4},
	{AF_NETLINK, 0, 0, SOL_NETLINK, NETLINK_CAP_ACK, 0, 4},
	{AF_NETLINK, 0, 0, SOL_NETLINK, NETLINK_EXT_ACK, 0, 4},
	{AF_NETLINK, 0, 0, SOL_NETLINK, NETLINK_GET_STRICT_CHK, 0, 4},
};

static bool concerns(const struct option_row *row, int domain, int type, int protocol)
{
	/* IPv6 sockets have those of IPv4 too, for mapped addresses. */
	if (row->domain && row->domain != domain && !(row->domain == AF_INET && domain == AF_INET6))
		return false;
	return (!row->type || row->type == type) && (!row->protocol || row->protocol == protocol);
}

/* The length of the value, or a negative errno where there is no such option. */
static int get(int fd, const struct option_row *row, uint8_t value[MAX_VALUE])
{
	socklen_t len = row->size;

	memset(value, 0, MAX_VALUE);
	if (getsockopt(fd, row->level, row->name, value, &len) < 0)
		return -errno;
	return len <= row->size ? (int)len : -EPROTO;
}

static int add(Pb__SockCommon *m, const struct option_row *row, const uint8_t *value, size_t len)
{
	Pb__SockOption *o = malloc(sizeof(*o) + len);

	if (!o)
		return -ENOMEM;
	pb__sock_option__init(o);
	o->level = row->level;
	o->name = row->name;
	o->value.data = memcpy(o + 1, value, len);
	o->value.len = len;
	m->options[m->n_options++] = o;
	return 0;
}

/* A classic filter's program; a count of instructions is what the kernel calls its length. */
static int dump_filter(int fd, Pb__SockCommon *m, struct err *e)
{
	socklen_t n = 0;

	if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &n) < 0)
		return errno == EACCES ? err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
						 "a socket with an eBPF filter is not supported")
				       : 0;
	if (!n)
		return 0;
	m->filter.data = calloc(n, sizeof(struct sock_filter));
	if (!m->filter.data)
		return err_errno(e, -ENOMEM, "socket filter");
	if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, m->filter.data, &n) < 0)
		return err_errno(e, -errno, "cannot read the filter of a socket");
	m->filter.len = n * sizeof(struct sock_filter);
	return 0;
}

/* What a list of connections tells of options; numbers are widened to an int. */
static const struct told_row {
	int level, name;
	size_t offset, size;
} told_rows[] = {
#define TOLD(level, name, field)                                                         \
	{level, name, offsetof(struct ckpt_inet_diag, field),                            \
		sizeof(((struct ckpt_inet_diag *)0)->field)}
	TOLD(SOL_SOCKET, SO_RCVBUF, receive_buffer),
	TOLD(SOL_SOCKET, SO_SNDBUF, send_buffer),
	TOLD(IPPROTO_IP, IP_TOS, tos),
	TOLD(IPPROTO_IP, IP_RECVERR, recverr),
	TOLD(IPPROTO_IP, IP_RECVERR_RFC4884_, recverr_rfc4884),
	TOLD(IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, bind_address_no_port),
	TOLD(IPPROTO_IP, IP_FREEBIND, freebind),
	TOLD(IPPROTO_IP, IP_TRANSPARENT, transparent),
	TOLD(IPPROTO_IPV6, IPV6_FREEBIND, freebind),
	TOLD(IPPROTO_IPV6, IPV6_TRANSPARENT, transparent),
	TOLD(IPPROTO_TCP, TCP_CONGESTION, congestion),
#undef TOLD
};

/* The length of the value if @x tells it, or 0. */
static int told(
	const struct ckpt_inet_diag *x, const struct option_row *row, uint8_t value[MAX_VALUE])
{
	for (size_t i = 0; i < ARRAY_SIZE(told_rows); i++) {
		const struct told_row *t = &told_rows[i];

		if (t->level != row->level || t->name != row->name)
			continue;
		memset(value, 0, MAX_VALUE);
		memcpy(value, (const char *)x + t->offset, t->size);
		return (int)MAX(t->size, sizeof(int));
	}
	return 0;
}

/* @x: as @told of ckpt_sock_common_dump_live, or NULL: all is asked, and all said. */
static int dump_of(struct ckpt_dump *d, const struct ckpt_file *f, const struct ckpt_inet_diag *x,
	Pb__SockCommon *m, struct err *e)
{
	static const uint8_t zeros[MAX_VALUE];
	int fd = f->fd;
	uint8_t value[MAX_VALUE];
	int r = ckpt_common_dump(d, f, &m->file, e);

	if (r < 0)
		return r;
	m->type = f->type;
	m->protocol = f->protocol;
	m->mode = f->st.st_mode & 07777;
	m->options = calloc(ARRAY_SIZE(rows), sizeof(*m->options));
	if (!m->options)
		return err_errno(e, -ENOMEM, "socket options");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		int len;

		if (!concerns(&rows[i], f->domain, f->type, f->protocol))
			continue;
		len = x && x->told ? told(x, &rows[i], value) : 0;
		if (!len)
			len = get(fd, &rows[i], value);
		if (x && (rows[i].how & ZERO) && !memcmp(value, zeros, sizeof(zeros)))
			continue;
		if (len > 0 && add(m, &rows[i], value, (size_t)len) < 0)
			return err_errno(e, -ENOMEM, "socket options");
	}
	return dump_filter(fd, m, e);
}

int ckpt_sock_common_dump(
	struct ckpt_dump *d, const struct ckpt_file *f, Pb__SockCommon *m, struct err *e)
{
	return dump_of(d, f, NULL, m, e);
}

int ckpt_sock_common_dump_live(struct ckpt_dump *d, const struct ckpt_file *f,
	const struct ckpt_inet_diag *x, Pb__SockCommon *m, struct err *e)
{
	return dump_of(d, f, x, m, e);
}

void ckpt_sock_common_fini(Pb__SockCommon *m)
{
	for (size_t i = 0; i < m->n_options; i++)
		free(m->options[i]);
	free(m->options);
	free(m->filter.data);
	ckpt_common_free(m->file);
}

int ckpt_sock_create(int domain, const Pb__SockCommon *m, struct err *e)
{
	int fd = socket(domain, m->type | SOCK_CLOEXEC, m->protocol);

	if (fd < 0)
		return err_errno(e, -errno, "socket(%d, %d, %d)", domain, m->type, m->protocol);
	return fd;
}

/* Does an option say what a socket says that was never told?  Then a kernel too old to know it for
 * this family has lost nothing. */
static bool is_initial(const Pb__SockOption *o)
{
	int value = 0;

	if (o->level == SOL_SOCKET && o->value.len == sizeof(value) &&
		(o->name == SO_PEEK_OFF || o->name == PASS_RIGHTS)) {
		memcpy(&value, o->value.data, sizeof(value));
		return value == (o->name == SO_PEEK_OFF ? -1 : 1);
	}
	for (size_t i = 0; i < o->value.len; i++)
		if (o->value.data[i])
			return false;
	return true;
}

/* Sizes are told doubled; what the host's limit cuts off is not worth failing for. */
static int set(int fd, const struct option_row *row, const Pb__SockOption *o, struct err *e)
{
	const void *value = o->value.data;
	int half;

	if (row->how & SIZE) {
		memcpy(&half, value, sizeof(half));
		half /= 2;
		value = &half;
	}
	if (setsockopt(fd, row->level, row->name, value, (socklen_t)o->value.len) < 0 &&
		!(row->how & SOFT) &&
		!((errno == ENOPROTOOPT || errno == EOPNOTSUPP) && is_initial(o)))
		return err_errno(e, -errno, "cannot set socket option %d of level %d", row->name,
			row->level);
	return 0;
}

static const Pb__SockOption *wanted(const Pb__SockCommon *m, int level, int name)
{
	for (size_t i = 0; i < m->n_options; i++)
		if (m->options[i]->level == level && m->options[i]->name == name)
			return m->options[i];
	return NULL;
}

/*
 * Which option is of which row; NULL where there is none.  They are in the order of the rows,
 * mostly, so each is looked for behind the one before.
 */
static void sort_options(
	const Pb__SockCommon *m, int domain, const Pb__SockOption *ret[ARRAY_SIZE(rows)])
{
	size_t next = 0;

	memset(ret, 0, ARRAY_SIZE(rows) * sizeof(*ret));
	for (size_t i = 0; i < m->n_options; i++) {
		const Pb__SockOption *o = m->options[i];

		for (size_t k = 0; k < ARRAY_SIZE(rows); k++) {
			size_t at = (next + k) % ARRAY_SIZE(rows);

			if (rows[at].level != o->level || rows[at].name != o->name ||
				!concerns(&rows[at], domain, m->type, m->protocol))
				continue;
			ret[at] = ret[at] ? ret[at] : o;
			next = at + 1;
			break;
		}
	}
}

/* What new sockets say, of both families. */
struct ckpt_sock_fresh {
	struct fresh {
		bool asked;
		int len[ARRAY_SIZE(rows)]; /* a negative errno where there is no such option */
		uint8_t value[ARRAY_SIZE(rows)][MAX_VALUE];
	} four, six;
};

struct ckpt_sock_fresh *ckpt_sock_fresh_new(void)
{
	return calloc(1, sizeof(struct ckpt_sock_fresh));
}

static const struct fresh *ask_fresh(
	struct ckpt_sock_fresh *all, int domain, const Pb__SockCommon *m)
{
	struct fresh *f = domain == AF_INET ? &all->four : &all->six;
	_cleanup_close_ int fd = f->asked ? -1 : ckpt_sock_create(domain, m, NULL);

	for (size_t i = 0; !f->asked && i < ARRAY_SIZE(rows); i++)
		f->len[i] = fd >= 0 && concerns(&rows[i], domain, m->type, m->protocol)
				    ? get(fd, &rows[i], f->value[i])
				    : -ENOPROTOOPT;
	f->asked = true;
	return f;
}

void ckpt_sock_fresh_ask(struct ckpt_sock_fresh *fresh, int domain, const Pb__SockCommon *m)
{
	ask_fresh(fresh, domain, m);
}

/* Is @o what row @i is of a new socket, and nothing but setsockopt(2) makes it something else? */
static bool is_fresh(const struct fresh *f, size_t i, const Pb__SockOption *o)
{
	return !(rows[i].how & MOVES) && f->len[i] >= 0 && (size_t)f->len[i] == o->value.len &&
	       !memcmp(f->value[i], o->value.data, o->value.len);
}

/* @all: what the socket was like; NULL: it is asked for everything. */
static int set_all(int fd, const Pb__SockCommon *m, struct ckpt_sock_fresh *all, unsigned mask,
	unsigned how, struct err *e)
{
	int domain = ckpt_sock_get_int(fd, SOL_SOCKET, SO_DOMAIN);
	const struct fresh *fresh = all ? ask_fresh(all, domain, m) : NULL;
	const Pb__SockOption *of_row[ARRAY_SIZE(rows)];
	uint8_t now[MAX_VALUE];

	sort_options(m, domain, of_row);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct option_row *row = &rows[i];
		const Pb__SockOption *o = of_row[i];
		int len, r;

		if ((row->how & mask) != how || !o || (fresh && is_fresh(fresh, i, o)))
			continue;
		len = get(fd, row, now);
		if ((size_t)len == o->value.len && !memcmp(now, o->value.data, o->value.len))
			continue;
		if (o->value.len > row->size || ((row->how & SIZE) && o->value.len != sizeof(int)))
			return err_set(e, ERR_IMAGE, -EBADMSG, "bad value of a socket option");
		r = set(fd, row, o, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int ckpt_sock_options_early(int fd, const Pb__SockCommon *m, struct err *e)
{
	return ckpt_sock_options_early_of(fd, m, NULL, e);
}

int ckpt_sock_options_early_of(
	int fd, const Pb__SockCommon *m, struct ckpt_sock_fresh *fresh, struct err *e)
{
	return set_all(fd, m, fresh, EARLY | ASKED, EARLY, e);
}

/* From now on nobody takes the filter off. */
static int lock_filter(int fd, const Pb__SockCommon *m, struct err *e)
{
	const Pb__SockOption *o = wanted(m, SOL_SOCKET, SO_LOCK_FILTER);
	int locked = 0;

	if (o && o->value.len == sizeof(locked))
		memcpy(&locked, o->value.data, sizeof(locked));
	if (locked && setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &locked, sizeof(locked)) < 0)
		return err_errno(e, -errno, "cannot lock the filter of a socket");
	return 0;
}

int ckpt_sock_options_late(struct ckpt_build *b, int fd, const Pb__SockCommon *m, struct err *e)
{
	return ckpt_sock_options_late_of(b, fd, m, NULL, e);
}

int ckpt_sock_options_late_of(struct ckpt_build *b, int fd, const Pb__SockCommon *m,
	struct ckpt_sock_fresh *fresh, struct err *e)
{
	int r = set_all(fd, m, fresh, ASKED, 0, e);

	if (r < 0)
		return r;
	if (m->filter.len) {
		struct sock_fprog p = {
			.len = (unsigned short)(m->filter.len / sizeof(struct sock_filter)),
			.filter = (void *)m->filter.data,
		};

		if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof(p)) < 0)
			return err_errno(e, -errno, "cannot set the filter of a socket");
	}
	r = lock_filter(fd, m, e);
	if (r < 0)
		return r;
	if (fchmod(fd, m->mode & 07777) < 0)
		return err_errno(e, -errno, "cannot set the mode of a socket");
	return ckpt_common_restore(b, fd, m->file, e);
}

void ckpt_sock_widen(int fd)
{
	int size = 1 << 30;

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}
