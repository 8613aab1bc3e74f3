// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * pidfd - kind PIDFD.  pidfd_open(2); fdinfo tells the pid, -1 once it has ended and been reaped.
 *
 * At resume a pidfd of one that has gone is taken of a child of the builder's, which goes as well.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "proto/files.pb-c.h"

#define FLAG_THREAD O_EXCL /* PIDFD_THREAD of Linux 6.9; F_GETFL shows it */

static bool claim(const struct ckpt_file *f)
{
	return !strcmp(f->link, "anon_inode:[pidfd]") || !strncmp(f->link, "pidfd:[", 7);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	Pb__PidFd m = PB__PID_FD__INIT;
	uint64_t pid;
	int r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	if (!ckpt_fdinfo_number(f->fdinfo, "Pid", 10, &pid))
		return err_set(e, ERR_HOST, -ENOTSUP, "fdinfo does not tell a pidfd's pid");
	m.common = common;
	m.thread = f->flags & FLAG_THREAD;
	if ((int32_t)pid > 0) {
		m.pid = m.thread ? ckpt_common_vtid(d, (pid_t)pid)
				 : ckpt_common_vpid(d, (pid_t)pid);
		if (m.pid == 0)
			return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
				"a pidfd of a process outside the session");
	}
	return ckpt_pack(&m.base, body, e);
}

/* The builder's number of a thread or process of the image, 0 if there is none. */
static pid_t target_of(struct ckpt_build *b, const Pb__PidFd *m)
{
	struct ckpt_build_thread *t = ckpt_build_thread(b, m->pid);
	struct ckpt_build_proc *p = ckpt_build_proc(b, m->pid);

	if (m->pid == 1)
		return b->world->init_pid;
	if (m->thread && t)
		return t->tid;
	return p ? p->pid : 0;
}

static int open_dead(struct err *e)
{
	pid_t child = fork();
	int fd, error;

	if (child < 0)
		return err_errno(e, -errno, "fork");
	if (child == 0)
		_exit(0);
	/* Not reaped yet, so the number is the child's. */
	fd = sys_pidfd_open(child, 0);
	error = errno;
	waitpid(child, NULL, __WALL);
	return fd < 0 ? err_errno(e, -error, "pidfd_open") : fd;
}

static int make(struct ckpt_build *b, const Pb__PidFd *m, struct err *e)
{
	pid_t target = m->pid ? target_of(b, m) : 0;
	_cleanup_close_ int fd = -1;
	int r;

	if (m->pid && target == 0)
		return err_set(e, ERR_IMAGE, -EBADMSG, "a pidfd of %d, which is not in the image",
			m->pid);
	if (target) {
		fd = sys_pidfd_open(target, m->thread ? FLAG_THREAD : 0);
		if (fd < 0)
			return err_errno(e, -errno, "pidfd_open of %d", m->pid);
	} else {
		fd = open_dead(e);
		if (fd < 0)
			return fd;
	}
	r = ckpt_common_restore(b, fd, m->common, e);
	return r < 0 ? r : take_fd(&fd);
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__PidFd *m = pb__pid_fd__unpack(NULL, r->len, r->body);
	int fd = m && m->common ? make(b, m, e) : ckpt_common_bad(r, e);

	if (m)
		pb__pid_fd__free_unpacked(m, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__PidFd *m = pb__pid_fd__unpack(NULL, len, body);

	if (!m)
		fputs("unreadable", out);
	else
		fprintf(out, "%s %d", m->thread ? "thread" : "process", m->pid);
	if (m)
		pb__pid_fd__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_pidfd = {
	.number = PROTO_KIND_PIDFD,
	.name = "pidfd",
	.scope = CKPT_FILE,
	.claim = claim,
	.dump = dump,
	.create = create,
	.show = show,
};
