// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * UDP, UDP-Lite and ping sockets.
 *
 * Queues are peeked at, and filled again by sending from the recorded source to the socket through
 * the session's loopback device, before it is connected.  Multicast memberships belong to sockets
 * but are listed by interface (/proc/net/igmp, igmp6): each socket is asked about each group.
 *
 * What came from outside by a virtual network is sent in the name of who had sent it.
 *
 * A session on the host's network keeps its addresses; what waits in such a socket is lost, as
 * datagrams may be, since it could only be sent again under a false name.  Also lost: what waits in
 * a ping socket or in one that is shut for reading, error queues, and corked data.
 */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "ckpt/build.h"
#include "ckpt/enter.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/outside.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/survey/survey.h"
#include "proto/sockets.pb-c.h"

#define MAX_MESSAGES	100000
#define MAX_MEMBERSHIPS 1024
#define MAX_SOURCES	64 /* net.ipv6.mld_max_msf; igmp_max_msf is less */
#define PATIENCE_MS	100

static bool is_ping(int protocol)
{
	return protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6;
}

static bool claim(const struct ckpt_file *f)
{
	return (f->domain == AF_INET || f->domain == AF_INET6) && f->type == SOCK_DGRAM &&
	       (f->protocol == IPPROTO_UDP || f->protocol == IPPROTO_UDPLITE ||
		       is_ping(f->protocol));
}

/* ---- multicast ------------------------------------------------------------------------------ */

/* Tells the two lists of the session's network, the second behind a NUL byte. */
static int tell_groups(int sock, void *ctx, struct err *e)
{
	int proc = *(const int *)ctx;
	const char *const names[] = {"self/net/igmp", "self/net/igmp6"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		int r = io_read_file(proc, names[i], 1 << 20, &text);

		if (r < 0 && r != -ENOENT)
			return err_errno(e, r, "/proc/%s", names[i]);
		r = io_write_full(sock, text.data, text.len);
		if (r >= 0 && i == 0)
			r = io_write_full(sock, "", 1);
		if (r < 0)
			return r;
	}
	return 0;
}

static void put_group4(struct buf *out, unsigned index, unsigned long address)
{
	struct group_req q = {.gr_interface = index};
	struct sockaddr_in *a = (void *)&q.gr_group;

	a->sin_family = AF_INET;
	a->sin_addr.s_addr = (uint32_t)address; /* printed as it lies in memory */
	buf_put(out, &q, sizeof(q));
}

/* "1	lo : 1 V3\n\t\t\t\t010000E0 1 ..." */
static void parse4(const char *text, struct buf *out)
{
	unsigned index = 0;

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		unsigned long address;

		line += *line == '\n';
		if (line[0] != '\t')
			sscanf(line, "%u", &index);
		else if (sscanf(line, " %lx", &address) == 1)
			put_group4(out, index, address);
	}
}

/* "1    lo    ff020000000000000000000000000001     1 0000000C 0" */
static void parse6(const char *text, struct buf *out)
{
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		struct group_req q = {0};
		struct sockaddr_in6 *a = (void *)&q.gr_group;
		char hex[33];

		line += *line == '\n';
		if (sscanf(line, "%u %*s %32[0-9a-f]", &q.gr_interface, hex) != 2 ||
			strlen(hex) != 32)
			continue;
		a->sin6_family = AF_INET6;
		for (int i = 0; i < 16; i++)
			sscanf(hex + 2 * i, "%2hhx", &a->sin6_addr.s6_addr[i]);
		buf_put(out, &q, sizeof(q));
	}
}

static int list_groups(struct ckpt_dump *d, struct buf *out, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int proc = d->host_proc, r;
	const char *second;

	r = ckpt_enter_read(d->world, d->world->ns_net < 0 ? 0 : CLONE_NEWNET, tell_groups, &proc,
		4 << 20, &text, e);
	if (r < 0)
		return r;
	if (!buf_cstr(&text))
		return err_errno(e, -ENOMEM, "multicast groups");
	second = memchr(text.data, 0, text.len);
	parse4((char *)text.data, out);
	if (second)
		parse6(second + 1, out);
	return buf_error(out);
}

