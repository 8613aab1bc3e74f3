// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Without privilege a session has one real uid.  Programs that expect more - daemons which drop
 * their rights, apt's download user, su - are told what they want to hear, consistently: what a
 * process sets it reads back, and what an unprivileged one may not set is refused (credentials(7)).
 * It is a class of names, not protection: all virtual users have the same rights.
 *
 * Where to keep it?  The supervisor does not see forks, and a table of pids would lose a daemon
 * whose parent is gone.  The kernel has two words per process which it copies at fork, keeps at
 * exec, and uses for nothing: the soft limits RLIMIT_LOCKS (ignored since Linux 2.4.25) and
 * RLIMIT_RSS (since 2.4.30).  They hold the ids themselves:
 *
 *      RLIMIT_LOCKS   real | effective << 16 | saved << 32 | MARK << 48        uids (MARK + 1: keeps caps)
 *      RLIMIT_RSS     real | effective << 16 | saved << 32 | groups << 48      gids
 *
 * So they are inherited without a race, cost one system call to look up, and move with the session's
 * rlimits in an image.  Sets of supplementary groups are kept here, and move in the record of its world.
 */
#include "supervisor/names/users.h"

#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/base.h"
#include "proto/config.pb-c.h"
#include "supervisor/notify_call.h"

#define MARK	   0x0d7eULL /* even: the lowest bit is PR_SET_KEEPCAPS, which exec does not reset */
#define MAX_SETS   4096
#define MAX_GROUPS 1024
#define MAX_IDS	   32768 /* of all sets: they have to fit into one message */
#define KEEP	   0xffffffffU /* -1: leave this one as it is */

struct users_groups {
	struct {
		gid_t *ids;
		size_t n;
	} *sets;
	size_t n, n_ids;
};

struct users_groups *users_groups_new(void)
{
	return calloc(1, sizeof(struct users_groups));
}

void users_groups_free(struct users_groups *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n; i++)
		free(g->sets[i].ids);
	free(g->sets);
	free(g);
}

static struct users_ids unpack(uint64_t word)
{
	return (struct users_ids){(uint16_t)word, (uint16_t)(word >> 16), (uint16_t)(word >> 32)};
}

static uint64_t pack(struct users_ids ids, uint64_t top)
{
	return ids.real | (uint64_t)ids.effective << 16 | (uint64_t)ids.saved << 32 | top << 48;
}

void users_load(pid_t tid, struct users *ret)
{
	struct rlimit uids, gids;

	memset(ret, 0, sizeof(*ret)); /* padding as well: they are compared */
	ret->groups = USERS_NO_GROUPS;
	if (prlimit(tid, RLIMIT_LOCKS, NULL, &uids) < 0 ||
		prlimit(tid, RLIMIT_RSS, NULL, &gids) < 0 || (uids.rlim_cur >> 48 & ~1ULL) != MARK)
		return;
	ret->uid = unpack(uids.rlim_cur);
	ret->gid = unpack(gids.rlim_cur);
	ret->keeps_caps = uids.rlim_cur >> 48 & 1;
	ret->groups = (uint16_t)(gids.rlim_cur >> 48);
}

static int store_word(pid_t tid, int resource, uint64_t word)
{
	struct rlimit limit;

	if (prlimit(tid, resource, NULL, &limit) < 0)
		return -errno;
	limit.rlim_cur = word;
	return prlimit(tid, resource, &limit, NULL) < 0 ? -EPERM : 0;
}

static int store(pid_t tid, const struct users *u)
{
	int r = store_word(tid, RLIMIT_RSS, pack(u->gid, u->groups));

	return r < 0 ? r : store_word(tid, RLIMIT_LOCKS, pack(u->uid, MARK | u->keeps_caps));
}

/* Which triple a call is about. */
static bool is_gid_call(int nr)
{
	return nr == SYS_getgid || nr == SYS_getegid || nr == SYS_getresgid || nr == SYS_setgid ||
	       nr == SYS_setregid || nr == SYS_setresgid || nr == SYS_setfsgid;
}

