// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sockets of sandboxes that have a network of their own (ckpt/nested/nested.h), in which nobody can
 * be reached.
 *
 * What is left to them are unix sockets, which connect across networks unless they have abstract
 * names: those are rebuilt by the processes that had made them, wherever these are.  All others are
 * refused.
 */
#include "ckpt/nested/sock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/base.h"
#include "ckpt/enter.h"

int ckpt_nested_nets(struct ckpt_dump *d, struct buf *ret, struct err *e)
{
	for (size_t i = 0; i < d->n_nested; i++) {
		const struct ckpt_proc *p;
		char path[32];
		int fd;

		if (d->nested[i].sort != CKPT_NS_NET)
			continue;
		p = ckpt_proc_by_vpid(d, d->nested[i].founder);
		snprintf(path, sizeof(path), "%d/ns/net", p->look);
		fd = openat(d->host_proc, path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return err_errno(e, -errno, "/proc/%s", path);
		buf_put(ret, &fd, sizeof(fd));
	}
	return buf_error(ret) ? err_errno(e, -ENOMEM, "namespaces") : 0;
}

static bool unknown(const struct ckpt_file *f)
{
	return !f->net_known && f->fd >= 0 && S_ISSOCK(f->st.st_mode);
}

/*
 * The inode numbers of the networks of all sockets about which that is unknown: only who has rights
 * over them may ask.
 */
static int tell(int sock, void *ctx, struct err *e)
{
	const struct ckpt_dump *d = ctx;

	for (size_t i = 0; i < d->n_files; i++) {
		struct stat st = {0};
		int net;

		if (!unknown(d->files[i]))
			continue;
		net = ioctl(d->files[i]->fd, SIOCGSKNS);
		if (net >= 0) {
			fstat(net, &st);
			close(net);
		}
		if (io_write_full(sock, &st.st_ino, sizeof(st.st_ino)) < 0)
			return err_errno(e, -EIO, "networks of sockets");
	}
	return 0;
}

static int learn(struct ckpt_dump *d, struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	size_t at = 0, n = 0;
	int r;

	for (size_t i = 0; i < d->n_files; i++)
		n += unknown(d->files[i]);
	r = ckpt_enter_read(d->world, CLONE_NEWUSER, tell, d, n * sizeof(ino_t), &b, e);
	if (r < 0)
		return r;
	if (b.len != n * sizeof(ino_t))
		return err_errno(e, -EPROTO, "networks of sockets");
	for (size_t i = 0; i < d->n_files; i++) {
		ino_t ino;

		if (!unknown(d->files[i]))
			continue;
		memcpy(&ino, b.data + at++ * sizeof(ino), sizeof(ino));
		d->files[i]->net_known = true;
		for (uint32_t k = 0; k < d->n_nested; k++)
			if (d->nested[k].sort == CKPT_NS_NET && d->nested[k].ino == ino)
				d->files[i]->net = k + 1;
	}
	return 0;
}

static bool has_networks(const struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_nested; i++)
		if (d->nested[i].sort == CKPT_NS_NET)
			return true;
	return false;
}

int ckpt_nested_check_socket(struct ckpt_dump *d, struct ckpt_file *f, struct err *e)
{
	struct sockaddr_un name = {0};
	socklen_t len = sizeof(name);

	if (!S_ISSOCK(f->st.st_mode) || !has_networks(d))
		return 0;
	if (unknown(f) && learn(d, e) < 0)
		return e->error;
	if (!f->net)
		return 0;
	if (getsockname(f->fd, (struct sockaddr *)&name, &len) < 0 || name.sun_family != AF_UNIX)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"a socket of family %d in a network of a sandbox's own is not supported",
			name.sun_family);
	if (len > offsetof(struct sockaddr_un, sun_path) && !name.sun_path[0])
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"a socket with an abstract name in a network of a sandbox's own is not supported");
	return 0;
}
