// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The user namespace comes first: its owner has all capabilities in it, which the others ask for.
 * Joining the pid namespace holds for children only; the builder keeps its place among the
 * host's processes and so can trace the session's.
 *
 * Threads that read the image stand in the way twice: the kernel lets only a process without any
 * join a user, mount or time namespace, and one that has joined a pid namespace can't start any
 * (copy_process in kernel/fork.c).  So the pid namespace comes last, and they start just before, as
 * do others that wait for work (base/par.h).
 */
#include "ckpt/restore/join.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/memory/fillers.h"

#define JOIN_WAIT_NS 1000000000ULL

struct member {
	int fd, flag;
	const char *name;
};

/* A thread that was joined (pthread_join) is still there for a moment as far as the kernel is
 * concerned: then it is tried again. */
static int join_one(const struct member *m, struct err *e)
{
	uint64_t deadline = io_now_ns() + JOIN_WAIT_NS;

	while (m->fd >= 0 && setns(m->fd, m->flag) < 0) {
		if (errno != EINVAL || io_now_ns() > deadline)
			return err_errno(
				e, -errno, "cannot join the session's %s namespace", m->name);
		usleep(200);
	}
	return 0;
}

/* The builder holds every open file of the session at once. */
static void make_room(size_t files, int any_fd)
{
	io_allow_fds();
	io_make_fd_room(any_fd, MIN(2 * files + 256, (size_t)16384));
}

static void start_threads(struct ckpt_build *b)
{
	ckpt_fillers_start(b->fillers);
	par_crew_start(b->crew);
}

int ckpt_join(struct ckpt_build *b, struct err *e)
{
	const struct ckpt_world *w = b->world;
	const struct member order[] = {
		{w->ns_user, CLONE_NEWUSER, "user"},
		{w->ns_ipc, CLONE_NEWIPC, "ipc"},
		{w->ns_uts, CLONE_NEWUTS, "uts"},
		{w->ns_net, CLONE_NEWNET, "network"},
		{w->ns_time, 0x80 /* CLONE_NEWTIME */, "time"},
		{w->ns_mnt, CLONE_NEWNS, "mount"},
	};
	const struct member pid = {w->ns_pid, CLONE_NEWPID, "pid"};
	int r = 0;

	if (w->names) { /* nothing to join, but threads that were held back */
		start_threads(b);
		return prctl(PR_SET_DUMPABLE, 1) < 0 ? err_errno(e, -errno, "prctl") : 0;
	}
	proto_reader_settle(b->in);
	for (size_t i = 0; i < ARRAY_SIZE(order) && r == 0; i++)
		r = join_one(&order[i], e);
	if (r < 0)
		return r;
	if (w->ns_mnt >= 0 && (fchdir(w->root_fd) < 0 || chroot(".") < 0))
		return err_errno(e, -errno, "cannot enter the session's root");
	make_room(b->n_files, w->root_fd);
	proto_reader_start(b->in);
	start_threads(b);
	r = join_one(&pid, e);
	if (r < 0)
		return r;
	/* Tasks take descriptors from the builder: they must be allowed to look at it. */
	if (prctl(PR_SET_DUMPABLE, 1) < 0)
		return err_errno(e, -errno, "prctl");
	return 0;
}
