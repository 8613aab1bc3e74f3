// SPDX-License-Identifier: GPL-2.0-or-later
/* ckpt has a struct of its own for a world, since it must not include the supervisor. */
#include "supervisor/introduce.h"

#include <arpa/inet.h>

#include "proto/config.pb-c.h"
#include "supervisor/world/world.h"

struct ckpt_world introduce_world(const struct world *w, const Pb__Config *c)
{
	struct ckpt_world ret = {.name = c->name,
		.init_pid = w->init_pid,
		.init_pidfd = w->init_pidfd,
		.root_fd = w->root_fd,
		.proc_fd = w->proc_fd,
		.ns_user = w->ns_user,
		.ns_pid = w->ns_pid,
		.ns_mnt = w->ns_mnt,
		.ns_net = w->ns_net,
		.ns_ipc = w->ns_ipc,
		.ns_uts = w->ns_uts,
		.ns_time = w->ns_time,
		.uid = w->uid,
		.gid = w->gid,
		.io_uring = c->io_uring};

	if (c->network) {
		inet_pton(AF_INET, c->network->address4, ret.net4);
		inet_pton(AF_INET6, c->network->address6, ret.net6);
	}
	return ret;
}
