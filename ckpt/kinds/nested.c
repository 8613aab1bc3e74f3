// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * nested - namespaces within the session's (ckpt/nested/nested.h): kind NESTED.
 *
 * What they are was found out by the survey, and they are made with the processes
 * (ckpt/restore/grow.c).  Objects of System V in one are not carried.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/utsname.h>

#include <protobuf-c/protobuf-c.h>

#include "base/base.h"
#include "ckpt/enter.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/nested/list.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

/*
 * What only somebody inside can tell: of an ipc namespace whether it holds anything, of a uts
 * namespace its names.
 */
struct answer {
	char full;
	struct utsname names;
};

struct question {
	int fd;
	enum ckpt_ns sort;
};

static int has_objects(const char *file)
{
	_cleanup_buf_ struct buf b = BUF_INIT;
	const char *end;

	if (io_read_file(AT_FDCWD, file, 65536, &b) < 0 || !buf_cstr(&b))
		return 0; /* a kernel without System V IPC */
	end = strchr(buf_cstr(&b), '\n');
	return end && end[1];
}

static int answer(int sock, void *ctx, struct err *e)
{
	const struct question *q = ctx;
	struct answer a = {0};

	if (setns(q->fd, (int)ckpt_ns_flag(q->sort)) < 0)
		return err_errno(e, -errno, "cannot look into a namespace of a program's own");
	a.full = has_objects("/proc/sysvipc/shm") || has_objects("/proc/sysvipc/sem") ||
		 has_objects("/proc/sysvipc/msg");
	uname(&a.names);
	return io_write_full(sock, &a, sizeof(a)) < 0 ? -EIO : 0;
}

static int ask(struct ckpt_dump *d, const struct ckpt_nested *n, struct answer *ret, struct err *e)
{
	const struct ckpt_proc *p = ckpt_proc_by_vpid(d, n->founder);
	struct question q = {.sort = n->sort};
	_cleanup_close_ int fd = -1;
	_cleanup_buf_ struct buf b = BUF_INIT;
	char path[48];
	int r;

	snprintf(path, sizeof(path), "%d/ns/%s", p->look, ckpt_ns_name(n->sort));
	q.fd = fd = openat(d->host_proc, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "/proc/%s", path);
	r = ckpt_enter_read(d->world, CLONE_NEWUSER, answer, &q, sizeof(*ret), &b, e);
	if (r == 0 && b.len == sizeof(*ret))
		memcpy(ret, b.data, sizeof(*ret));
	else if (r == 0)
		r = err_errno(e, -EPROTO, "a namespace of a program's own");
	return r;
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	for (size_t i = 0; i < d->n_nested; i++) {
		const struct ckpt_nested *n = &d->nested[i];
		struct answer a;

		if (n->sort != CKPT_NS_IPC)
			continue;
		if (ask(d, n, &a, e) < 0)
			return e->error;
		if (a.full)
			return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
				"task %d has System V objects in an ipc namespace of its own",
				n->founder);
	}
	return 0;
}

static void fill_ids(
	const struct ckpt_id_range *from, size_t n, Pb__IdRange *to, Pb__IdRange **list)
{
	for (size_t i = 0; i < n; i++) {
		pb__id_range__init(&to[i]);
		to[i].inside = from[i].inside;
		to[i].outside = from[i].outside;
		to[i].count = from[i].count;
		list[i] = &to[i];
	}
}

struct one {
	Pb__NestedNs m;
	Pb__IdRange uids[CKPT_MAX_ID_RANGES], gids[CKPT_MAX_ID_RANGES];
	Pb__IdRange *uid_list[CKPT_MAX_ID_RANGES], *gid_list[CKPT_MAX_ID_RANGES];
	struct answer answer;
};

static int fill(struct ckpt_dump *d, const struct ckpt_nested *n, struct one *one, struct err *e)
{
	Pb__NestedNs *m = &one->m;

	pb__nested_ns__init(m);
	m->sort = n->sort;
	m->outer = n->outer;
	m->owner = n->owner;
	m->founder = n->founder;
	m->no_setgroups = n->no_setgroups;
	m->loopback = n->loopback;
	fill_ids(n->uids, n->n_uids, one->uids, one->uid_list);
	fill_ids(n->gids, n->n_gids, one->gids, one->gid_list);
	m->uids = one->uid_list;
	m->n_uids = n->n_uids;
	m->gids = one->gid_list;
	m->n_gids = n->n_gids;
	if (n->sort != CKPT_NS_UTS)
		return 0;
	if (ask(d, n, &one->answer, e) < 0)
		return e->error;
	m->hostname = one->answer.names.nodename;
	m->domainname = one->answer.names.domainname;
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	_cleanup_free_ struct one *all = calloc(d->n_nested + 1, sizeof(*all));
	_cleanup_free_ Pb__NestedNs **list = calloc(d->n_nested + 1, sizeof(*list));
	Pb__Nested m = PB__NESTED__INIT;

	if (!d->n_nested)
		return 1;
	if (!all || !list)
		return err_errno(e, -ENOMEM, "namespaces");
	for (size_t i = 0; i < d->n_nested; i++) {
		if (fill(d, &d->nested[i], &all[i], e) < 0)
			return e->error;
		list[i] = &all[i].m;
	}
	m.namespaces = list;
	m.n_namespaces = d->n_nested;
	return ckpt_pack(&m.base, body, e);
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Nested *m = pb__nested__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_namespaces; i++)
		fprintf(out, "%s%zu %s of %d", i ? ", " : "", i + 1,
			m->namespaces[i]->sort < CKPT_N_NS ? ckpt_ns_name(m->namespaces[i]->sort)
							   : "?",
			m->namespaces[i]->founder);
	pb__nested__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_nested = {
	.number = PROTO_KIND_NESTED,
	.name = "nested",
	.scope = CKPT_SESSION,
	.check = check,
	.dump = dump,
	.show = show,
};
