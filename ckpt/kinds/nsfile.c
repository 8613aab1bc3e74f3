// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * nsfile - open files of /proc/PID/ns: kind NSFILE.
 *
 * The session has one namespace of each sort, so the sort is all there is to know.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "proto/files.pb-c.h"

#define SORT_LEN 16

static bool claim(const struct ckpt_file *f)
{
	struct statfs fs;

	return f->link[0] != '/' && fstatfs(f->fd, &fs) == 0 && fs.f_type == NSFS_MAGIC;
}

/* "net" of "net:[4026531840]". */
static void sort_of(const struct ckpt_file *f, char ret[SORT_LEN])
{
	snprintf(ret, SORT_LEN, "%.*s", (int)strcspn(f->link, ":"), f->link);
}

/* The session's own one of that sort, borrowed; -1 if it has none. */
static int of_session(const struct ckpt_world *w, const char *sort)
{
	const struct {
		const char *sort;
		int fd;
	} all[] = {
		{"user", w->ns_user},
		{"pid", w->ns_pid},
		{"mnt", w->ns_mnt},
		{"net", w->ns_net},
		{"ipc", w->ns_ipc},
		{"uts", w->ns_uts},
		{"time", w->ns_time},
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (!strcmp(all[i].sort, sort))
			return all[i].fd;
	return -1;
}

static bool is_known(const char *sort)
{
	static const char *const sorts[] = {"user", "pid", "mnt", "net", "ipc", "uts", "time",
		"cgroup"};

	for (size_t i = 0; i < ARRAY_SIZE(sorts); i++)
		if (!strcmp(sorts[i], sort))
			return true;
	return false;
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	char sort[SORT_LEN], path[SORT_LEN + 16];
	struct stat st;
	int fd, r;

	sort_of(s.file, sort);
	fd = of_session(d->world, sort);
	snprintf(path, sizeof(path), "self/ns/%s", sort);
	r = fd >= 0 ? fstat(fd, &st) : fstatat(d->host_proc, path, &st, 0);
	if (!is_known(sort) || r < 0 || st.st_ino != s.file->st.st_ino)
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"%s is not the session's own namespace", s.file->link);
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	Pb__NsFile m = PB__NS_FILE__INIT;
	char sort[SORT_LEN];
	int r = ckpt_common_dump(d, s.file, &common, e);

	if (r < 0)
		return r;
	sort_of(s.file, sort);
	m.common = common;
	m.type = sort;
	return ckpt_pack(&m.base, body, e);
}

static int open_again(struct ckpt_build *b, const Pb__NsFile *m, struct err *e)
{
	int own = of_session(b->world, m->type);
	char path[SORT_LEN + 16];
	int fd;

	if (!is_known(m->type))
		return err_set(e, ERR_IMAGE, -EBADMSG, "an unknown sort of namespace");
	if (own >= 0)
		return ckpt_common_reopen(b, own, O_RDONLY, e);
	snprintf(path, sizeof(path), "self/ns/%s", m->type);
	fd = openat(b->host_proc, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? err_errno(e, -errno, "cannot open namespace %s", m->type) : fd;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__NsFile *m = pb__ns_file__unpack(NULL, r->len, r->body);
	_cleanup_close_ int fd = m ? open_again(b, m, e) : ckpt_common_bad(r, e);
	int x = fd < 0 ? fd : ckpt_common_restore(b, fd, m->common, e);

	if (m)
		pb__ns_file__free_unpacked(m, NULL);
	if (x == 0)
		*ret_fd = take_fd(&fd);
	return x;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__NsFile *m = pb__ns_file__unpack(NULL, len, body);

	fputs(m ? m->type : "unreadable", out);
	if (m)
		pb__ns_file__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_nsfile = {
	.number = PROTO_KIND_NSFILE,
	.name = "namespace",
	.scope = CKPT_FILE,
	.claim = claim,
	.check = check,
	.dump = dump,
	.create = create,
	.show = show,
};
