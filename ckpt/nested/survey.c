// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in nested.h. */
#include "ckpt/nested/survey.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/base.h"
#include "ckpt/enter.h"
#include "ckpt/nested/list.h"

/* What nobody in a session can have made. */
static const char *const others[] = {"mnt", "cgroup", "time"};

/* ---- which there are ------------------------------------------------------------------------ */

struct survey {
	struct ckpt_dump *d;
	uint64_t own[CKPT_N_NS]; /* inodes of the session's */
	struct buf found;	 /* struct ckpt_nested */
};

static struct ckpt_nested *one(struct survey *s, size_t at)
{
	return (struct ckpt_nested *)s->found.data + at;
}

static int inode_of(
	const struct ckpt_dump *d, pid_t pid, const char *name, uint64_t *ret, struct err *e)
{
	char path[48];
	struct stat st;

	snprintf(path, sizeof(path), "%d/ns/%s", pid, name);
	if (fstatat(d->host_proc, path, &st, 0) < 0)
		return err_errno(e, -errno, "/proc/%s", path);
	*ret = st.st_ino;
	return 0;
}

/* Of the session's own; where it has none that is the caller's.  Pid 1 tells nobody. */
static int inode_of_session(
	const struct ckpt_dump *d, const char *name, uint64_t *ret, struct err *e)
{
	const struct ckpt_world *w = d->world;
	const struct {
		const char *name;
		int fd;
	} all[] = {{"user", w->ns_user}, {"pid", w->ns_pid}, {"net", w->ns_net}, {"ipc", w->ns_ipc},
		{"uts", w->ns_uts}, {"mnt", w->ns_mnt}, {"time", w->ns_time}};
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (all[i].fd < 0 || strcmp(all[i].name, name))
			continue;
		if (fstat(all[i].fd, &st) < 0)
			return err_errno(e, -errno, "namespaces");
		*ret = st.st_ino;
		return 0;
	}
	return inode_of(d, getpid(), name, ret, e);
}

static uint32_t number_of(const struct survey *s, enum ckpt_ns sort, uint64_t ino)
{
	const struct ckpt_nested *all = (const void *)s->found.data;

	for (size_t i = 0; i < s->found.len / sizeof(*all); i++)
		if (all[i].sort == sort && all[i].ino == ino)
			return (uint32_t)i + 1;
	return 0;
}

static int refuse(struct err *e, const char *what)
{
	err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "%s", what);
	return err_hint(e, "docs/coverage.md has which sandboxes of programs can be moved");
}

static int add(
	struct survey *s, enum ckpt_ns sort, uint64_t ino, int fd, uint32_t *ret, struct err *e)
{
	buf_put(&s->found,
		&(struct ckpt_nested){.sort = sort, .ino = ino, .left = fd >= 0, .fd = fd},
		sizeof(struct ckpt_nested));
	if (buf_error(&s->found)) {
		close_fd(fd);
		return err_errno(e, -ENOMEM, "namespaces");
	}
	*ret = (uint32_t)(s->found.len / sizeof(struct ckpt_nested));
	return *ret > CKPT_MAX_NESTED ? refuse(e, "there are too many namespaces") : 0;
}

static int look_at(struct survey *s, struct ckpt_proc *p, struct err *e)
{
	uint64_t ino, own, next;
	int r = 0;

	for (int i = 0; i < CKPT_N_NS && r == 0; i++) {
		r = inode_of(s->d, p->look, ckpt_ns_name((enum ckpt_ns)i), &ino, e);
		if (r < 0 || ino == s->own[i])
			continue;
		p->ns.ns[i] = number_of(s, i, ino);
		if (!p->ns.ns[i])
			r = add(s, (enum ckpt_ns)i, ino, -1, &p->ns.ns[i], e);
	}
	if (r < 0 || !ckpt_ns_any(&p->ns))
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(others) && r == 0; i++) {
		r = inode_of(s->d, p->look, others[i], &ino, e);
		if (r == 0)
			r = inode_of_session(s->d, others[i], &own, e);
		if (r == 0 && ino != own)
			return refuse(e, "it has mounts, clocks or control groups of its own");
	}
	if (r == 0)
		r = inode_of(s->d, p->look, "pid", &ino, e);
	if (r == 0)
		r = inode_of(s->d, p->look, "pid_for_children", &next, e);
	if (r == 0 && ino != next)
		return refuse(e, "its next child is to be in a pid namespace of its own");
	return r;
}

