// SPDX-License-Identifier: GPL-2.0-or-later
#include "ckpt/survey/opensock.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/base.h"

struct ckpt_opensock ckpt_opensock_begin(void)
{
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct ckpt_opensock s = {0};
	struct statx x;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &x) < 0 ||
		!(x.stx_mask & STATX_MNT_ID))
		return s;
	s.dev = st.st_dev;
	s.mnt_id = (int)x.stx_mnt_id;
	s.on = true;
	return s;
}

bool ckpt_opensock_look(
	const struct ckpt_opensock *s, int pidfd, int fd, struct ckpt_opensock_look *ret)
{
	_cleanup_close_ int ours = s->on ? sys_pidfd_getfd(pidfd, fd) : -1;
	struct stat st;
	int flags;

	if (ours < 0 || fstat(ours, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_dev != s->dev)
		return false;
	flags = fcntl(ours, F_GETFL);
	*ret = (struct ckpt_opensock_look){.ino = st.st_ino, .flags = flags & ~O_CLOEXEC};
	return flags >= 0;
}
