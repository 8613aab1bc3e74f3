// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who is connected to whom: asked by sock_diag(7) through a netlink socket that a helper makes
 * inside the session's network namespace.  A netlink socket belongs to the namespace it was made
 * in, whoever uses it, so one descriptor is all that has to come out.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <string.h>

#include "ckpt/enter.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/survey/survey.h"

#define MAX_SOCKETS 1000000
/* All states but TCP_BOUND_INACTIVE (Linux 6.9): who has an address and nothing else is nobody's
 * counterpart, and another table to be walked through. */
#define HASHED (~(1u << 13))

static int open_inside(int sock, void *ctx, struct err *e)
{
	int protocol = *(const int *)ctx;
	_cleanup_close_ int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return err_errno(e, -errno, "netlink socket");
	return io_send_fds(sock, "", 1, &fd, 1);
}

struct elsewhere {
	int net, protocol;
};

/* In the session's user namespace, which owns all that are nested in it. */
static int open_elsewhere(int sock, void *ctx, struct err *e)
{
	struct elsewhere *at = ctx;

	if (setns(at->net, CLONE_NEWNET) < 0)
		return err_errno(e, -errno, "cannot look into a sandbox's network");
	return open_inside(sock, &at->protocol, e);
}

/* @net: of a network namespace nested in the session's; -1: its own. */
static int netlink_inside(const struct ckpt_world *w, int net, int protocol, struct err *e)
{
	int fd;

	if (net >= 0)
		return ckpt_enter_fd(
			w, CLONE_NEWUSER, open_elsewhere, &(struct elsewhere){net, protocol}, e);

	if (w->ns_net < 0) {
		fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
		return fd < 0 ? err_errno(e, -errno, "netlink socket") : fd;
	}
	return ckpt_enter_fd(w, CLONE_NEWNET, open_inside, &protocol, e);
}

int ckpt_sock_diag_open(const struct ckpt_world *w, struct err *e)
{
	return netlink_inside(w, -1, NETLINK_SOCK_DIAG, e);
}

/* @diag, or one more where there is none. */
static int have_diag(const struct ckpt_world *w, int diag, struct err *e)
{
	int fd = diag >= 0 ? fcntl(diag, F_DUPFD_CLOEXEC, 0) : ckpt_sock_diag_open(w, e);

	return fd < 0 && diag >= 0 ? err_errno(e, -errno, "netlink socket") : fd;
}

/* Called for each answer to a dump request. */
typedef int (*each_fn)(void *ctx, const struct nlmsghdr *h);

/* Why the kernel has left off, or 1: there are no more.  It says so where an answer would be. */
static int how_it_ended(const struct nlmsghdr *h)
{
	const int *error = NLMSG_DATA(h);

	return h->nlmsg_len >= NLMSG_LENGTH(sizeof(*error)) && *error < 0 ? *error : 1;
}

static int walk(const struct nlmsghdr *h, size_t n, each_fn each, void *ctx)
{
	for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
		const struct nlmsgerr *fault = NLMSG_DATA(h);
		int r;

		if (h->nlmsg_type == NLMSG_DONE)
			return how_it_ended(h);
		if (h->nlmsg_type == NLMSG_ERROR)
			return fault->error ? fault->error : 1;
		r = each(ctx, h);
		if (r < 0)
			return r;
	}
	return 0;
}

static int send_request(int fd, uint16_t type, uint16_t flags, const void *request, size_t len)
{
	struct nlmsghdr h = {
		.nlmsg_len = (uint32_t)(sizeof(h) + len),
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
	};
	struct iovec iov[] = {{&h, sizeof(h)}, {(void *)request, len}};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	return sendmsg(fd, &msg, 0) < 0 ? -errno : 0;
}

static int ask(int fd, uint16_t type, const void *request, size_t len, each_fn each, void *ctx)
{
	_cleanup_free_ char *answer = malloc(1 << 16);
	int sent;

	if (!answer)
		return -ENOMEM;
	sent = send_request(fd, type, NLM_F_DUMP, request, len);
	if (sent < 0)
		return sent;
	for (;;) {
		ssize_t n = recv(fd, answer, 1 << 16, 0);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EPROTO;
		r = walk((const void *)answer, (size_t)n, each, ctx);
		if (r)
			return r < 0 ? r : 0;
	}
}

