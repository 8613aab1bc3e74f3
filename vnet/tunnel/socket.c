// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/tunnel/socket.h"

#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/base.h"

#define QUEUE	    (4 << 20) /* what is asked of the kernel for each direction; it may give less */
#define OUT_ROOM    (256 << 10) /* for datagrams that are sent together */
#define OUT_RUNS    64
#define RUN_MAX	    64		  /* segments in a run, as of kernels before 6.9 */
#define IN_ROOM	    (65536 + 256) /* not a power of two, so that buffers do not share cache sets */
#define FLUSH_AFTER 65536

struct out_run {
	struct vnet_endpoint to;
	size_t at, len, segment;
	bool closed; /* its last datagram was a shorter one */
};

struct vnet_socket {
	int fd, family;
	uint16_t port;
	bool segments; /* the kernel cuts runs up */
	struct out_run out[OUT_RUNS];
	unsigned first, n_out;	    /* runs; before `first` they are gone */
	size_t used, sent_of_first; /* bytes of out_data; of its first run */
	uint8_t *out_data, *in_data;
};

void vnet_socket_close(struct vnet_socket *u)
{
	if (!u)
		return;
	close_fd(u->fd);
	free(u->out_data);
	free(u->in_data);
	free(u);
}

DEFINE_CLEANUP(udp, struct vnet_socket *, vnet_socket_close);

static void set(int fd, int level, int option, int value)
{
	/* All of them only make things better. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

static int bind_to(struct vnet_socket *u, int family, uint16_t port)
{
	struct vnet_endpoint any = {.family = (uint8_t)family, .port = port};
	struct sockaddr_storage sa;
	socklen_t len = vnet_endpoint_to_sockaddr(&any, &sa);

	u->family = family;
	u->fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0)
		return -errno;
	if (family == AF_INET6)
		set(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (bind(u->fd, (struct sockaddr *)&sa, len) < 0) {
		int r = -errno;

		u->fd = close_fd(u->fd);
		return r;
	}
	len = sizeof(sa);
	if (getsockname(u->fd, (struct sockaddr *)&sa, &len) < 0 ||
		vnet_endpoint_from_sockaddr(&sa, len, &any) < 0)
		return -EIO;
	u->port = any.port;
	return 0;
}

int vnet_socket_open(struct vnet_socket **ret, const struct vnet_socket_options *o, struct err *e)
{
	_cleanup_(cleanup_udp) struct vnet_socket *u = calloc(1, sizeof(*u));
	int r;

	if (!u)
		return err_errno(e, -ENOMEM, "UDP");
	u->fd = -1;
	u->out_data = malloc(OUT_ROOM);
	u->in_data = malloc((size_t)VNET_SOCKET_RUNS * IN_ROOM);
	if (!u->out_data || !u->in_data)
		return err_errno(e, -ENOMEM, "UDP");
	r = bind_to(u, AF_INET6, o->port);
	if (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL)
		r = bind_to(u, AF_INET, o->port);
	if (r < 0)
		return err_errno(e, r, "UDP port %d", o->port);
	set(u->fd, SOL_SOCKET, SO_SNDBUF, QUEUE);
	set(u->fd, SOL_SOCKET, SO_RCVBUF, QUEUE);
	set(u->fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	if (u->family == AF_INET6)
		set(u->fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
	if (!o->no_runs) {
		set(u->fd, IPPROTO_UDP, UDP_GRO, 1);
		u->segments = true;
	}
	*ret = take_ptr(u);
	return 0;
}

int vnet_socket_fd(const struct vnet_socket *u)
{
	return u->fd;
}

uint16_t vnet_socket_port(const struct vnet_socket *u)
{
	return u->port;
}

bool vnet_socket_blocked(const struct vnet_socket *u)
{
	return u->first < u->n_out;
}

/* A socket of IPv6 wants addresses of IPv4 in its own form. */
static socklen_t address_for(
	const struct vnet_socket *u, const struct vnet_endpoint *to, struct sockaddr_storage *ret)
{
	struct vnet_endpoint mapped = *to;

	if (to->family == AF_INET && u->family == AF_INET6) {
		mapped.family = AF_INET6;
		memset(&mapped.v6, 0, 10);
		memset(mapped.v6.s6_addr + 10, 0xff, 2);
		memcpy(mapped.v6.s6_addr + 12, &to->v4, 4);
	}
	return vnet_endpoint_to_sockaddr(&mapped, ret);
}

static void forget(struct vnet_socket *u)
{
	u->first = u->n_out = 0;
	u->used = u->sent_of_first = 0;
}

uint8_t *vnet_socket_put(struct vnet_socket *u, const struct vnet_endpoint *to, size_t len)
{
	struct out_run *run = u->n_out ? &u->out[u->n_out - 1] : NULL;
	uint8_t *data;

	if (u->used >= FLUSH_AFTER || u->used + len > OUT_ROOM || u->n_out == OUT_RUNS) {
		vnet_socket_flush(u);
		if (vnet_socket_blocked(u) && (u->used + len > OUT_ROOM || u->n_out == OUT_RUNS))
			return NULL;
		run = NULL;
	}
	data = u->out_data + u->used;
	if (run && !run->closed && len <= run->segment && run->len + len <= VNET_SOCKET_MAX &&
		run->len / run->segment < RUN_MAX && vnet_endpoint_equal(&run->to, to)) {
		run->len += len;
		run->closed = len < run->segment;
	} else {
		u->out[u->n_out++] =
			(struct out_run){.to = *to, .at = u->used, .len = len, .segment = len};
	}
	u->used += len;
	return data;
}

/* One system call for a whole run.  1: gone, 0: it can't be done like this, -EAGAIN: not now. */
static int send_whole(struct vnet_socket *u, const struct out_run *run)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(uint16_t))];
	} control = {0};
	const uint16_t segment = (uint16_t)run->segment;
	struct sockaddr_storage sa;
	struct iovec iov = {u->out_data + run->at, run->len};
	struct msghdr m = {
		.msg_name = &sa,
		.msg_namelen = address_for(u, &run->to, &sa),
		.msg_iov = &iov,
		.msg_iovlen = 1,
	};

	if (run->len > run->segment) {
		m.msg_control = &control;
		m.msg_controllen = sizeof(control);
		control.head.cmsg_level = IPPROTO_UDP;
		control.head.cmsg_type = UDP_SEGMENT;
		control.head.cmsg_len = CMSG_LEN(sizeof(segment));
		memcpy(CMSG_DATA(&control.head), &segment, sizeof(segment));
	}
	for (;;) {
		if (sendmsg(u->fd, &m, 0) >= 0)
			return 1;
		if (errno == EINTR)
			continue;
		if (errno == EAGAIN)
			return -EAGAIN;
		break;
	}
	if (run->len == run->segment)
		return 1; /* lost */
	if (errno == EIO || errno == ENOPROTOOPT || errno == EOPNOTSUPP)
		u->segments = false; /* the interface can't do checksums; it will not learn */
	return 0;
}

