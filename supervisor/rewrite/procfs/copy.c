// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in procfs/copy.h. */
#include "supervisor/rewrite/procfs/copy.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "supervisor/rewrite/tasks.h"
#include "supervisor/rewrite/users/caps.h"
#include "supervisor/rewrite/users/users.h"

#define COPY_MAX (16u << 20) /* of one file; /proc/locks of a busy host has a megabyte */
#define SEALS	 (F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

#ifndef MFD_NOEXEC_SEAL /* linux/memfd.h, 6.3 */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* By its name procfs_of_copy knows it again. */
static int make_file(const char *below)
{
	char name[249] = "/proc/"; /* as long as memfd_create(2) takes */
	int fd;

	memcpy(name + strlen(name), below, MIN(strlen(below), sizeof(name) - strlen(name) - 1));
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	return fd < 0 ? -errno : fd;
}

static int open_again(int fd, int flags)
{
	char self[64];
	int again;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	again = open(self, flags | O_CLOEXEC);
	return again < 0 ? -errno : again;
}

static int write_and_seal(int fd, const struct buf *text)
{
	int r = io_write_full(fd, text->data, text->len);

	if (r == 0 && (fchmod(fd, 0444) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0))
		r = -errno;
	return r;
}

static void find_ids(const struct rewrite_users *us, const struct task *task,
	struct procfs_ids *ret, gid_t groups[USERS_MAX_GROUPS])
{
	struct task_caps c;
	struct users u;

	rewrite_users_load(us, task->host, &u);
	c = users_caps_of(task, &u);
	*ret = (struct procfs_ids){
		.uid = {u.uid.real, u.uid.effective, u.uid.saved, u.uid.effective},
		.gid = {u.gid.real, u.gid.effective, u.gid.saved, u.gid.effective},
		.groups = groups,
		.n_groups = rewrite_users_groups(us, &u, groups),
		.has_caps = us->root,
		.caps = {c.inheritable, c.permitted, c.effective, c.bounding, c.ambient}};
}

static int read_host(const struct procfs *p, const struct task *asker, const struct procfs_node *n,
	struct buf *text)
{
	_cleanup_buf_ struct buf was = BUF_INIT;
	struct procfs_facts facts = {
		.numbers = p->tasks->numbers,
		.stopped = n->task && n->task->stop_signal,
		.asks = n->task == asker,
		.host = p->ops->host,
		.boottime_ns = p->ops->boottime_ns,
		.session_path = p->ops->session_path,
		.is_hosts = p->ops->is_hosts,
		.arg = p->ops->arg,
	};
	gid_t groups[USERS_MAX_GROUPS];
	struct procfs_ids ids;
	int r = io_read_file(n->dir, n->host, COPY_MAX, &was);

	if (r < 0)
		return r == -ESRCH ? -ENOENT : r;
	if (!buf_cstr(&was))
		return -ENOMEM;
	if (p->tasks->users && n->task && n->row->text == procfs_text_status) {
		find_ids(p->tasks->users, n->task, &ids, groups);
		facts.ids = &ids;
	}
	n->row->text(&facts, buf_cstr(&was), text);
	return buf_error(text);
}

static int make_text(const struct procfs *p, const struct task *asker, const struct procfs_node *n,
	struct buf *text)
{
	return n->row->sort == PROCFS_IPC
		       ? p->ops->sysvipc(p->ops->arg, strchr(n->path, '/') + 1, text)
		       : read_host(p, asker, n, text);
}

int procfs_copy_open(const struct procfs *p, const struct task *asker, const struct procfs_node *n)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r = make_text(p, asker, n, &text);
	_cleanup_close_ int fd = r < 0 ? -1 : make_file(n->path);

	if (r == 0)
		r = fd < 0 ? fd : write_and_seal(fd, &text);
	return r < 0 ? r : open_again(fd, O_RDONLY);
}

bool procfs_copy_differs(const struct procfs *p, const struct procfs_node *n)
{
	_cleanup_buf_ struct buf was = BUF_INIT, text = BUF_INIT;
	const struct procfs_facts facts = {.is_hosts = p->ops->is_hosts, .arg = p->ops->arg};

	/* Read once: a mount that comes between two readings is no difference. */
	if (io_read_file(n->dir, n->host, COPY_MAX, &was) < 0 || !buf_cstr(&was))
		return false;
	n->row->text(&facts, buf_cstr(&was), &text);
	return !buf_error(&text) &&
	       (was.len != text.len || memcmp(was.data, text.data, text.len) != 0);
}

int procfs_copy_blank(const struct procfs_node *n)
{
	_cleanup_close_ int fd = make_file(n->path);

	return fd < 0 ? take_fd(&fd) : open_again(fd, O_RDONLY);
}

int procfs_copy_fill(const struct procfs *p, const struct procfs_node *n, int fd)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_close_ int again = -1;
	int seals = fcntl(fd, F_GET_SEALS), r;

	if (seals < 0 || seals & F_SEAL_WRITE)
		return 0;
	r = make_text(p, NULL, n, &text);
	again = r < 0 ? r : open_again(fd, O_WRONLY);
	return again < 0 ? take_fd(&again) : write_and_seal(again, &text);
}
