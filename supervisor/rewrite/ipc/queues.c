// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * POSIX message queues by name: mq_open and mq_unlink are answered.
 *
 * Theory of operation
 *
 * The rewriter opens the queue that stands for the name on the host and puts the descriptor into
 * the task in one step with the answer (SECCOMP_ADDFD_FLAG_SEND): nobody sees one without the
 * other.
 *
 * The kernel opens queues for us as it would for the task: same user, same limits of the user; the
 * task's umask is put on for that long.  What mq_open(2) says of a bad name is said here
 * (lookup_noperm() of the kernel's fs/namei.c), for the kernel gets to see good ones only.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <mqueue.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/ipc/names.h"
#include "supervisor/rewrite/rewrite.h"

/* The kernel's struct mq_attr: linux/mqueue.h, which can't be included beside mqueue.h. */
struct kernel_attr {
	long flags, max_messages, max_size, messages, reserved[4];
};

/* ---- what the task says ---------------------------------------------------------------------- */

/* Up to the end of a page at a time: nothing need be behind it. */
static int read_name(const struct question *q, uint64_t addr, char ret[PATH_MAX])
{
	for (size_t at = 0; at < PATH_MAX;) {
		size_t n = MIN(PAGE_SIZE - (addr + at) % PAGE_SIZE, PATH_MAX - at);

		if (question_read(q, addr + at, ret + at, n) < 0)
			return -EFAULT;
		if (memchr(ret + at, '\0', n))
			return 0;
		at += n;
	}
	return -ENAMETOOLONG;
}

static int read_attr(const struct question *q, uint64_t addr, struct kernel_attr *ret)
{
	int32_t narrow[8]; /* compat_mq_attr */

	if (q->nr32 < 0)
		return question_read(q, addr, ret, sizeof(*ret));
	*ret = (struct kernel_attr){0};
	if (question_read(q, addr, narrow, sizeof(narrow)) < 0)
		return -EFAULT;
	ret->flags = narrow[0];
	ret->max_messages = narrow[1];
	ret->max_size = narrow[2];
	ret->messages = narrow[3];
	return 0;
}

static int check_name(const char *name)
{
	if (!name[0])
		return -ENOENT;
	if (strchr(name, '/') || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EACCES;
	return strlen(name) > NAME_MAX ? -ENAMETOOLONG : 0;
}

/* Of the task's /proc/PID/status. */
static mode_t asker_umask(const struct question *q)
{
	char path[32], text[512] = "";
	_cleanup_close_ int fd = -1;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/status", q->tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return 077;
	at = strstr(text, "\nUmask:");
	return at ? (mode_t)strtoul(at + strlen("\nUmask:"), NULL, 8) & 0777 : 077;
}

/* ---- on the host ----------------------------------------------------------------------------- */

static int host_open(const struct question *q, int slot, int flags, struct kernel_attr *attr)
{
	char name[IPC_HOST_NAME];
	long fd;

	if (flags & O_CREAT)
		umask(asker_umask(q));
	ipc_names_host_queue(ipc_names_tag(q->rw->ipc), slot, name);
	fd = syscall(SYS_mq_open, name, flags, (mode_t)q->data->args[2], attr);
	return fd < 0 ? -errno : (int)fd;
}

static int host_unlink(const struct question *q, int slot)
{
	char name[IPC_HOST_NAME];

	ipc_names_host_queue(ipc_names_tag(q->rw->ipc), slot, name);
	return syscall(SYS_mq_unlink, name) < 0 ? -errno : 0;
}

/* ---- the calls ------------------------------------------------------------------------------- */

/* The value of the call, which is on its way already when this returns one. */
static int put_into_task(struct question *q, int fd)
{
	struct seccomp_notif_addfd add = {.id = q->id,
		.flags = SECCOMP_ADDFD_FLAG_SEND,
		.srcfd = (uint32_t)fd,
		.newfd_flags = O_CLOEXEC}; /* do_mq_open() of the kernel's ipc/mqueue.c */
	int r = ioctl(q->rw->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &add);

	if (r < 0)
		return -errno;
	q->sent = true;
	return r;
}

static long open_there(struct question *q, int slot)
{
	_cleanup_close_ int fd = host_open(q, slot, question_arg(q, 1) & ~O_CREAT, NULL);

	return fd < 0 ? fd : put_into_task(q, fd);
}

/* A slot whose name a stranger has on the host is left as one that nobody can name. */
static int make_host(
	const struct question *q, const char *name, struct kernel_attr *attr, int *ret_slot)
{
	for (int tries = 0; tries < 16; tries++) {
		int slot = ipc_names_add_queue(q->rw->ipc, name), fd;

		if (slot < 0)
			return slot;
		*ret_slot = slot;
		fd = host_open(q, slot, question_arg(q, 1) | O_EXCL, attr);
		if (fd != -EEXIST) {
			if (fd < 0)
				ipc_names_remove_queue(q->rw->ipc, slot);
			return fd;
		}
		ipc_names_spoil_queue(q->rw->ipc, slot);
	}
	return -ENOSPC;
}

static long make(struct question *q, const char *name, struct kernel_attr *attr)
{
	int slot;
	_cleanup_close_ int fd = make_host(q, name, attr, &slot);
	int r = fd < 0 ? fd : put_into_task(q, fd);

	if (fd >= 0 && r < 0) {
		host_unlink(q, slot);
		ipc_names_remove_queue(q->rw->ipc, slot);
	}
	return r;
}

static long on_open(struct question *q)
{
	struct kernel_attr attr;
	bool create = question_arg(q, 1) & O_CREAT, told = create && q->data->args[3];
	char name[PATH_MAX];
	int slot, r;

	/* As the kernel: first the attributes. */
	if (told && read_attr(q, q->data->args[3], &attr) < 0)
		return -EFAULT;
	r = read_name(q, q->data->args[0], name);
	if (r == 0)
		r = check_name(name);
	if (r < 0)
		return r;
	slot = ipc_names_find_queue(q->rw->ipc, name);
	if (slot >= 0 && create && question_arg(q, 1) & O_EXCL)
		return -EEXIST;
	if (slot >= 0)
		return open_there(q, slot);
	return create ? make(q, name, told ? &attr : NULL) : -ENOENT;
}

static long on_unlink(struct question *q)
{
	char name[PATH_MAX];
	int slot, r = read_name(q, q->data->args[0], name);

	if (r == 0)
		r = check_name(name);
	slot = r < 0 ? r : ipc_names_find_queue(q->rw->ipc, name);
	if (slot < 0)
		return slot;
	r = host_unlink(q, slot);
	if (r == 0 || r == -ENOENT)
		ipc_names_remove_queue(q->rw->ipc, slot);
	return r;
}

const struct answer_row ipc_queue_answers[] = {
	{SYS_mq_open, on_open},
	{SYS_mq_unlink, on_unlink},
};
const size_t ipc_queue_n_answers = ARRAY_SIZE(ipc_queue_answers);