/* A filter with room for MAX_SOURCES. */
union filter {
	struct group_filter f;
	char room[GROUP_FILTER_SIZE(MAX_SOURCES)];
};

/* True if @fd itself has joined the group: only members have a filter to be shown. */
static bool is_member(int fd, const struct group_req *q, union filter *ret)
{
	socklen_t len = sizeof(*ret);
	int level = q->gr_group.ss_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;

	memset(ret, 0, sizeof(*ret));
	ret->f.gf_interface = q->gr_interface;
	ret->f.gf_group = q->gr_group;
	ret->f.gf_numsrc = MAX_SOURCES;
	return getsockopt(fd, level, MCAST_MSFILTER, ret, &len) == 0;
}

static void *address_in(const struct sockaddr_storage *a)
{
	return a->ss_family == AF_INET ? (void *)&((struct sockaddr_in *)a)->sin_addr
				       : (void *)&((struct sockaddr_in6 *)a)->sin6_addr;
}

static int dump_memberships(struct ckpt_dump *d, int fd, int domain, Pb__Udp *m, struct err *e)
{
	_cleanup_buf_ struct buf groups = BUF_INIT;
	const struct group_req *q;
	union filter filter;
	size_t n;
	int r = list_groups(d, &groups, e);

	if (r < 0)
		return r;
	q = (const void *)groups.data;
	n = groups.len / sizeof(*q);
	m->memberships = calloc(n + 1, sizeof(*m->memberships));
	for (size_t i = 0; i < n && m->memberships; i++) {
		size_t len = q[i].gr_group.ss_family == AF_INET ? 4 : 16;
		Pb__SockMembership *one;

		if ((domain == AF_INET && len == 16) || !is_member(fd, &q[i], &filter))
			continue;
		if (filter.f.gf_numsrc > MAX_SOURCES)
			return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
				"a multicast group with %u sources is not supported",
				filter.f.gf_numsrc);
		one = malloc(sizeof(*one) + len * (1 + filter.f.gf_numsrc));
		if (!one)
			return err_errno(e, -ENOMEM, "multicast groups");
		pb__sock_membership__init(one);
		one->ifindex = q[i].gr_interface;
		one->group.data = memcpy(one + 1, address_in(&q[i].gr_group), len);
		one->group.len = len;
		one->include = filter.f.gf_fmode == MCAST_INCLUDE;
		one->sources.data = one->group.data + len;
		one->sources.len = len * filter.f.gf_numsrc;
		for (size_t k = 0; k < filter.f.gf_numsrc; k++)
			memcpy(one->sources.data + k * len, address_in(&filter.f.gf_slist[k]), len);
		m->memberships[m->n_memberships++] = one;
	}
	return m->memberships ? 0 : err_errno(e, -ENOMEM, "multicast groups");
}

/* From whom it takes what is sent to the group. */
static int filter_sources(int fd, int level, const struct group_req *q, const Pb__SockMembership *m,
	struct err *e)
{
	size_t len = m->group.len, n = m->sources.len / len;
	union filter filter = {0};

	if (!m->include && !n)
		return 0;
	if (m->sources.len % len || n > MAX_SOURCES)
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad multicast sources");
	filter.f.gf_interface = q->gr_interface;
	filter.f.gf_group = q->gr_group;
	filter.f.gf_fmode = m->include ? MCAST_INCLUDE : MCAST_EXCLUDE;
	filter.f.gf_numsrc = (uint32_t)n;
	for (size_t k = 0; k < n; k++) {
		filter.f.gf_slist[k].ss_family = q->gr_group.ss_family;
		memcpy(address_in(&filter.f.gf_slist[k]), m->sources.data + k * len, len);
	}
	if (setsockopt(fd, level, MCAST_MSFILTER, &filter, (socklen_t)GROUP_FILTER_SIZE(n)) < 0)
		return err_errno(e, -errno, "cannot set the sources of a multicast group");
	return 0;
}