/* Datagram by datagram.  1: gone, -EAGAIN: not all, not now. */
static int send_pieces(struct vnet_socket *u, const struct out_run *run)
{
	struct sockaddr_storage sa;
	struct mmsghdr m[RUN_MAX + 1];
	struct iovec iov[RUN_MAX + 1];
	socklen_t sa_len = address_for(u, &run->to, &sa);

	while (u->sent_of_first < run->len) {
		size_t at = u->sent_of_first;
		unsigned n = 0;
		int r;

		for (; at < run->len && n < ARRAY_SIZE(m); n++) {
			size_t len = MIN(run->segment, run->len - at);

			iov[n] = (struct iovec){u->out_data + run->at + at, len};
			m[n] = (struct mmsghdr){.msg_hdr = {.msg_name = &sa,
							.msg_namelen = sa_len,
							.msg_iov = &iov[n],
							.msg_iovlen = 1}};
			at += len;
		}
		r = sendmmsg(u->fd, m, n, 0);
		if (r < 0 && errno == EAGAIN)
			return -EAGAIN;
		if (r < 0 && errno != EINTR)
			break; /* lost */
		u->sent_of_first += r > 0 ? (size_t)r * run->segment : 0;
	}
	return 1;
}

void vnet_socket_flush(struct vnet_socket *u)
{
	for (; u->first < u->n_out; u->first++) {
		const struct out_run *run = &u->out[u->first];
		int r = 0;

		if (!u->sent_of_first && (u->segments || run->len == run->segment))
			r = send_whole(u, run);
		if (!r)
			r = send_pieces(u, run);
		if (r == -EAGAIN)
			return;
		u->sent_of_first = 0;
	}
	forget(u);
}

static size_t segment_of(struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		int segment;

		if (c->cmsg_level != IPPROTO_UDP || c->cmsg_type != UDP_GRO)
			continue;
		memcpy(&segment, CMSG_DATA(c), sizeof(segment));
		return segment > 0 ? (size_t)segment : 0;
	}
	return 0;
}

unsigned vnet_socket_receive(struct vnet_socket *u, struct vnet_socket_run ret[VNET_SOCKET_RUNS])
{
	struct sockaddr_storage from[VNET_SOCKET_RUNS];
	struct mmsghdr m[VNET_SOCKET_RUNS];
	struct iovec iov[VNET_SOCKET_RUNS];
	char control[VNET_SOCKET_RUNS][CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	unsigned n_runs = 0;
	int n;

	for (unsigned i = 0; i < VNET_SOCKET_RUNS; i++) {
		iov[i] = (struct iovec){u->in_data + (size_t)i * IN_ROOM, 65536};
		m[i] = (struct mmsghdr){.msg_hdr = {.msg_name = &from[i],
						.msg_namelen = sizeof(from[i]),
						.msg_iov = &iov[i],
						.msg_iovlen = 1,
						.msg_control = control[i],
						.msg_controllen = sizeof(control[i])}};
	}
	do
		n = recvmmsg(u->fd, m, VNET_SOCKET_RUNS, MSG_DONTWAIT, NULL);
	while (n < 0 && errno == EINTR);
	for (int i = 0; i < n; i++) {
		struct vnet_socket_run *run = &ret[n_runs];

		if (!m[i].msg_len || m[i].msg_hdr.msg_flags & MSG_TRUNC ||
			vnet_endpoint_from_sockaddr(
				&from[i], m[i].msg_hdr.msg_namelen, &run->from) < 0)
			continue;
		run->data = iov[i].iov_base;
		run->len = m[i].msg_len;
		run->segment = segment_of(&m[i].msg_hdr);
		if (!run->segment || run->segment > run->len)
			run->segment = run->len;
		n_runs++;
	}
	return n_runs;
}
