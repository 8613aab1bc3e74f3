// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/world/plan.h"

#include <string.h>

#include "base/base.h"
#include "proto/control.pb-c.h"
#include "supervisor/disk/paths.h"
#include "vnet/vnet.h"

static_assert(PLAN_PLACES == 2 && PLAN_HIDDEN == 3, "as they are filled below");

static enum world_net net_of(const Pb__Config *c)
{
	if (strcmp(c->net, "host") == 0)
		return WORLD_NET_HOST;
	if (vnet_passthrough_of(c->net))
		return WORLD_NET_PASSTHROUGH;
	return strcmp(c->net, "vnat") == 0 && c->network ? WORLD_NET_VNAT : WORLD_NET_NONE;
}

int plan_make(struct plan *ret, const Pb__Config *c, const struct paths *paths, const char *files,
	struct err *e)
{
	const char *home = getenv("HOME");

	*ret = (struct plan){.binds = calloc(c->n_binds + 1, sizeof(*ret->binds)),
		.places = {c->cwd, home ? home : "/"},
		.hidden = {paths->state, paths->runtime, paths->config}};
	if (!ret->binds)
		return err_errno(e, -ENOMEM, "world");
	for (size_t i = 0; i < c->n_binds; i++)
		ret->binds[i] = (struct world_bind){.source = c->binds[i]->source,
			.target = c->binds[i]->target,
			.read_only = c->binds[i]->read_only};
	ret->config = (struct world_config){.name = c->name,
		.hostname = c->hostname,
		.config_dir = paths->config,
		.state_dir = paths->state,
		.view = strcmp(c->view, "host") != 0,
		.files_dir = files,
		.root = c->root[0] ? c->root : NULL,
		.as_root = c->as_root,
		.uid = c->uid,
		.gid = c->gid,
		.net = net_of(c),
		.binds = ret->binds,
		.n_binds = c->n_binds,
		.max_pids = c->pids,
		.io_uring = c->io_uring,
		.portable = c->portable,
		.places = ret->places,
		.n_places = PLAN_PLACES,
		.hidden = ret->hidden,
		.n_hidden = PLAN_HIDDEN,
		.parent_userns = -1};
	if (c->network)
		ret->config.network = (struct world_network){.address4 = c->network->address4,
			.address6 = c->network->address6,
			.gateway4 = c->network->gateway4,
			.gateway6 = c->network->gateway6,
			.mtu = c->network->mtu};
	return 0;
}

void plan_fini(struct plan *p)
{
	free(p->binds);
	p->binds = NULL;
}
