// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Open POSIX message queues.  One with a name is opened again by it; one that was unlinked while
 * open travels in the record of its first open file and has a name of ours until all have it.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/mqueue.h"
#include "proto/files.pb-c.h"
#include "proto/ipc.pb-c.h"

static bool claim(const struct ckpt_file *f)
{
	struct statfs fs;

	return S_ISREG(f->st.st_mode) && !(f->flags & O_PATH) && f->fd >= 0 &&
	       fstatfs(f->fd, &fs) == 0 && (uint32_t)fs.f_type == MQUEUE_MAGIC;
}

static int dump_unlinked(
	struct ckpt_dump *d, const struct ckpt_file *f, Pb__Mqueue *m, struct err *e)
{
	_cleanup_close_ int fd = -1;
	char path[32];

	snprintf(path, sizeof(path), "self/fd/%d", f->fd);
	fd = openat(d->host_proc, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return err_errno(e, -errno, "cannot open a deleted message queue");
	return mqueue_read(d, fd, m, e);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file, *first = ckpt_common_first(d, f);
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	_cleanup_free_ char *path = ckpt_common_path(f);
	char name[MQUEUE_PATH];
	Pb__Mqueue queue = PB__MQUEUE__INIT;
	Pb__MqFile m = PB__MQ_FILE__INIT;
	int r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	if (!path)
		return err_errno(e, -ENOMEM, "%s", f->link);
	m.common = common;
	if (f->st.st_nlink) {
		r = mqueue_name(
			d->world, strrchr(path, '/') ? strrchr(path, '/') + 1 : path, name, e);
		m.name = name;
	} else {
		m.object = first->id;
		if (first == f) {
			r = dump_unlinked(d, f, &queue, e);
			m.unlinked = &queue;
		}
	}
	if (r >= 0)
		r = ckpt_pack(&m.base, body, e);
	mqueue_fini(&queue);
	return r;
}

static void own_name(uint32_t object, char ret[32])
{
	snprintf(ret, 32, "podrun-unlinked-%u", object);
}

static int open_queue(
	const struct ckpt_world *w, const char *name, const Pb__FileCommon *c, struct err *e)
{
	char path[MQUEUE_PATH];
	int fd;

	if (!c || !mqueue_check_name(name))
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad message queue");
	if (mqueue_host_path(w, name, path, e) < 0)
		return err_reclass(e, ERR_IMAGE);
	fd = mq_open(path, ((int)c->flags & O_ACCMODE) | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? err_errno(e, -errno, "cannot open message queue /%s", name) : fd;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__MqFile *m = pb__mq_file__unpack(NULL, r->len, r->body);
	const char *name;
	char own[32];
	int fd = 0, rc;

	if (!m) {
		rc = ckpt_common_bad(r, e);
		goto out;
	}
	own_name(m->object, own);
	name = m->object ? own : m->name;
	if (m->unlinked) {
		fd = mqueue_make(b->world, own, m->unlinked, e);
		close_fd(fd);
	}
	rc = fd = fd < 0 ? fd : open_queue(b->world, name, m->common, e);
	if (rc >= 0)
		rc = ckpt_common_restore(b, fd, m->common, e);
	if (rc >= 0)
		*ret_fd = fd;
	else
		close_fd(fd);
out:
	pb__mq_file__free_unpacked(m, NULL);
	return MIN(rc, 0);
}

static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__MqFile *m = pb__mq_file__unpack(NULL, r->len, r->body);
	char own[32], path[MQUEUE_PATH];
	int rc = 0;

	if (m && m->unlinked) {
		own_name(m->object, own);
		rc = mqueue_host_path(b->world, own, path, e);
		if (rc == 0 && mq_unlink(path) < 0)
			rc = err_errno(e, -errno, "message queue /%s", own);
		if (b->world->ipc)
			b->world->ipc->forget_queue(b->world->ipc->ctx, own);
	}
	pb__mq_file__free_unpacked(m, NULL);
	return rc;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__MqFile *m = pb__mq_file__unpack(NULL, len, body);

	if (m && m->object)
		fprintf(out, "deleted queue of file %u", bare ? 0 : m->object);
	else if (m)
		fprintf(out, "/%s", m->name);
	pb__mq_file__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_mqfile = {
	.number = PROTO_KIND_MQFILE,
	.name = "mqfile",
	.scope = CKPT_FILE,
	.claim = claim,
	.dump = dump,
	.create = create,
	.finish = finish,
	.show = show,
};
