// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Netlink sockets: protocol, number, groups.
 *
 * What they speak to is the kernel, and the kernel keeps nothing between two requests.  An answer
 * that waits to be read can't be put back (only the kernel can send with the kernel's address), so
 * the session is unfreezable for that moment.  Events of groups that wait are lost, as they may be
 * on any busy system: programs are prepared for ENOBUFS.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/survey/survey.h"
#include "proto/sockets.pb-c.h"

#define MAX_GROUPS 1024

static bool claim(const struct ckpt_file *f)
{
	return f->domain == AF_NETLINK;
}

/*
 * Only an answer is worth refusing for.  Netlink knows no SO_PEEK_OFF: the first message has to
 * speak for all.
 */
static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	struct pollfd p = {.fd = s.file->fd, .events = POLLIN};
	struct sockaddr_nl from = {0};
	socklen_t len = sizeof(from);
	char byte;

	if (poll(&p, 1, 0) != 1 || (p.revents & POLLERR) ||
		recvfrom(p.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT, (void *)&from, &len) < 0 ||
		from.nl_groups)
		return 0;
	err_set(e, ERR_UNFREEZABLE, -EAGAIN, "an answer of the kernel waits in a netlink socket");
	return err_hint(e, "try again in a moment");
}

/* All memberships, as group numbers. */
static int dump_groups(int fd, Pb__Netlink *m, struct err *e)
{
	uint32_t bits[MAX_GROUPS / 32] = {0};
	socklen_t len = sizeof(bits);

	if (getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, bits, &len) < 0)
		return 0;
	m->memberships = calloc(MAX_GROUPS, sizeof(*m->memberships));
	if (!m->memberships)
		return err_errno(e, -ENOMEM, "netlink groups");
	for (uint32_t i = 0; i < 8 * MIN(len, (socklen_t)sizeof(bits)); i++)
		if (bits[i / 32] & (1u << (i % 32)))
			m->memberships[m->n_memberships++] = i + 1;
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	Pb__SockCommon common = PB__SOCK_COMMON__INIT;
	Pb__Netlink m = PB__NETLINK__INIT;
	struct sockaddr_nl a = {0};
	socklen_t len = sizeof(a);
	int r;

	m.common = &common;
	r = ckpt_sock_common_dump(d, f, &common, e);
	if (r >= 0 && getsockname(f->fd, (void *)&a, &len) < 0)
		r = err_errno(e, -errno, "getsockname");
	m.port = a.nl_pid;
	len = sizeof(a);
	if (r >= 0 && getpeername(f->fd, (void *)&a, &len) == 0) {
		m.peer_port = a.nl_pid;
		m.peer_groups = a.nl_groups;
	}
	if (r >= 0)
		r = dump_groups(f->fd, &m, e);
	if (r >= 0)
		r = ckpt_pack(&m.base, body, e);
	ckpt_sock_common_fini(&common);
	free(m.memberships);
	return r;
}

static int make(const Pb__Netlink *m, struct err *e)
{
	_cleanup_close_ int fd = ckpt_sock_create(AF_NETLINK, m->common, e);
	struct sockaddr_nl a = {.nl_family = AF_NETLINK, .nl_pid = m->port};
	struct sockaddr_nl peer = {
		.nl_family = AF_NETLINK, .nl_pid = m->peer_port, .nl_groups = m->peer_groups};
	int r;

	if (fd < 0)
		return fd;
	r = ckpt_sock_options_early(fd, m->common, e);
	if (r < 0)
		return r;
	/* On the host's network the number may be somebody else's by now: any other will do. */
	if (m->port && bind(fd, (void *)&a, sizeof(a)) < 0) {
		a.nl_pid = 0;
		if (errno != EADDRINUSE || bind(fd, (void *)&a, sizeof(a)) < 0)
			return err_errno(e, -errno, "cannot bind a netlink socket to %u", m->port);
	}
	for (size_t i = 0; i < m->n_memberships; i++)
		if (setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &m->memberships[i],
			    sizeof(m->memberships[i])) < 0)
			return err_errno(
				e, -errno, "cannot join netlink group %u again", m->memberships[i]);
	if ((m->peer_port || m->peer_groups) && connect(fd, (void *)&peer, sizeof(peer)) < 0)
		return err_errno(e, -errno, "cannot connect a netlink socket again");
	return take_fd(&fd);
}

static Pb__Netlink *message_of(struct ckpt_record *r, struct err *e)
{
	Pb__Netlink *m = pb__netlink__unpack(NULL, r->len, r->body);

	if (m && m->common && m->n_memberships <= MAX_GROUPS)
		return m;
	pb__netlink__free_unpacked(m, NULL);
	ckpt_common_bad(r, e);
	return NULL;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__Netlink *m = message_of(r, e);
	int fd = m ? make(m, e) : -EBADMSG;

	pb__netlink__free_unpacked(m, NULL);
	if (fd >= 0)
		*ret_fd = fd;
	return fd < 0 ? fd : 0;
}

static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__Netlink *m = message_of(r, e);
	int rc = -EBADMSG;

	if (m)
		rc = ckpt_sock_options_late(
			b, ckpt_build_file(b, (uint32_t)r->subject)->fd, m->common, e);
	pb__netlink__free_unpacked(m, NULL);
	return rc;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Netlink *m = pb__netlink__unpack(NULL, len, body);

	if (m && m->common)
		fprintf(out, "protocol %d number %u, %zu groups", m->common->protocol, m->port,
			m->n_memberships);
	pb__netlink__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_netlink = {
	.number = PROTO_KIND_NETLINK,
	.name = "netlink",
	.scope = CKPT_FILE,
	.claim = claim,
	.check = check,
	.dump = dump,
	.create = create,
	.finish = finish,
	.show = show,
};
