// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in lease.h. */
#include "supervisor/disk/lease.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/base.h"

#define BCACHEFS_MAGIC 0xca451a4e
#define ZFS_MAGIC      0x2fc12fc1

struct lease {
	int image;
	struct event *sigio;
	bool asked_for;
	void (*broken)(void *ctx);
	void *ctx;
};

static void on_sigio(evutil_socket_t sig, short what, void *ctx)
{
	struct lease *l = ctx;

	if (l->asked_for)
		return;
	l->asked_for = true;
	l->broken(l->ctx);
}

/* Does only this kernel write to files of this kind? */
static bool is_local(int fd)
{
	static const unsigned long local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,
		BTRFS_SUPER_MAGIC, TMPFS_MAGIC, F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC,
		BCACHEFS_MAGIC, ZFS_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs) < 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if ((unsigned long)fs.f_type == local[i])
			return true;
	return false;
}

static int take(struct lease *l, struct event_base *loop, int image)
{
	struct stat st;

	if (fstat(image, &st) < 0 || !S_ISREG(st.st_mode) ||
		(fcntl(image, F_GETFL) & O_ACCMODE) != O_RDONLY)
		return -EINVAL;
	if (!is_local(image))
		return -EOPNOTSUPP;
	l->image = fcntl(image, F_DUPFD_CLOEXEC, 0);
	l->sigio = evsignal_new(loop, SIGIO, on_sigio, l);
	if (l->image < 0 || !l->sigio || event_add(l->sigio, NULL) < 0)
		return -ENOMEM;
	return fcntl(l->image, F_SETLEASE, F_RDLCK) < 0 ? -errno : 0;
}

int lease_take(struct lease **ret, struct event_base *loop, int image, void (*broken)(void *ctx),
	void *ctx)
{
	struct lease *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->image = -1;
	l->broken = broken;
	l->ctx = ctx;
	r = take(l, loop, image);
	if (r < 0) {
		lease_give_up(l);
		return r;
	}
	*ret = l;
	return 0;
}

void lease_give_up(struct lease *l)
{
	if (!l)
		return;
	/* The descriptor may have copies elsewhere. */
	if (l->image >= 0)
		fcntl(l->image, F_SETLEASE, F_UNLCK);
	close_fd(l->image);
	/* Last: a SIGIO that is under way must find its handler. */
	if (l->sigio)
		event_free(l->sigio);
	free(l);
}

int lease_fd(const struct lease *l)
{
	return l->image;
}

bool lease_is_whole(const struct lease *l)
{
	return !l->asked_for;
}

long lease_seconds(void)
{
	return proc_read_setting("/proc/sys/fs/lease-break-time");
}