/* ---- TCP and UDP ---------------------------------------------------------------------------- */

struct inet_list {
	struct buf entries; /* struct ckpt_inet_diag */
};

static void take_address(
	union ckpt_sockaddr *a, int domain, const __be32 ip[4], __be16 port, uint32_t scope)
{
	memset(a, 0, sizeof(*a));
	if (domain == AF_INET) {
		a->in.sin_family = AF_INET;
		a->in.sin_port = port;
		memcpy(&a->in.sin_addr, ip, 4);
	} else {
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = port;
		a->in6.sin6_scope_id = scope;
		memcpy(&a->in6.sin6_addr, ip, 16);
	}
}

#define TELLS(what)  (1u << INET_DIAG_##what)
#define ALL_TOLD     (TELLS(TOS) | TELLS(SKMEMINFO) | TELLS(CONG) | TELLS(SOCKOPT))
#define EXT(what)    (1 << (INET_DIAG_##what - 1))
/* SOCKOPT comes without being asked for. */
#define ALL_WANTED   (EXT(SHUTDOWN) | EXT(TOS) | EXT(SKMEMINFO) | EXT(CONG))
#define MEMORY_WORDS (SK_MEMINFO_SNDBUF + 1)

/* TELLS() of what it was, of options; else 0. */
static unsigned int take_option(struct ckpt_inet_diag *d, const struct nlattr *a)
{
	const void *data = a + 1;
	size_t len = a->nla_len - sizeof(*a);

	if (a->nla_type == INET_DIAG_SHUTDOWN && len >= 1) {
		d->shutdown = *(const uint8_t *)data;
	} else if (a->nla_type == INET_DIAG_TOS && len >= 1) {
		d->tos = *(const uint8_t *)data;
		return TELLS(TOS);
	} else if (a->nla_type == INET_DIAG_SKMEMINFO && len >= MEMORY_WORDS * sizeof(uint32_t)) {
		const uint32_t *words = data;

		d->receive_buffer = words[SK_MEMINFO_RCVBUF];
		d->send_buffer = words[SK_MEMINFO_SNDBUF];
		return TELLS(SKMEMINFO);
	} else if (a->nla_type == INET_DIAG_CONG && len && len <= sizeof(d->congestion)) {
		memcpy(d->congestion, data, len);
		return TELLS(CONG);
	} else if (a->nla_type == INET_DIAG_SOCKOPT && len >= sizeof(struct inet_diag_sockopt)) {
		const struct inet_diag_sockopt *o = data;

		d->recverr = o->recverr;
		d->recverr_rfc4884 = o->recverr_rfc4884;
		d->freebind = o->freebind;
		d->transparent = o->transparent;
		d->bind_address_no_port = o->bind_address_no_port;
		return TELLS(SOCKOPT);
	}
	return 0;
}

static int each_inet(void *ctx, const struct nlmsghdr *h)
{
	struct inet_list *list = ctx;
	const struct inet_diag_msg *m = NLMSG_DATA(h);
	struct ckpt_inet_diag d = {0};
	unsigned int options = 0;
	size_t left;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return -EPROTO;
	d.ino = m->idiag_inode;
	d.state = m->idiag_state;
	d.domain = m->idiag_family;
	d.rqueue = m->idiag_rqueue;
	d.wqueue = m->idiag_wqueue;
	take_address(&d.local, d.domain, m->id.idiag_src, m->id.idiag_sport, 0);
	take_address(&d.remote, d.domain, m->id.idiag_dst, m->id.idiag_dport, 0);
	left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
	for (const struct nlattr *a = (const void *)(m + 1);
		left >= sizeof(*a) && a->nla_len >= sizeof(*a) && a->nla_len <= left;) {
		size_t step = NLA_ALIGN(a->nla_len);

		options |= take_option(&d, a);
		if (step > left)
			break;
		left -= step;
		a = (const void *)((const char *)a + step);
	}
	d.told = options == ALL_TOLD;
	buf_put(&list->entries, &d, sizeof(d));
	return list->entries.len / sizeof(d) > MAX_SOCKETS ? -E2BIG : buf_error(&list->entries);
}