static int join(int fd, const Pb__SockMembership *m, struct err *e)
{
	struct group_req q = {.gr_interface = m->ifindex};
	int level = m->group.len == 4 ? IPPROTO_IP : IPPROTO_IPV6;

	if (m->group.len != 4 && m->group.len != 16)
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad multicast group");
	q.gr_group.ss_family = m->group.len == 4 ? AF_INET : AF_INET6;
	memcpy(address_in(&q.gr_group), m->group.data, m->group.len);
	if (setsockopt(fd, level, MCAST_JOIN_GROUP, &q, sizeof(q)) < 0 && errno != EADDRINUSE)
		return err_errno(e, -errno, "cannot join a multicast group again");
	return filter_sources(fd, level, &q, m, e);
}

/* ---- dump ----------------------------------------------------------------------------------- */

static void fini(Pb__Udp *m)
{
	if (m->common)
		ckpt_sock_common_fini(m->common);
	ckpt_sock_addr_free(m->local);
	ckpt_sock_addr_free(m->remote);
	ckpt_sock_queue_free(m->queue, m->n_queue);
	for (size_t i = 0; i < m->n_memberships; i++)
		free(m->memberships[i]);
	free(m->memberships);
}

static bool is_zero(const union ckpt_sockaddr *a)
{
	if (a->in.sin_port)
		return false;
	return a->any.sa_family == AF_INET
		       ? !a->in.sin_addr.s_addr
		       : !memcmp(&a->in6.sin6_addr, &in6addr_any, sizeof(in6addr_any));
}

static int dump_addresses(int fd, Pb__Udp *m, struct err *e)
{
	union ckpt_sockaddr a = {0};
	socklen_t len = sizeof(a);

	if (getsockname(fd, &a.any, &len) < 0)
		return err_errno(e, -errno, "getsockname");
	if (!is_zero(&a)) {
		m->local = ckpt_sock_addr_pack(&a);
		if (!m->local)
			return err_errno(e, -ENOMEM, "address of a socket");
	}
	len = sizeof(a);
	if (getpeername(fd, &a.any, &len) < 0)
		return 0;
	m->remote = ckpt_sock_addr_pack(&a);
	return m->remote ? 0 : err_errno(e, -ENOMEM, "address of a socket");
}

/* Is @own, bound to any address, where this host reaches @a? */
static bool is_at_any(const union ckpt_sockaddr *own, const union ckpt_sockaddr *a)
{
	const struct in6_addr *six = &a->in6.sin6_addr;
	bool four = a->any.sa_family == AF_INET;
	uint32_t ip = four ? a->in.sin_addr.s_addr : six->s6_addr32[3];

	if (own->in.sin_port != a->in.sin_port)
		return false;
	if (!four && !IN6_IS_ADDR_V4MAPPED(six))
		return own->any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(six) &&
		       IN6_IS_ADDR_UNSPECIFIED(&own->in6.sin6_addr);
	if (ntohl(ip) >> 24 != IN_LOOPBACKNET)
		return false;
	return own->any.sa_family == AF_INET ? !own->in.sin_addr.s_addr
					     : IN6_IS_ADDR_UNSPECIFIED(&own->in6.sin6_addr);
}

/* Is a socket of the session bound to @a? */
static bool is_ours(const struct ckpt_dump *d, const union ckpt_sockaddr *a)
{
	for (size_t i = 0; i < d->n_files; i++) {
		const struct ckpt_file *f = d->files[i];
		union ckpt_sockaddr own = {0};
		socklen_t len = sizeof(own);

		if (f->kind == &ckpt_kind_udp && getsockname(f->fd, &own.any, &len) == 0 &&
			(ckpt_sock_addr_equal(&own, a) || is_at_any(&own, a)))
			return true;
	}
	return false;
}

/* A socket on the host's network with a peer leads out of the session,
 * unless that is in it, too. */
