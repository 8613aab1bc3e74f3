// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The user namespace comes first: its owner has all capabilities in it, which the others ask for.
 * Joining the pid namespace holds for children only; the builder keeps its place among the
 * host's processes and so can trace the session's.
 */
#include "ckpt/join.h"

#include <errno.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/base.h"
#include "ckpt/ckpt.h"

int ckpt_join(const struct ckpt_world *w, struct err *e)
{
	const struct {
		int fd, flag;
		const char *name;
	} order[] = {
		{w->ns_user, CLONE_NEWUSER, "user"},
		{w->ns_ipc, CLONE_NEWIPC, "ipc"},
		{w->ns_uts, CLONE_NEWUTS, "uts"},
		{w->ns_net, CLONE_NEWNET, "network"},
		{w->ns_time, 0x80 /* CLONE_NEWTIME */, "time"},
		{w->ns_pid, CLONE_NEWPID, "pid"},
		{w->ns_mnt, CLONE_NEWNS, "mount"},
	};
	struct rlimit files;

	for (size_t i = 0; i < ARRAY_SIZE(order); i++)
		if (order[i].fd >= 0 && setns(order[i].fd, order[i].flag) < 0)
			return err_errno(e, -errno, "cannot join the session's %s namespace",
				order[i].name);
	if (w->ns_mnt >= 0 && (fchdir(w->root_fd) < 0 || chroot(".") < 0))
		return err_errno(e, -errno, "cannot enter the session's root");
	/* Tasks take descriptors from the builder: they must be allowed to look at it. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		return err_errno(e, -errno, "prctl");
	/* The builder holds every open file of the session at once. */
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	return 0;
}