static int by_ino(const void *a, const void *b)
{
	const struct ckpt_inet_diag *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

/* By the two addresses of a connection, whichever of them is the local one. */
static int by_connection(const void *a, const void *b, void *ctx)
{
	const struct ckpt_inet_diag_list *list = ctx;
	struct ckpt_sock_key x, y;

	ckpt_sock_addr_key(&list->entries[*(const uint32_t *)a], &x);
	ckpt_sock_addr_key(&list->entries[*(const uint32_t *)b], &y);
	return memcmp(&x, &y, sizeof(x));
}

/* Both ends of a connection lie beside one another in that order; one that
 * leads to itself has one. */
static int find_peers(struct ckpt_inet_diag_list *list)
{
	_cleanup_free_ uint32_t *order = calloc(list->n + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	sort_array(list->entries, list->n, sizeof(list->entries[0]), by_ino);
	for (uint32_t i = 0; i < list->n; i++) {
		struct ckpt_inet_diag *x = &list->entries[i];
		bool itself = x->state != TCP_LISTEN && x->local.in.sin_port &&
			      ckpt_sock_addr_equal(&x->local, &x->remote);

		order[i] = i;
		x->peer = itself ? i : CKPT_SOCK_NONE;
	}
	if (list->n > 1)
		qsort_r(order, list->n, sizeof(*order), by_connection, list);
	for (size_t i = 0; i + 1 < list->n; i++) {
		struct ckpt_inet_diag *x = &list->entries[order[i]];
		struct ckpt_inet_diag *y = &list->entries[order[i + 1]];

		if (x->state == TCP_LISTEN || y->state == TCP_LISTEN ||
			!ckpt_sock_addr_equal(&x->local, &y->remote) ||
			!ckpt_sock_addr_equal(&x->remote, &y->local))
			continue;
		x->peer = order[i + 1];
		y->peer = order[i];
	}
	return 0;
}

const struct ckpt_inet_diag *ckpt_sock_inet_by_ino(
	const struct ckpt_inet_diag_list *list, uint32_t ino)
{
	const struct ckpt_inet_diag key = {.ino = ino};

	return ino ? sort_find(&key, list->entries, list->n, sizeof(key), by_ino) : NULL;
}

/* Those of both families, one after the other. */
static int ask_by_family(int fd, struct inet_list *list)
{
	struct inet_diag_req_v2 q = {
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_ext = ALL_WANTED,
		.idiag_states = HASHED,
	};
	int r = 0;

	for (size_t i = 0; i < 2 && r >= 0; i++) {
		q.sdiag_family = i ? AF_INET6 : AF_INET;
		r = ask(fd, SOCK_DIAG_BY_FAMILY, &q, sizeof(q), each_inet, list);
		if (r == -ENOENT) /* no such protocol here */
			r = 0;
	}
	return r;
}

/*
 * To answer, the kernel walks through the whole host's table of connections, some milliseconds long
 * where memory is large.  So it is asked in the old way, which knows no families: one walk for both.
 */
static int ask_both(int fd, uint8_t ext, uint32_t states, each_fn each, void *ctx)
{
	const struct inet_diag_req q = {.idiag_ext = ext, .idiag_states = states};

	return ask(fd, TCPDIAG_GETSOCK, &q, sizeof(q), each, ctx);
}

static int ask_at_once(int fd, struct inet_list *list)
{
	size_t before = list->entries.len;
	int r = ask_both(fd, ALL_WANTED, HASHED, each_inet, list);

	if (r != -EINVAL && r != -EOPNOTSUPP && r != -ENOENT)
		return r;
	list->entries.len = before;
	return ask_by_family(fd, list);
}

int ckpt_sock_diag_tcp(
	const struct ckpt_world *w, int diag, struct ckpt_inet_diag_list **ret, struct err *e)
{
	struct inet_list list = {0};
	struct ckpt_inet_diag_list *block;
	_cleanup_close_ int fd = have_diag(w, diag, e);
	int r;

	if (fd < 0)
		return fd;
	/* The list's own head comes first: the block is one. */
	buf_put(&list.entries, &(struct ckpt_inet_diag_list){0}, sizeof(*block));
	r = ask_at_once(fd, &list);
	if (r < 0) {
		buf_fini(&list.entries);
		return err_errno(e, r, "cannot list the session's sockets");
	}
	block = (void *)list.entries.data;
	block->n = (list.entries.len - sizeof(*block)) / sizeof(block->entries[0]);
	r = find_peers(block);
	if (r < 0) {
		free(block);
		return err_errno(e, r, "list of sockets");
	}
	*ret = block;
	return 0;
}

struct raw {
	ckpt_inet_diag_fn each;
	void *ctx;
};

static int each_raw(void *ctx, const struct nlmsghdr *h)
{
	const struct raw *raw = ctx;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(struct inet_diag_msg)))
		return -EPROTO;
	return raw->each(raw->ctx, NLMSG_DATA(h), h->nlmsg_len - NLMSG_HDRLEN);
}