static bool leads_out(const struct ckpt_dump *d, int fd, union ckpt_sockaddr *ret)
{
	socklen_t len = sizeof(*ret);

	*ret = (union ckpt_sockaddr){0};
	return d->world->ns_net < 0 && getpeername(fd, &ret->any, &len) == 0 && !is_ours(d, ret);
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	union ckpt_sockaddr a;
	char text[INET6_ADDRSTRLEN + 10];

	if (!leads_out(d, s.file->fd, &a))
		return ckpt_sock_addr_check(d, s.file->fd, e);
	return ckpt_outside(d, e, "a UDP socket connected to %s leads out of the session",
		ckpt_sock_addr_text(&a, text, sizeof(text)));
}

/* shutdown(2), as far as it shows: of one that may still receive it does not. */
static void look_shut(int fd, Pb__Udp *m)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	m->no_receive = poll(&p, 1, 0) == 1 && (p.revents & POLLRDHUP);
	m->no_send = m->no_receive && (p.revents & POLLHUP);
}

static int dump_queue(struct ckpt_dump *d, int fd, Pb__Udp *m, struct err *e)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (m->no_receive)
		return 0;
	/* An error that waits would be told to us instead of to the session. */
	if (d->world->ns_net < 0 || is_ping(m->common->protocol) || poll(&p, 1, 0) != 1 ||
		!(p.revents & POLLIN) || (p.revents & POLLERR))
		return 0;
	return ckpt_sock_queue_dump(d, fd, &m->queue, &m->n_queue, e);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	Pb__SockCommon common = PB__SOCK_COMMON__INIT;
	Pb__Udp m = PB__UDP__INIT;
	union ckpt_sockaddr peer;
	int r = check(d, s, e);

	if (r < 0)
		return r;
	m.common = &common;
	m.outside = leads_out(d, f->fd, &peer);
	m.domain = f->domain;
	r = ckpt_sock_common_dump(d, f, &common, e);
	if (r >= 0)
		r = dump_addresses(f->fd, &m, e);
	look_shut(f->fd, &m);
	if (r >= 0)
		r = dump_queue(d, f->fd, &m, e);
	if (r >= 0)
		r = dump_memberships(d, f->fd, m.domain, &m, e);
	if (r >= 0)
		r = ckpt_pack(&m.base, body, e);
	fini(&m);
	return r;
}

/* ---- restore -------------------------------------------------------------------------------- */

static Pb__Udp *message_of(struct ckpt_record *r, struct err *e)
{
	Pb__Udp *m = pb__udp__unpack(NULL, r->len, r->body);

	if (m && m->common && (m->domain == AF_INET || m->domain == AF_INET6) &&
		m->common->type == SOCK_DGRAM && m->n_queue <= MAX_MESSAGES &&
		m->n_memberships <= MAX_MEMBERSHIPS)
		return m;
	pb__udp__free_unpacked(m, NULL);
	ckpt_common_bad(r, e);
	return NULL;
}