/* Threads of a process that may have made one for itself alone. */
static int look_at_threads(struct survey *s, const struct ckpt_proc *p, struct err *e)
{
	static const enum ckpt_ns own[] = {CKPT_NS_NET, CKPT_NS_IPC, CKPT_NS_UTS};

	for (size_t k = 1; k < p->n_threads; k++)
		for (size_t i = 0; i < ARRAY_SIZE(own); i++) {
			uint64_t all, one;
			int r = inode_of(s->d, p->look, ckpt_ns_name(own[i]), &all, e);

			if (r == 0)
				r = inode_of(
					s->d, p->threads[k]->tid, ckpt_ns_name(own[i]), &one, e);
			if (r < 0)
				return r;
			if (all != one)
				return refuse(e, "its threads are in different namespaces");
		}
	return 0;
}

/* ---- what they are -------------------------------------------------------------------------- */

/* The number of the namespace that @request tells about the one in @fd: 0 for the session's. */
static int related(struct survey *s, int fd, unsigned long request, enum ckpt_ns sort,
	uint32_t *ret, struct err *e)
{
	_cleanup_close_ int other = ioctl(fd, request);
	struct stat st;

	if (other < 0 || fstat(other, &st) < 0)
		return err_errno(e, -errno, "namespaces");
	*ret = st.st_ino == s->own[sort] ? 0 : number_of(s, sort, st.st_ino);
	if (*ret || st.st_ino == s->own[sort])
		return 0;
	if (sort != CKPT_NS_USER)
		return refuse(e, "the first process of a pid namespace around it has ended");
	/* Somebody was there and has gone on into one inside. */
	return add(s, sort, st.st_ino, take_fd(&other), ret, e);
}

static int open_ns(const struct ckpt_dump *d, pid_t pid, enum ckpt_ns sort, struct err *e)
{
	char path[48];
	int fd;

	snprintf(path, sizeof(path), "%d/ns/%s", pid, ckpt_ns_name(sort));
	fd = openat(d->host_proc, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_errno(e, -errno, "/proc/%s", path) : fd;
}

/* Of number @at, by a descriptor of it. */
static int relate(struct survey *s, size_t at, int fd, struct err *e)
{
	enum ckpt_ns sort = one(s, at)->sort;
	uint32_t outer = 0, owner = 0;
	int r = 0;

	if (sort == CKPT_NS_USER || sort == CKPT_NS_PID)
		r = related(s, fd, NS_GET_PARENT, sort, &outer, e);
	if (r == 0)
		r = sort == CKPT_NS_USER ? 0
					 : related(s, fd, NS_GET_USERNS, CKPT_NS_USER, &owner, e);
	/* the list may have moved */
	one(s, at)->outer = outer;
	one(s, at)->owner = sort == CKPT_NS_USER ? outer : owner;
	return r;
}

/* ---- ids of user namespaces ------------------------------------------------------------------ */

static int parse_ids(const char *text, struct ckpt_id_range *ret, size_t *ret_n, struct err *e)
{
	int used;

	for (*ret_n = 0; *ret_n <= CKPT_MAX_ID_RANGES; text += used) {
		struct ckpt_id_range x;

		used = 0;
		if (sscanf(text, "%u %u %u%n", &x.inside, &x.outside, &x.count, &used) != 3)
			return 0;
		if (*ret_n == CKPT_MAX_ID_RANGES)
			break;
		ret[(*ret_n)++] = x;
	}
	return refuse(e, "its user namespace has too many ranges of ids");
}

/* A process that goes into it tells: to itself /proc says ids as the one around has them. */
struct told {
	char uids[4096], gids[4096], setgroups[16];
};

static int tell_ids(int sock, void *ctx, struct err *e)
{
	static const char *const files[] = {"uid_map", "gid_map", "setgroups"};
	struct told t = {0};
	char *const to[] = {t.uids, t.gids, t.setgroups};
	const size_t room[] = {sizeof(t.uids), sizeof(t.gids), sizeof(t.setgroups)};

	if (setns(*(const int *)ctx, CLONE_NEWUSER) < 0)
		return err_errno(e, -errno, "cannot look into a namespace of a program's own");
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char path[32];
		_cleanup_buf_ struct buf b = BUF_INIT;

		snprintf(path, sizeof(path), "/proc/self/%s", files[i]);
		if (io_read_file(AT_FDCWD, path, room[i] - 1, &b) < 0)
			return err_errno(e, -EIO, "%s", path);
		memcpy(to[i], b.data, b.len);
	}
	return io_write_full(sock, &t, sizeof(t)) < 0 ? -EIO : 0;
}