int ckpt_sock_diag_each(int diag, uint32_t states, ckpt_inet_diag_fn each, void *ctx)
{
	return ask_both(diag, 0, states, each_raw, &(struct raw){each, ctx});
}

int ckpt_sock_diag_one(
	int diag, const struct inet_diag_req_v2 *q, ckpt_inet_diag_fn each, void *ctx)
{
	char answer[1024] __attribute__((aligned(NLMSG_ALIGNTO)));
	int r = send_request(diag, SOCK_DIAG_BY_FAMILY, 0, q, sizeof(*q));
	ssize_t n;

	if (r < 0)
		return r;
	do
		n = recv(diag, answer, sizeof(answer), 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	r = walk((const void *)answer, (size_t)n, each_raw, &(struct raw){each, ctx});
	return MIN(r, 0);
}

/* ---- unix ----------------------------------------------------------------------------------- */

struct unix_list {
	struct buf entries; /* struct ckpt_unix_diag */
	struct buf pending; /* uint32_t */
};

static void take_unix(struct unix_list *list, struct ckpt_unix_diag *d, const struct nlattr *a)
{
	const void *data = a + 1;
	size_t len = a->nla_len - sizeof(*a);

	if (a->nla_type == UNIX_DIAG_PEER && len >= sizeof(uint32_t)) {
		d->has_peer = true;
		memcpy(&d->peer, data, sizeof(d->peer));
	} else if (a->nla_type == UNIX_DIAG_SHUTDOWN && len >= 1) {
		d->shutdown = *(const uint8_t *)data;
	} else if (a->nla_type == UNIX_DIAG_VFS && len >= sizeof(struct unix_diag_vfs)) {
		const struct unix_diag_vfs *v = data;

		d->has_node = true;
		d->node_ino = v->udiag_vfs_ino;
		d->node_dev = v->udiag_vfs_dev;
	} else if (a->nla_type == UNIX_DIAG_RQLEN && len >= sizeof(struct unix_diag_rqlen)) {
		const struct unix_diag_rqlen *q = data;

		d->queued = q->udiag_rqueue;
		d->backlog = q->udiag_wqueue;
	} else if (a->nla_type == UNIX_DIAG_ICONS) {
		d->pending_at = (uint32_t)(list->pending.len / sizeof(uint32_t));
		d->n_pending = (uint32_t)(len / sizeof(uint32_t));
		buf_put(&list->pending, data, d->n_pending * sizeof(uint32_t));
	}
}

static int each_unix(void *ctx, const struct nlmsghdr *h)
{
	struct unix_list *list = ctx;
	const struct unix_diag_msg *m = NLMSG_DATA(h);
	struct ckpt_unix_diag d = {0};
	size_t left;

	if (h->nlmsg_len < NLMSG_LENGTH(sizeof(*m)))
		return -EPROTO;
	d.ino = m->udiag_ino;
	d.type = m->udiag_type;
	d.state = m->udiag_state;
	left = h->nlmsg_len - NLMSG_LENGTH(sizeof(*m));
	for (const struct nlattr *a = (const void *)(m + 1);
		left >= sizeof(*a) && a->nla_len >= sizeof(*a) && a->nla_len <= left;) {
		size_t step = NLA_ALIGN(a->nla_len);

		take_unix(list, &d, a);
		if (step > left)
			break;
		left -= step;
		a = (const void *)((const char *)a + step);
	}
	buf_put(&list->entries, &d, sizeof(d));
	if (list->entries.len / sizeof(d) > MAX_SOCKETS)
		return -E2BIG;
	return buf_error(&list->entries) < 0 ? -ENOMEM : buf_error(&list->pending);
}

static int unix_by_ino(const void *a, const void *b)
{
	const struct ckpt_unix_diag *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

const struct ckpt_unix_diag *ckpt_sock_unix_by_ino(
	const struct ckpt_unix_diag_list *list, uint32_t ino)
{
	const struct ckpt_unix_diag key = {.ino = ino};

	return ino ? sort_find(&key, list->entries, list->n, sizeof(key), unix_by_ino) : NULL;
}

/* Takes over @fd, which may be a failure that is told already. */
static int list_unix(int fd, struct unix_list *list, struct err *e)
{
	const struct unix_diag_req q = {
		.sdiag_family = AF_UNIX,
		.udiag_states = ~0u,
		.udiag_show =
			UDIAG_SHOW_PEER | UDIAG_SHOW_VFS | UDIAG_SHOW_ICONS | UDIAG_SHOW_RQLEN,
	};
	_cleanup_close_ int own = fd;
	int r = own < 0 ? own : ask(own, SOCK_DIAG_BY_FAMILY, &q, sizeof(q), each_unix, list);

	if (own < 0 || r >= 0)
		return r;
	if (r == -ENOENT)
		return err_set(e, ERR_HOST, r, "this kernel has no UNIX_DIAG");
	return err_errno(e, r, "cannot list the session's unix sockets");
}

int ckpt_sock_diag_unix(const struct ckpt_world *w, int diag, const int *nets, size_t n_nets,
	struct ckpt_unix_diag_list **ret, struct err *e)
{
	struct unix_list list = {0};
	struct ckpt_unix_diag_list *block = NULL;
	int r = list_unix(have_diag(w, diag, e), &list, e);

	for (size_t i = 0; r >= 0 && i < n_nets; i++)
		r = list_unix(netlink_inside(w, nets[i], NETLINK_SOCK_DIAG, e), &list, e);
	if (r < 0)
		goto out;
	block = malloc(sizeof(*block) + list.entries.len + list.pending.len);
	if (!block) {
		r = err_errno(e, -ENOMEM, "list of unix sockets");
		goto out;
	}
	block->entries = (void *)(block + 1);
	block->pending = (void *)((char *)(block + 1) + list.entries.len);
	block->n = list.entries.len / sizeof(struct ckpt_unix_diag);
	block->n_pending = list.pending.len / sizeof(uint32_t);
	if (list.entries.len)
		memcpy(block->entries, list.entries.data, list.entries.len);
	sort_array(block->entries, block->n, sizeof(block->entries[0]), unix_by_ino);
	if (list.pending.len)
		memcpy(block->pending, list.pending.data, list.pending.len);
	*ret = block;
out:
	buf_fini(&list.entries);
	buf_fini(&list.pending);
	return r;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Who is connected to one another has mostly been opened together. */
struct ckpt_file *ckpt_sock_file(const struct ckpt_dump *d, const struct ckpt_kind *kind,
	const struct ckpt_file *near, uint32_t ino)
{
	size_t at = near ? near->id - 1 : 0;

	for (size_t step = 0; step < d->n_files; step++) {
		const size_t both[] = {at + step, at - step};

		for (size_t i = 0; i < 2; i++)
			if (both[i] < d->n_files && d->files[both[i]]->kind == kind &&
				(uint32_t)d->files[both[i]]->st.st_ino == ino)
				return d->files[both[i]];
	}
	return NULL;
}
