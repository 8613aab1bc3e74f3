// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in ipc/ckpt.h. */
#include "supervisor/rewrite/ipc/ckpt.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "supervisor/rewrite/ipc/host.h"
#include "supervisor/rewrite/ipc/ipc.h"

#define OPEN_MODE 0600

static_assert((int)CKPT_IPC_SHM == (int)IPC_SHM && (int)CKPT_IPC_SEM == (int)IPC_SEM &&
		      (int)CKPT_IPC_MSG == (int)IPC_MSG,
	"sorts");
static_assert(CKPT_IPC_HOST_NAME >= IPC_HOST_NAME, "room for a name");

static void set_mode(enum ipc_sort sort, int host, unsigned mode)
{
	union ipc_status s;

	if (ipc_host_stat(sort, host, &s) < 0)
		return;
	s.perm.mode = (unsigned short)mode;
	ipc_host_ctl(sort, host, IPC_SET, &s);
}

static bool is_open(const struct ipc_object *o)
{
	return (o->mode & OPEN_MODE) == OPEN_MODE;
}

void ipc_ckpt_close(struct ipc_names *n)
{
	for (int sort = 0; sort < IPC_SORTS; sort++) {
		for (int i = 0; i < ipc_names_high(n, sort); i++) {
			struct ipc_object *o = ipc_names_at(n, sort, i);

			/* one that is made again may have been removed again */
			if (o && ipc_host_has(n, sort, o) && !is_open(o))
				set_mode(sort, o->host, o->mode);
		}
	}
}

static ssize_t list(void *ctx, enum ckpt_ipc_sort which, struct ckpt_ipc_object **ret)
{
	enum ipc_sort sort = (enum ipc_sort)which;
	struct ipc_names *n = ctx;
	ssize_t found = 0;

	*ret = calloc((size_t)ipc_names_count(n, sort) + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (int i = 0; i < ipc_names_high(n, sort); i++) {
		struct ipc_object *o = ipc_names_at(n, sort, i);

		if (!o || !ipc_host_has(n, sort, o))
			continue;
		if (!is_open(o))
			set_mode(sort, o->host, o->mode | OPEN_MODE);
		(*ret)[found++] = (struct ckpt_ipc_object){.host = o->host,
			.id = ipc_names_id(n, sort, o),
			.key = o->removed ? IPC_PRIVATE : o->key,
			.mode = o->mode};
	}
	return found;
}

static int look_up(void *ctx, enum ckpt_ipc_sort which, int name, bool back)
{
	enum ipc_sort sort = (enum ipc_sort)which;
	const struct ipc_object *o =
		back ? ipc_names_find_host(ctx, sort, name) : ipc_names_find(ctx, sort, name);

	return !o ? -1 : back ? ipc_names_id(ctx, sort, o) : o->host;
}

static int make(void *ctx, enum ckpt_ipc_sort sort, const struct ckpt_ipc_object *o, uint64_t size,
	struct err *e)
{
	return ipc_restore(ctx, (enum ipc_sort)sort, o->id, o->key, size, o->mode, OPEN_MODE, e);
}

static int queue(void *ctx, unsigned i, const char **ret_name, char ret_host[CKPT_IPC_HOST_NAME])
{
	const struct ipc_names *n = ctx;

	if (i >= IPC_QUEUES)
		return -ENOENT;
	*ret_name = ipc_names_queue(n, (int)i);
	if (!*ret_name || !**ret_name)
		return 0;
	ipc_names_host_queue(ipc_names_tag(n), (int)i, ret_host);
	return 1;
}

static int make_queue(void *ctx, const char *name, char ret_host[CKPT_IPC_HOST_NAME], struct err *e)
{
	int slot = ipc_names_find_queue(ctx, name) >= 0 ? -EEXIST : ipc_names_add_queue(ctx, name);

	if (slot < 0)
		return err_errno(e, slot, "message queue /%s", name);
	ipc_names_host_queue(ipc_names_tag(ctx), slot, ret_host);
	return 0;
}

static void forget_queue(void *ctx, const char *name)
{
	int slot = ipc_names_find_queue(ctx, name);

	if (slot >= 0)
		ipc_names_remove_queue(ctx, slot);
}

struct ckpt_ipc_names ipc_ckpt_names(struct ipc_names *n)
{
	return (struct ckpt_ipc_names){.list = list,
		.look_up = look_up,
		.make = make,
		.queue = queue,
		.make_queue = make_queue,
		.forget_queue = forget_queue,
		.ctx = n};
}
