// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls about users that the supervisor answers under kernel names.  The theory of operation is in
 * users.c.
 */
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/base.h"
#include "supervisor/filter/notify_call.h"
#include "supervisor/names/users.h"

static void finish(struct notify_call *c, const struct users *before, const struct users *after)
{
	int r = users_same(before, after) ? 0 : users_store(c->tid, after);

	if (r < 0)
		notify_fail(c, r);
	else
		notify_return(c, 0);
}

/* getuid, geteuid, getgid, getegid */
void users_get(struct notify_call *c)
{
	int nr = c->request->data.nr;
	struct users u;

	users_load(c->tid, &u);
	notify_return(c, nr == SYS_geteuid || nr == SYS_getegid ? users_triple(&u, nr)->effective
								: users_triple(&u, nr)->real);
}

/* getresuid, getresgid */
void users_get_three(struct notify_call *c)
{
	struct users u;
	struct users_ids t;
	int r = 0;

	users_load(c->tid, &u);
	t = *users_triple(&u, c->request->data.nr);
	for (int i = 0; r == 0 && i < 3; i++) {
		uint32_t id = i == 0 ? t.real : i == 1 ? t.effective : t.saved;

		r = notify_write(c, notify_arg(c, i), &id, sizeof(id));
	}
	if (r < 0)
		notify_fail(c, r);
	else
		notify_return(c, 0);
}

/* setuid, setreuid, setresuid, setgid, setregid, setresgid */
void users_set(struct notify_call *c)
{
	uint64_t args[3] = {notify_arg(c, 0), notify_arg(c, 1), notify_arg(c, 2)};
	struct users before, after;
	int r;

	users_load(c->tid, &before);
	after = before;
	r = users_change(&after, c->request->data.nr, args, users_privileged(&before));
	if (r < 0)
		return notify_fail(c, r);
	finish(c, &before, &after);
}

/* setfsuid, setfsgid: the file system ids follow the effective ones; they tell the old one. */
void users_set_fs(struct notify_call *c)
{
	struct users u;

	users_load(c->tid, &u);
	notify_return(c, users_triple(&u, c->request->data.nr)->effective);
}

void users_set_groups(struct notify_call *c)
{
	size_t n = notify_arg(c, 0);
	struct users before, after;
	gid_t *ids;
	int set;

	users_load(c->tid, &before);
	if (!users_privileged(&before))
		return notify_fail(c, -EPERM);
	if (n > USERS_MAX_GROUPS)
		return notify_fail(c, -EINVAL);
	ids = calloc(n + 1, sizeof(*ids));
	if (!ids || (n && notify_read(c, notify_arg(c, 1), ids, n * sizeof(*ids)) < 0)) {
		notify_fail(c, ids ? -EFAULT : -ENOMEM);
		free(ids);
		return;
	}
	set = users_groups_find(notify_groups(c->notify), ids, n);
	free(ids);
	if (set < 0)
		return notify_fail(c, set);
	after = before;
	after.groups = (uint16_t)set;
	finish(c, &before, &after);
}

void users_get_groups(struct notify_call *c)
{
	int room = (int)notify_arg(c, 0);
	const gid_t *ids;
	struct users u;
	size_t n;

	users_load(c->tid, &u);
	if (u.groups == USERS_NO_GROUPS)
		return notify_continue(c);
	ids = users_groups_of(notify_groups(c->notify), u.groups, &n);
	if (room && (size_t)room < n)
		return notify_fail(c, -EINVAL);
	if (room && n && notify_write(c, notify_arg(c, 1), ids, n * sizeof(*ids)) < 0)
		return notify_fail(c, -EFAULT);
	notify_return(c, (int64_t)n);
}

/* prctl(PR_SET_KEEPCAPS): the kernel does it, too */
void users_keep_caps(struct notify_call *c)
{
	struct users u;

	users_load(c->tid, &u);
	u.keeps_caps = notify_arg(c, 1) != 0;
	users_store(c->tid, &u);
	notify_continue(c);
}

/*
 * getrlimit, setrlimit, prlimit64 of the two limits that hold the words: they look unlimited, and
 * setting them (pam_limits sets all) does nothing.
 */
void users_limit(struct notify_call *c)
{
	static const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	int nr = c->request->data.nr;
	uint32_t which = (uint32_t)notify_arg(c, nr == SYS_prlimit64 ? 1 : 0);
	uint64_t old = 0;

	if (which != RLIMIT_LOCKS && which != RLIMIT_RSS)
		return notify_continue(c); /* a call that was held */
	if (nr != SYS_setrlimit)
		old = notify_arg(c, nr == SYS_prlimit64 ? 3 : 1);
	if (old && notify_write(c, old, &unlimited, sizeof(unlimited)) < 0)
		return notify_fail(c, -EFAULT);
	notify_return(c, 0);
}

/* A copy of the task's descriptor. */
static int take_descriptor(const struct notify_call *c, int fd)
{
	struct proc_status status;
	struct err ignored = {0};
	_cleanup_close_ int pidfd = sys_pidfd_open(c->tid, 0);
	int r;

	/* Before 6.9 a thread other than the leader has none. */
	if (pidfd < 0 && proc_read_status(notify_proc(c->notify), c->tid, &status, &ignored) == 0)
		pidfd = sys_pidfd_open(status.tgid, 0);
	if (pidfd < 0)
		return -errno;
	r = sys_pidfd_getfd(pidfd, fd);
	return r < 0 ? -errno : r;
}

/* getsockopt(SO_PEERCRED): who is at the other end, as the session numbers it */
void users_peer(struct notify_call *c)
{
	struct proc_status status;
	struct err ignored = {0};
	struct ucred cred;
	struct users u = {0};
	socklen_t len = sizeof(cred);
	uint32_t room;
	int sock;

	if ((int)notify_arg(c, 1) != SOL_SOCKET ||
		notify_read(c, notify_arg(c, 4), &room, sizeof(room)) < 0 || room < sizeof(cred))
		return notify_continue(c);
	sock = take_descriptor(c, (int)notify_arg(c, 0));
	if (sock < 0)
		return notify_continue(c);
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 || len != sizeof(cred) ||
		cred.uid != getuid() || cred.pid <= 0 ||
		proc_read_status(notify_proc(c->notify), cred.pid, &status, &ignored) < 0) {
		close(sock);
		return notify_continue(c);
	}
	close(sock);
	users_load(cred.pid, &u);
	cred.uid = u.uid.effective;
	cred.gid = u.gid.effective;
	cred.pid = status.ns_depth ? status.ns_tgid[status.ns_depth - 1] : 0;
	room = sizeof(cred);
	if (notify_write(c, notify_arg(c, 3), &cred, sizeof(cred)) < 0 ||
		notify_write(c, notify_arg(c, 4), &room, sizeof(room)) < 0)
		return notify_fail(c, -EFAULT);
	notify_return(c, 0);
}