static struct users_ids *triple(struct users *u, int nr)
{
	return is_gid_call(nr) ? &u->gid : &u->uid;
}

static bool privileged(const struct users *u)
{
	return u->uid.effective == 0 || u->keeps_caps;
}

static bool one_of(struct users_ids t, uint32_t id)
{
	return id == t.real || id == t.effective || id == t.saved;
}

static void finish(struct notify_call *c, const struct users *before, const struct users *after)
{
	int r = memcmp(before, after, sizeof(*before)) != 0 ? store(c->tid, after) : 0;

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
	notify_return(c, nr == SYS_geteuid || nr == SYS_getegid ? triple(&u, nr)->effective :
								  triple(&u, nr)->real);
}

/* getresuid, getresgid */
void users_get_three(struct notify_call *c)
{
	struct users u;
	struct users_ids t;
	int r = 0;

	users_load(c->tid, &u);
	t = *triple(&u, c->request->data.nr);
	for (int i = 0; r == 0 && i < 3; i++) {
		uint32_t id = i == 0 ? t.real : i == 1 ? t.effective : t.saved;

		r = notify_write(c, notify_arg(c, i), &id, sizeof(id));
	}
	if (r < 0)
		notify_fail(c, r);
	else
		notify_return(c, 0);
}

/* setuid, setgid */
void users_set(struct notify_call *c)
{
	uint32_t id = (uint32_t)notify_arg(c, 0);
	struct users before, after;
	struct users_ids *t;

	users_load(c->tid, &before);
	after = before;
	t = triple(&after, c->request->data.nr);
	if (id >= USERS_NO_GROUPS)
		return notify_fail(c, -EINVAL);
	if (privileged(&before))
		t->real = t->saved = (uint16_t)id;
	else if (id != t->real && id != t->saved)
		return notify_fail(c, -EPERM);
	t->effective = (uint16_t)id;
	finish(c, &before, &after);
}

/* setreuid, setregid: setreuid(2) on what becomes of the saved id */
void users_set_two(struct notify_call *c)
{
	uint32_t real = (uint32_t)notify_arg(c, 0), effective = (uint32_t)notify_arg(c, 1);
	struct users before, after;
	struct users_ids *t, old;
	bool root;

	users_load(c->tid, &before);
	after = before;
	t = triple(&after, c->request->data.nr);
	old = *t;
	root = privileged(&before);
	if ((real != KEEP && real >= USERS_NO_GROUPS) ||
		(effective != KEEP && effective >= USERS_NO_GROUPS))
		return notify_fail(c, -EINVAL);
	if (!root && ((real != KEEP && real != old.real && real != old.effective) ||
			     (effective != KEEP && !one_of(old, effective))))
		return notify_fail(c, -EPERM);
	if (real != KEEP)
		t->real = (uint16_t)real;
	if (effective != KEEP)
		t->effective = (uint16_t)effective;
	if (real != KEEP || (effective != KEEP && effective != old.real))
		t->saved = t->effective;
	finish(c, &before, &after);
}

/* setresuid, setresgid */
void users_set_three(struct notify_call *c)
{
	struct users before, after;
	struct users_ids *t, old;
	uint16_t *const slots[] = {
		&triple(&after, c->request->data.nr)->real,
		&triple(&after, c->request->data.nr)->effective,
		&triple(&after, c->request->data.nr)->saved,
	};

	users_load(c->tid, &before);
	after = before;
	t = triple(&after, c->request->data.nr);
	old = *t;
	for (int i = 0; i < 3; i++) {
		uint32_t id = (uint32_t)notify_arg(c, i);

		if (id == KEEP)
			continue;
		if (id >= USERS_NO_GROUPS)
			return notify_fail(c, -EINVAL);
		if (!privileged(&before) && !one_of(old, id))
			return notify_fail(c, -EPERM);
		*slots[i] = (uint16_t)id;
	}
	finish(c, &before, &after);
}

/* setfsuid, setfsgid: the file system ids follow the effective ones; they tell the old one. */
void users_set_fs(struct notify_call *c)
{
	struct users u;

	users_load(c->tid, &u);
	notify_return(c, triple(&u, c->request->data.nr)->effective);
}

