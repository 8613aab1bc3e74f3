// SPDX-License-Identifier: GPL-2.0-or-later
#include "ckpt/nested/list.h"

#include <sched.h>

#include "ckpt/restore/tree.h"

static const struct {
	const char *name;
	uint64_t flag;
} sorts[CKPT_N_NS] = {
	[CKPT_NS_USER] = {"user", CLONE_NEWUSER},
	[CKPT_NS_PID] = {"pid", CLONE_NEWPID},
	[CKPT_NS_NET] = {"net", CLONE_NEWNET},
	[CKPT_NS_IPC] = {"ipc", CLONE_NEWIPC},
	[CKPT_NS_UTS] = {"uts", CLONE_NEWUTS},
};
uint64_t ckpt_ns_flag(enum ckpt_ns sort)
{
	return sorts[sort].flag;
}

const char *ckpt_ns_name(enum ckpt_ns sort)
{
	return sorts[sort].name;
}

size_t ckpt_nested_depth(const struct ckpt_nested *all, size_t n, uint32_t pid_ns)
{
	size_t depth = 0;

	for (; pid_ns && pid_ns <= n && depth < CKPT_MAX_INNER; depth++)
		pid_ns = all[pid_ns - 1].outer;
	return depth;
}

void ckpt_nested_node(const struct ckpt_nested *all, size_t n, const struct ckpt_ns_set *set,
	struct ckpt_tree_node *ret)
{
	ret->ns = *set;
	for (int i = 0; i < CKPT_N_NS; i++) {
		const struct ckpt_nested *ns = set->ns[i] ? &all[set->ns[i] - 1] : NULL;

		if (!ns || ns->founder != ret->vpid)
			continue;
		ret->founds |= 1U << i;
		ret->outer.ns[i] = ns->outer;
		if (i == CKPT_NS_PID)
			ret->pid_owner = ns->owner;
		if (i != CKPT_NS_USER)
			continue;
		ret->first_user = set->ns[i];
		for (size_t k = 0;
			k < n && ret->outer.ns[i] && all[ret->outer.ns[i] - 1].founder == ret->vpid;
			k++) {
			ret->first_user = ret->outer.ns[i];
			ret->outer.ns[i] = all[ret->first_user - 1].outer;
		}
	}
}
