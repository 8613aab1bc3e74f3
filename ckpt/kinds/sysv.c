// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in sysv.h. */
#include <errno.h>
#include <stdio.h>

#include "ckpt/build.h"
#include "ckpt/kinds/sysv.h"
#include "proto/ipc.pb-c.h"

int sysv_tell_all(
	struct buf *answer, int max, sysv_stat_fn stat, void *ds, size_t size, struct err *e)
{
	if (max < 0)
		return err_errno(e, -errno, "cannot list the session's System V objects");
	for (int i = 0; i <= max; i++) {
		int64_t id = stat(i, ds);

		if (id < 0)
			continue;
		buf_put(answer, &id, sizeof(id));
		buf_put(answer, ds, size);
	}
	return 0;
}

Pb__IpcPerm *sysv_perm_dump(int id, const struct ipc_perm *p)
{
	Pb__IpcPerm *m = malloc(sizeof(*m));

	if (!m)
		return NULL;
	pb__ipc_perm__init(m);
	m->id = id;
	m->key = p->__key;
	m->uid = p->uid;
	m->gid = p->gid;
	m->mode = p->mode & 0777;
	return m;
}

int sysv_next_id(struct ckpt_build *b, const char *family, int id, struct err *e)
{
	char path[64], text[16];
	int r;

	snprintf(path, sizeof(path), "sys/kernel/%s_next_id", family);
	snprintf(text, sizeof(text), "%d", id);
	r = io_write_str(b->host_proc, path, text);
	return r < 0 ? err_errno(e, r, "/proc/%s", path) : 0;
}

int sysv_check_id(const char *family, const Pb__IpcPerm *m, int got, struct err *e)
{
	if (got < 0)
		return err_errno(e, -errno, "cannot make %s %d again", family, m->id);
	if (got != m->id)
		return err_set(e, ERR_HOST, -EEXIST, "%s %d got the id %d", family, m->id, got);
	return 0;
}