static int learn_ids(struct survey *s, size_t at, int fd, struct err *e)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	struct ckpt_nested *n = one(s, at);
	const struct told *t;
	int r = ckpt_enter_read(s->d->world, CLONE_NEWUSER, tell_ids, &fd, sizeof(*t), &b, e);

	if (r < 0)
		return r;
	if (b.len != sizeof(*t))
		return err_errno(e, -EPROTO, "ids of a namespace");
	t = (const struct told *)b.data;
	n->no_setgroups = !strncmp(t->setgroups, "deny", 4);
	r = parse_ids(t->uids, n->uids, &n->n_uids, e);
	return r < 0 ? r : parse_ids(t->gids, n->gids, &n->n_gids, e);
}

/* Of its network nothing is rebuilt but whether its loopback device is up. */
static int learn_net(struct survey *s, const struct ckpt_proc *p, size_t at, struct err *e)
{
	_cleanup_buf_ struct buf dev = BUF_INIT, routes = BUF_INIT;
	char path[32];
	size_t devices = 0;
	int r;

	snprintf(path, sizeof(path), "%d/net/dev", p->look);
	r = io_read_file(s->d->host_proc, path, 1 << 20, &dev);
	snprintf(path, sizeof(path), "%d/net/fib_trie", p->look);
	if (r >= 0)
		r = io_read_file(s->d->host_proc, path, 1 << 20, &routes);
	if (r < 0 || !buf_cstr(&dev) || !buf_cstr(&routes))
		return err_errno(e, r < 0 ? r : -ENOMEM, "/proc/%s", path);
	for (const char *c = buf_cstr(&dev); (c = strchr(c, ':')); c++)
		devices++;
	if (devices != 1)
		return refuse(e, "its network namespace has devices besides lo");
	one(s, at)->loopback = strstr(buf_cstr(&routes), "127.0.0.1");
	return 0;
}

/* ---- who was the first ---------------------------------------------------------------------- */

static bool is_founder(const struct ckpt_dump *d, const struct ckpt_proc *p,
	const struct ckpt_nested *n, uint32_t number)
{
	const struct ckpt_proc *parent = ckpt_proc_by_vpid(d, p->vppid);

	if (p->ns.ns[n->sort] != number)
		return false;
	if (n->sort == CKPT_NS_PID)
		return p->status.ns_tgid[p->status.ns_depth - 1] == 1;
	return !parent || parent->ns.ns[n->sort] != number;
}

