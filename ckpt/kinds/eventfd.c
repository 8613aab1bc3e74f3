// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * eventfd - kind EVENTFD.  eventfd(2); the counter is in fdinfo.
 *
 * Kernels before 6.5 do not say whether it is a semaphore.  There a counter above one is read once
 * and the result put back: a semaphore gives one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "proto/files.pb-c.h"

static bool claim(const struct ckpt_file *f)
{
	return !strcmp(f->link, "anon_inode:[eventfd]");
}

/* Reading takes from the counter what is added again before anybody can look. */
static bool is_semaphore_by_reading(const struct ckpt_file *f, uint64_t count)
{
	uint64_t one = 1, got = 0;
	bool semaphore;

	if (count == UINT64_MAX || f->flags & O_PATH)
		return false;
	while (count < 2) {
		if (write(f->fd, &one, sizeof(one)) != sizeof(one))
			return false;
		count++;
	}
	if (read(f->fd, &got, sizeof(got)) != sizeof(got))
		return false;
	semaphore = got == 1;
	if (!semaphore && write(f->fd, &got, sizeof(got)) != sizeof(got))
		log_error("an eventfd has lost its count");
	return semaphore;
}

static void set_count(const struct ckpt_file *f, uint64_t now, uint64_t want)
{
	uint64_t v;

	for (; now > want && read(f->fd, &v, sizeof(v)) == sizeof(v);)
		now -= v;
	if (now < want) {
		v = want - now;
		if (write(f->fd, &v, sizeof(v)) != sizeof(v))
			log_error("an eventfd has lost its count");
	}
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	Pb__EventFd m = PB__EVENT_FD__INIT;
	uint64_t count, semaphore;
	int r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	if (!ckpt_fdinfo_number(f->fdinfo, "eventfd-count", 16, &count))
		return err_set(e, ERR_HOST, -ENOTSUP, "fdinfo does not tell an eventfd's count");
	if (!ckpt_fdinfo_number(f->fdinfo, "eventfd-semaphore", 10, &semaphore)) {
		_cleanup_buf_ struct buf text = BUF_INIT;
		uint64_t now = count;

		semaphore = is_semaphore_by_reading(f, count);
		if (ckpt_common_fdinfo(d, f, &text, NULL) == 0)
			ckpt_fdinfo_number(buf_cstr(&text), "eventfd-count", 16, &now);
		set_count(f, now, count);
	}
	m.common = common;
	m.count = count;
	m.semaphore = semaphore;
	return ckpt_pack(&m.base, body, e);
}

static int make(struct ckpt_build *b, const Pb__EventFd *m, struct err *e)
{
	_cleanup_close_ int fd =
		eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK | (m->semaphore ? EFD_SEMAPHORE : 0));
	int r;

	if (fd < 0)
		return err_errno(e, -errno, "eventfd");
	if (m->count && write(fd, &m->count, sizeof(m->count)) != sizeof(m->count))
		return err_errno(e, -errno, "cannot set an eventfd's count");
	r = ckpt_common_restore(b, fd, m->common, e);
	return r < 0 ? r : take_fd(&fd);
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__EventFd *m = pb__event_fd__unpack(NULL, r->len, r->body);
	int fd = m && m->common ? make(b, m, e) : ckpt_common_bad(r, e);

	if (m)
		pb__event_fd__free_unpacked(m, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__EventFd *m = pb__event_fd__unpack(NULL, len, body);

	if (!m)
		fputs("unreadable", out);
	else
		fprintf(out, "count %llu%s", (unsigned long long)m->count,
			m->semaphore ? ", semaphore" : "");
	if (m)
		pb__event_fd__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_eventfd = {
	.number = PROTO_KIND_EVENTFD,
	.name = "eventfd",
	.scope = CKPT_FILE,
	.claim = claim,
	.dump = dump,
	.create = create,
	.show = show,
};
