// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Owners of files.  The theory of operation is in users.h.
 *
 * What a stat tells of owners is translated, so that every one of them is answered, also of files
 * of the host's and of descriptors.  The file is found as the kernel would find it for the task,
 * from its own root, working directory or descriptor, and held by O_PATH.  The kernel is asked for
 * what it has at hand only (RESOLVE_CACHED): nobody waits here, and what would is left to
 * view/later.c.  A link of /proc in the way is the task's own, and the call is left to the kernel.
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/names/owners.h"
#include "supervisor/rewrite/rewrite.h"
#include "supervisor/rewrite/users/users.h"
#include "supervisor/rewrite/view/later.h"
#include "supervisor/rewrite/view/question.h"

#ifndef RESOLVE_CACHED
#define RESOLVE_CACHED 0x20 /* linux/openat2.h, 5.12 */
#endif

#define KEEP 0xffffffffU

static const struct rewrite_users *users_of(const struct question *q)
{
	return q->rw->tasks.users;
}

bool rewrite_users_asked(const struct question *q)
{
	static const int calls[] = {SYS_stat, SYS_lstat, SYS_newfstatat, SYS_statx, SYS_chown,
		SYS_lchown, SYS_fchownat};

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i] == q->data->nr)
			return users_of(q) != NULL;
	return false;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* Where relative paths begin, as a path of the host's /proc. */
static void base_of(const struct question *q, int dirfd, char ret[64])
{
	if (dirfd == AT_FDCWD)
		snprintf(ret, 64, "/proc/%d/cwd", q->tid);
	else
		snprintf(ret, 64, "/proc/%d/fd/%d", q->tid, dirfd);
}

/* An O_PATH descriptor; -EAGAIN: it may take long. */
static int find(const struct question *q, int dirfd, const char *said, bool follow)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW),
		.resolve = RESOLVE_CACHED | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_close_ int base = -1;
	char link[64];
	int fd;

	if (said[0] != '/') {
		base_of(q, dirfd, link);
		base = open(link, O_PATH | O_CLOEXEC);
		if (base < 0 || !said[0])
			return base < 0 ? -errno : take_fd(&base);
	}
	fd = (int)syscall(SYS_openat2, base, said, &how, sizeof(how));
	if (fd < 0 && (errno == EINVAL || errno == ENOSYS)) /* before 5.12, before 5.6 */
		return -EAGAIN;
	return fd < 0 ? -errno : fd;
}

/* What view/later.c needs: absolute. */
static int whole_path(const struct question *q, int dirfd, const char *said, char ret[PATH_MAX])
{
	char link[64];
	ssize_t n;
	int r;

	if (said[0] == '/')
		return snprintf(ret, PATH_MAX, "%s", said) < PATH_MAX ? 0 : -ENAMETOOLONG;
	base_of(q, dirfd, link);
	n = readlink(link, ret, PATH_MAX - 1);
	if (n <= 0 || ret[0] != '/')
		return -ENOENT;
	r = snprintf(ret + n, PATH_MAX - (size_t)n, "/%s", said);
	return r < PATH_MAX - n ? 0 : -ENAMETOOLONG;
}

static long later(struct path_question *p, int dirfd, const char *said, const char *whole)
{
	char path[PATH_MAX];
	int r = whole ? 0 : whole_path(&p->q, dirfd, said, path);

	if (r == 0)
		r = view_later(p, whole ? whole : path);
	p->q.sent = r == 0;
	p->q.asker->passed = *p->q.data; /* it may be told that it was interrupted */
	return r;
}

long rewrite_users_host(struct question *q, const struct path_row *row, int dirfd, const char *said,
	const char *whole)
{
	_cleanup_place_ struct view_place at = VIEW_PLACE_INIT;
	struct path_question p = {.q = *q, .row = row, .at = &at, .mem = -1};
	bool follow = !(row->how && row->how(q->data) & VIEW_NOFOLLOW);
	struct stat st;
	long r;

	at.fd = find(q, dirfd, said, follow);
	if (at.fd >= 0 && fstat(at.fd, &st) == 0) {
		at.mode = st.st_mode;
		r = row->inside(&p);
	} else if (at.fd == -EAGAIN) {
		r = later(&p, dirfd, said, whole);
	} else { /* what is wrong with it the kernel says */
		p.q.go_on = true;
		r = 0;
	}
	if (at.fd < 0)
		at.fd = -1;
	q->sent = p.q.sent;
	q->go_on = p.q.go_on;
	return r;
}

/* ---- chown and its like --------------------------------------------------------------------- */

/* Where the new owner stands among the arguments. */
static int owner_arg(int nr)
{
	return nr == SYS_fchownat ? 2 : 1;
}

static uint32_t owner(const struct question *q, int i)
{
	uint32_t id = (uint32_t)q->data->args[i];

	if (q->nr32 < 0 || q->nr32 > USERS_LAST_NARROW)
		return id;
	return (uint16_t)id == 0xffff ? KEEP : (uint16_t)id;
}

static uint32_t to_host(uint32_t id, uint32_t is, uint32_t host)
{
	return id == is ? host : KEEP;
}

/* The kernel is asked for what it thinks of it, and takes set-user-ID bits away. */
static long chown_file(
	const struct rewrite_users *us, pid_t tid, int fd, uint32_t uid, uint32_t gid)
{
	struct users giver;
	struct stat st;
	char path[32];

	rewrite_users_load(us, tid, &giver);
	if (!us->root && ((uid != KEEP && uid != us->uid) || (gid != KEEP && gid != us->gid)))
		return -EINVAL; /* as of an id that is not mapped */
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != us->host_uid && (uid != KEEP || gid != KEEP))
		return -EPERM;
	if (fchownat(fd, "", us->root ? us->host_uid : to_host(uid, us->uid, us->host_uid),
		    us->root || st.st_gid == us->host_gid ? KEEP
							  : to_host(gid, us->gid, us->host_gid),
		    AT_EMPTY_PATH) < 0)
		return -errno;
	if (!us->root)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return owners_give(us->owners, &giver, path, uid, gid);
}

long rewrite_users_chown_inside(struct path_question *p)
{
	int at = owner_arg(p->q.data->nr);

	if (p->at->fd < 0) /* made: a directory of /proc */
		return -EPERM;
	return chown_file(
		users_of(&p->q), p->q.tid, p->at->fd, owner(&p->q, at), owner(&p->q, at + 1));
}

long rewrite_users_chown_outside(struct path_question *p)
{
	int at = owner_arg(p->q.data->nr);
	bool follow = !(p->row->how && p->row->how(p->q.data) & VIEW_NOFOLLOW);
	_cleanup_close_ int fd = open(p->at->path, O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW));

	return fd < 0 ? -errno
		      : chown_file(users_of(&p->q), p->q.tid, fd, owner(&p->q, at),
				owner(&p->q, at + 1));
}
