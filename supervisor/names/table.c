// SPDX-License-Identifier: GPL-2.0-or-later
/* Which classes of names the kernel holds and which are rewritten; the filter follows from it. */
#include "supervisor/names/names.h"

#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/world/world_config.h"

static const struct {
	const char *name, *holder;
	bool translatable; /* the supervisor knows how */
} classes[NAMES_CLASS_MAX] = {
	[NAMES_PID] = {"pid", "pid namespace", true},
	[NAMES_IPC] = {"ipc", "ipc namespace", true},
	[NAMES_USER] = {"user", "user namespace", true},
	[NAMES_PTS] = {"pts", "its own devpts", false},
	[NAMES_TIME] = {"time", "time namespace", true},
	[NAMES_HOST] = {"host name", "uts namespace", true},
	[NAMES_FILE] = {"file", "mount namespace", true},
	[NAMES_LAYER] = {"layer", "user namespace", true},
};

const char *names_class_name(enum names_class class)
{
	return classes[class].name;
}

const char *names_class_holder(enum names_class class)
{
	return classes[class].holder;
}

/* A user namespace maps one id to another, once. */
static bool has_other_users(const struct world_config *c)
{
	return c->as_root || (c->rewrite && (c->uid != getuid() || c->gid != getgid()));
}

struct names names_choose(const struct world_config *c)
{
	struct names n = {0};

	n.way[NAMES_PID] = c->rewrite ? NAMES_TRANSLATED : NAMES_IDENTITY;
	n.way[NAMES_IPC] = c->rewrite ? NAMES_TRANSLATED : NAMES_IDENTITY;
	n.way[NAMES_HOST] = c->rewrite ? NAMES_TRANSLATED : NAMES_IDENTITY;
	n.way[NAMES_FILE] = c->rewrite && c->view ? NAMES_TRANSLATED : NAMES_IDENTITY;
	n.way[NAMES_TIME] = c->rewrite && (c->monotonic_offset_ns || c->boottime_offset_ns)
				    ? NAMES_TRANSLATED
				    : NAMES_IDENTITY;
	n.way[NAMES_USER] = has_other_users(c) ? NAMES_TRANSLATED : NAMES_IDENTITY;
	n.way[NAMES_LAYER] = c->as_root && !c->rewrite ? NAMES_TRANSLATED : NAMES_IDENTITY;
	return n;
}

int names_check(const struct names *n, struct err *e)
{
	for (int i = 0; i < NAMES_CLASS_MAX; i++) {
		if (n->way[i] == NAMES_IDENTITY || classes[i].translatable)
			continue;
		err_set(e, ERR_HOST, -EOPNOTSUPP, "rewritten %s names are not supported",
			classes[i].name);
		return err_hint(
			e, "this host has to provide a %s: see `podrun check`", classes[i].holder);
	}
	return 0;
}

unsigned names_translated(const struct names *n)
{
	unsigned bits = 0;

	for (int i = 0; i < NAMES_CLASS_MAX; i++)
		if (n->way[i] == NAMES_TRANSLATED)
			bits |= NAMES_BIT(i);
	return bits;
}