static int find_member(struct survey *s, size_t at, const struct ckpt_proc **ret, struct err *e)
{
	*ret = NULL;
	for (size_t i = 0; i < s->d->n_procs; i++) {
		const struct ckpt_proc *p = s->d->procs[i];

		if (p->state == CKPT_ZOMBIE || !is_founder(s->d, p, one(s, at), (uint32_t)at + 1))
			continue;
		if (*ret)
			return refuse(e,
				"it shares a namespace with a process that is not related to it any more");
		*ret = p;
	}
	return *ret ? 0 : refuse(e, "the first process of its pid namespace has ended");
}

static int learn(struct survey *s, size_t at, struct err *e)
{
	enum ckpt_ns sort = one(s, at)->sort;
	_cleanup_close_ int fd = -1;
	const struct ckpt_proc *p = NULL;
	int r = 0;

	if (one(s, at)->left)
		fd = fcntl(one(s, at)->fd, F_DUPFD_CLOEXEC, 0);
	else
		r = find_member(s, at, &p, e);
	if (r == 0 && p) {
		one(s, at)->founder = p->vpid;
		r = fd = open_ns(s->d, p->look, sort, e);
	}
	r = MIN(r, 0);
	if (r == 0)
		r = fd < 0 ? err_errno(e, -errno, "namespaces") : relate(s, at, fd, e);
	if (r == 0 && sort == CKPT_NS_USER)
		r = learn_ids(s, at, fd, e);
	if (r == 0 && sort == CKPT_NS_NET)
		r = learn_net(s, p, at, e);
	return r < 0 && p ? err_wrap(e, "task %d (%s)", p->vpid, p->status.comm) : r;
}

/* Who has left a user namespace for one inside is who has come first into that. */
static int find_passers(struct ckpt_dump *d, struct err *e)
{
	for (size_t i = 0; i < d->n_nested; i++)
		for (uint32_t at = (uint32_t)i + 1;
			d->nested[i].sort == CKPT_NS_USER && !d->nested[i].left;
			at = d->nested[at - 1].outer) {
			struct ckpt_nested *outer =
				d->nested[at - 1].outer ? &d->nested[d->nested[at - 1].outer - 1]
							: NULL;

			if (!outer || !outer->left)
				break;
			if (outer->founder && outer->founder != d->nested[i].founder)
				return refuse(e,
					"processes in different user namespaces came from one that is empty");
			outer->founder = d->nested[i].founder;
		}
	return 0;
}

/* A dead process is where its parent is: nobody can see more of it. */
static void place_zombies(struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		const struct ckpt_proc *parent = ckpt_proc_by_vpid(d, d->procs[i]->vppid);

		if (d->procs[i]->state == CKPT_ZOMBIE && parent)
			d->procs[i]->ns = parent->ns;
	}
}

int ckpt_nested_survey(struct ckpt_dump *d, struct err *e)
{
	struct survey s = {.d = d, .found = BUF_INIT};
	int r = 0;

	if (d->world->ns_user < 0 || d->world->init_pid <= 0)
		return 0;
	for (int i = 0; i < CKPT_N_NS && r == 0; i++)
		r = inode_of_session(d, ckpt_ns_name((enum ckpt_ns)i), &s.own[i], e);
	for (size_t i = 0; i < d->n_procs && r == 0; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (p->state == CKPT_ZOMBIE)
			continue;
		r = look_at(&s, p, e);
		if (r == 0 && (ckpt_ns_any(&p->ns) || d->world->uid == 0))
			r = look_at_threads(&s, p, e);
		if (r < 0)
			err_wrap(e, "task %d (%s)", p->vpid, p->status.comm);
	}
	place_zombies(d);
	for (size_t i = 0; i < s.found.len / sizeof(*d->nested) && r == 0; i++)
		r = learn(&s, i, e);
	for (size_t i = 0; i < s.found.len / sizeof(*d->nested); i++)
		close_fd(one(&s, i)->fd);
	d->n_nested = s.found.len / sizeof(*d->nested);
	d->nested = (void *)s.found.data; /* the dump's from now on */
	return r < 0 ? r : find_passers(d, e);
}