static int bind_to(int fd, int domain, const Pb__InetAddr *m, struct err *e)
{
	union ckpt_sockaddr a;
	char text[64];
	int len = ckpt_sock_addr_unpack(m, domain, &a, e);

	if (len < 0)
		return len;
	if (bind(fd, &a.any, (socklen_t)len) < 0)
		return err_errno(e, -errno, "cannot bind a UDP socket to %s",
			ckpt_sock_addr_text(&a, text, sizeof(text)));
	return 0;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Udp *m = message_of(r, e);
	_cleanup_close_ int fd = -1;
	int rc, one = 1;

	if (!m)
		return -EBADMSG;
	rc = fd = ckpt_sock_create(m->domain, m->common, e);
	if (rc >= 0)
		rc = ckpt_sock_options_early(fd, m->common, e);
	/* Until the end addresses may be had twice: by those who send what waits. */
	if (rc >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (rc >= 0 && m->local)
		rc = bind_to(fd, m->domain, m->local, e);
	/* Where it leads out, the address may be another host's. */
	if (rc < 0 && fd >= 0 && m->outside) {
		log_info("%s", e->msg);
		*e = (struct err){0};
		rc = 0;
	}
	for (size_t i = 0; rc >= 0 && i < m->n_memberships; i++)
		rc = join(fd, m->memberships[i], e);
	pb__udp__free_unpacked(m, NULL);
	if (rc >= 0)
		*ret_fd = take_fd(&fd);
	return rc;
}

static bool is_loopback(const union ckpt_sockaddr *a)
{
	return a->any.sa_family == AF_INET ? a->in.sin_addr.s_addr == htonl(INADDR_LOOPBACK)
					   : IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
}

static size_t waiting(int fd)
{
	int n = 0;

	return ioctl(fd, SIOCINQ, &n) < 0 ? 0 : (size_t)n;
}

/* Where @m's socket can be reached over the loopback device. */
static int address_of(int fd, const Pb__Udp *m, union ckpt_sockaddr *ret, struct err *e)
{
	int len = ckpt_sock_addr_unpack(m->local, m->domain, ret, e);

	if (len > 0 && m->domain == AF_INET && !ret->in.sin_addr.s_addr)
		ret->in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else if (len > 0 && m->domain == AF_INET6 &&
		 !memcmp(&ret->in6.sin6_addr, &in6addr_any, sizeof(in6addr_any)))
		ret->in6.sin6_addr = in6addr_loopback;
	return len;
}

/* The session's own address by which it reaches @source; @to has the port. */
static void own_address(int domain, const Pb__InetAddr *source, union ckpt_sockaddr *to)
{
	_cleanup_close_ int fd = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	in_port_t port = to->in.sin_port;
	union ckpt_sockaddr a;
	socklen_t len = sizeof(a);
	int n = ckpt_sock_addr_unpack(source, domain, &a, NULL);

	if (n < 0 || connect(fd, &a.any, (socklen_t)n) < 0 || getsockname(fd, &a.any, &len) < 0)
		return;
	*to = a;
	to->in.sin_port = port;
}

/*
 * A source that is not the session's own is outside: whoever owns the network may send in its
 * name.  As a packet of its would, it goes to the session's address there, which a socket bound
 * to any has not told.
 */
static int bind_outside(int fd, const Pb__Udp *m, const Pb__InetAddr *source,
	union ckpt_sockaddr *to, struct err *e)
{
	int one = 1;

	if (is_loopback(to))
		own_address(m->domain, source, to);
	setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &one, sizeof(one));
	if (m->domain == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_TRANSPARENT, &one, sizeof(one));
	return bind_to(fd, m->domain, source, e);
}

static bool is_any(const Pb__InetAddr *a)
{
	for (size_t i = 0; i < a->ip.len; i++)
		if (a->ip.data[i])
			return false;
	return true;
}

/* May a socket of the session be bound to the address of @a, whatever the port? */
static bool is_own(int domain, const Pb__InetAddr *a)
{
	_cleanup_close_ int fd = socket(domain, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	union ckpt_sockaddr address;
	int len = ckpt_sock_addr_unpack(a, domain, &address, NULL);

	address.in.sin_port = 0;
	return fd >= 0 && len >= 0 && bind(fd, &address.any, (socklen_t)len) == 0;
}

/* Where a second socket with the name of the source would be the one that gets it. */
static bool is_from_itself(const Pb__Udp *m, const Pb__InetAddr *source)
{
	const Pb__InetAddr *own = m->local;

	if (!own || own->port != source->port)
		return false;
	if (is_any(own))
		return is_own(m->domain, source);
	return own->ip.len == source->ip.len && !memcmp(own->ip.data, source->ip.data, own->ip.len);
}

static int send_to_itself(int fd, const Pb__Udp *m, const Pb__SockMessage *message, struct err *e)
{
	union ckpt_sockaddr a;
	int len = ckpt_sock_addr_unpack(message->source, m->domain, &a, e);

	if (len < 0)
		return len;
	if (sendto(fd, message->data.data, message->data.len, MSG_DONTWAIT, &a.any, (socklen_t)len) < 0)
		log_info("a datagram that was waiting is lost: %s", strerror(errno));
	return 0;
}

static int send_from(const Pb__Udp *m, const Pb__SockMessage *message,
	const union ckpt_sockaddr *to, socklen_t len, struct err *e)
{
	_cleanup_close_ int fd = ckpt_sock_create(m->domain, m->common, e);
	union ckpt_sockaddr target = *to;
	int one = 1, r;

	if (fd < 0)
		return fd;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	ckpt_sock_widen(fd);
	r = bind_to(fd, m->domain, message->source, NULL);
	if (r == -EADDRNOTAVAIL)
		r = bind_outside(fd, m, message->source, &target, e);
	else if (r < 0)
		r = bind_to(fd, m->domain, message->source, e);
	if (r < 0)
		return r;
	/* To a socket bound to any address: by the way the source's family goes. */
	if (m->domain == AF_INET6 && message->source->ip.len == 16 &&
		IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)message->source->ip.data) &&
		IN6_IS_ADDR_LOOPBACK(&target.in6.sin6_addr)) {
		uint32_t loopback = htonl(INADDR_LOOPBACK);

		memset(&target.in6.sin6_addr, 0, sizeof(target.in6.sin6_addr));
		memset(&target.in6.sin6_addr.s6_addr[10], 0xff, 2);
		memcpy(&target.in6.sin6_addr.s6_addr[12], &loopback, 4);
	}
	if (sendto(fd, message->data.data, message->data.len, MSG_DONTWAIT, &target.any, len) < 0)
		log_info("a datagram that was waiting is lost: %s", strerror(errno));
	return 0;
}