/* Takes @ids over; returns the number of the new set. */
static int add_set(struct users_groups *g, gid_t *ids, size_t n)
{
	bool fits = g->n < MAX_SETS && n <= MAX_IDS - g->n_ids;
	void *more = fits ? reallocarray(g->sets, g->n + 1, sizeof(*g->sets)) : NULL;

	if (!more) {
		free(ids);
		return -ENOMEM;
	}
	g->sets = more;
	g->sets[g->n].ids = ids;
	g->sets[g->n].n = n;
	g->n_ids += n;
	return (int)g->n++;
}

static int find_set(struct users_groups *g, gid_t *ids, size_t n)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->sets[i].n == n && !memcmp(g->sets[i].ids, ids, n * sizeof(*ids))) {
			free(ids);
			return (int)i;
		}
	return add_set(g, ids, n);
}

int users_groups_dump(const struct users_groups *g, Pb__World *w, void **ret_room)
{
	Pb__GroupSet **list = calloc(g->n + 1, sizeof(*list) + sizeof(**list));
	Pb__GroupSet *sets = (Pb__GroupSet *)(list + g->n + 1);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++) {
		list[i] = &sets[i];
		pb__group_set__init(&sets[i]);
		sets[i].ids = g->sets[i].ids;
		sets[i].n_ids = g->sets[i].n;
	}
	w->group_sets = list;
	w->n_group_sets = g->n;
	*ret_room = list;
	return 0;
}

int users_groups_restore(struct users_groups *g, const Pb__World *w, struct err *e)
{
	for (size_t i = 0; i < w->n_group_sets; i++) {
		size_t n = w->group_sets[i]->n_ids;
		gid_t *ids = n <= MAX_GROUPS ? calloc(n + 1, sizeof(*ids)) : NULL;

		if (ids && n)
			memcpy(ids, w->group_sets[i]->ids, n * sizeof(*ids));
		if (!ids || add_set(g, ids, n) < 0)
			return err_set(e, ERR_IMAGE, -EBADMSG, "bad supplementary groups");
	}
	return 0;
}

void users_set_groups(struct notify_call *c)
{
	size_t n = notify_arg(c, 0);
	struct users before, after;
	gid_t *ids;
	int set;

	users_load(c->tid, &before);
	if (!privileged(&before))
		return notify_fail(c, -EPERM);
	if (n > MAX_GROUPS)
		return notify_fail(c, -EINVAL);
	ids = calloc(n + 1, sizeof(*ids));
	if (!ids || (n && notify_read(c, notify_arg(c, 1), ids, n * sizeof(*ids)) < 0)) {
		notify_fail(c, ids ? -EFAULT : -ENOMEM);
		free(ids);
		return;
	}
	set = find_set(notify_groups(c->notify), ids, n);
	if (set < 0)
		return notify_fail(c, set);
	after = before;
	after.groups = (uint16_t)set;
	finish(c, &before, &after);
}

void users_get_groups(struct notify_call *c)
{
	const struct users_groups *g = notify_groups(c->notify);
	int room = (int)notify_arg(c, 0);
	struct users u;
	size_t n;

	users_load(c->tid, &u);
	if (u.groups == USERS_NO_GROUPS)
		return notify_continue(c);
	n = u.groups < g->n ? g->sets[u.groups].n : 0;
	if (room && (size_t)room < n)
		return notify_fail(c, -EINVAL);
	if (room && n &&
		notify_write(c, notify_arg(c, 1), g->sets[u.groups].ids, n * sizeof(gid_t)) < 0)
		return notify_fail(c, -EFAULT);
	notify_return(c, (int64_t)n);
}

/* prctl(PR_SET_KEEPCAPS): the kernel does it, too */
void users_keep_caps(struct notify_call *c)
{
	struct users u;

	users_load(c->tid, &u);
	u.keeps_caps = notify_arg(c, 1) != 0;
	store(c->tid, &u);
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
