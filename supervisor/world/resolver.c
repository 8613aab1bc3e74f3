// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in resolver.h. */
#include "supervisor/world/resolver.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "base/base.h"
#include "supervisor/world/world_config.h"

#define PLACE	  "/run/podrun"
#define MAX_HOSTS (256u << 10)

/* One that leads to where nothing is yet, as a resolver's file in /run does: that is made. */
static void make_target(const char *target)
{
	char to[PATH_MAX], path[PATH_MAX];
	ssize_t n = readlink(target, to, sizeof(to) - 1);
	char *slash;
	int fd;

	if (access(target, F_OK) == 0)
		return;
	to[MAX(n, 0)] = '\0';
	if (n > 0 && snprintf(path, sizeof(path), "%s%s", to[0] == '/' ? "" : "/etc/", to) <
			     (int)sizeof(path)) {
		slash = strrchr(path, '/');
		*slash = '\0';
		io_mkdir_p(AT_FDCWD, path, 0755);
	}
	fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	close_fd(fd);
}

/* @own is written unless it came with an image. */
static void put(const char *target, const char *own, const struct buf *text)
{
	if (text->failed || (access(own, F_OK) < 0 && io_write_file(AT_FDCWD, own, text->data,
							      text->len, 0644) < 0)) {
		log_warn("cannot write %s", own);
		return;
	}
	make_target(target);
	if (mount(own, target, NULL, MS_BIND, NULL) < 0)
		log_warn("%s is not the session's own: %s", target, strerror(errno));
}

void resolver_make(const struct world_config *c)
{
	const struct world_network *n = &c->network;
	const char *name = c->hostname && c->hostname[0] ? c->hostname : c->name;
	_cleanup_buf_ struct buf resolv = BUF_INIT, hosts = BUF_INIT;

	if (io_mkdir_p(AT_FDCWD, PLACE, 0755) < 0) {
		log_warn("cannot make %s", PLACE);
		return;
	}
	buf_printf(&resolv, "nameserver %s\nnameserver %s\n", n->gateway4, n->gateway6);
	if (n->search && n->search[0])
		buf_printf(&resolv, "search %s\n", n->search);
	buf_printf(&hosts,
		"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s %s\n%s %s\n",
		n->address4, name, n->address6, name);
	/* What the host knows by itself the session should, too. */
	io_read_file(AT_FDCWD, "/etc/hosts", MAX_HOSTS, &hosts);
	put("/etc/resolv.conf", PLACE "/resolv.conf", &resolv);
	put("/etc/hosts", PLACE "/hosts", &hosts);
}