static int fill(int fd, const Pb__Udp *m, struct err *e)
{
	union ckpt_sockaddr to;
	int len = address_of(fd, m, &to, e);

	if (len < 0)
		return len;
	ckpt_sock_widen(fd);
	for (size_t i = 0; i < m->n_queue; i++) {
		int r;

		/* One without a source can't be sent again. */
		if (!m->queue[i]->source)
			continue;
		r = is_from_itself(m, m->queue[i]->source)
			    ? send_to_itself(fd, m, m->queue[i], e)
			    : send_from(m, m->queue[i], &to, (socklen_t)len, e);
		if (r < 0)
			return r;
	}
	for (int i = 0; i < PATIENCE_MS && m->n_queue && !waiting(fd); i++)
		poll(NULL, 0, 1);
	return 0;
}

static int link_queue(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	int fd = ckpt_build_file(b, (uint32_t)r->subject)->fd, len, rc = 0;
	Pb__Udp *m = message_of(r, e);
	union ckpt_sockaddr a;

	if (!m)
		return -EBADMSG;
	if (m->n_queue)
		rc = fill(fd, m, e);
	if (rc >= 0 && m->remote) {
		rc = len = ckpt_sock_addr_unpack(m->remote, m->domain, &a, e);
		if (rc >= 0 && connect(fd, &a.any, (socklen_t)len) < 0 && !m->outside)
			rc = err_errno(e, -errno, "cannot connect a UDP socket again");
	}
	if (m->no_receive)
		shutdown(fd, m->no_send ? SHUT_RDWR : SHUT_RD);
	pb__udp__free_unpacked(m, NULL);
	return rc;
}

static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Udp *m = message_of(r, e);
	int rc = -EBADMSG;

	if (m)
		rc = ckpt_sock_options_late(
			b, ckpt_build_file(b, (uint32_t)r->subject)->fd, m->common, e);
	pb__udp__free_unpacked(m, NULL);
	return rc;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Udp *m = pb__udp__unpack(NULL, len, body);

	if (!m)
		return;
	ckpt_sock_addr_show(m->local, m->domain, out);
	if (m->remote) {
		fputs(" to ", out);
		ckpt_sock_addr_show(m->remote, m->domain, out);
	}
	if (m->n_queue)
		fprintf(out, ", %zu datagrams unread", m->n_queue);
	if (m->n_memberships)
		fprintf(out, ", %zu multicast groups", m->n_memberships);
	pb__udp__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_udp = {
	.number = PROTO_KIND_UDP,
	.name = "udp",
	.scope = CKPT_FILE,
	.claim = claim,
	.check = check,
	.dump = dump,
	.create = create,
	.link = link_queue,
	.finish = finish,
	.show = show,
};
