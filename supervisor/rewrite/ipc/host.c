// SPDX-License-Identifier: GPL-2.0-or-later
/* The C library's functions are passed by: they know no SHM_STAT_ANY, and turn errors around. */
#include "supervisor/rewrite/ipc/host.h"

#include <errno.h>
#include <unistd.h>

#include "base/base.h"

#ifndef SHM_STAT_ANY
#define SHM_STAT_ANY 15
#endif
#ifndef SEM_STAT_ANY
#define SEM_STAT_ANY 20
#endif
#ifndef MSG_STAT_ANY
#define MSG_STAT_ANY 13
#endif

static int result(long r)
{
	return r < 0 ? -errno : (int)r;
}

int ipc_host_get(enum ipc_sort sort, key_t key, uint64_t size, int flags)
{
	switch (sort) {
	case IPC_SHM:
		return result(syscall(SYS_shmget, key, size, flags));
	case IPC_SEM:
		return result(syscall(SYS_semget, key, (int)size, flags));
	default:
		return result(syscall(SYS_msgget, key, flags));
	}
}

int ipc_host_make(enum ipc_sort sort, key_t key, uint64_t size, int flags)
{
	return key == IPC_PRIVATE ? -EINVAL
				  : ipc_host_get(sort, key, size, flags | IPC_CREAT | IPC_EXCL);
}

int ipc_host_ctl(enum ipc_sort sort, int id, int command, void *arg)
{
	switch (sort) {
	case IPC_SHM:
		return result(syscall(SYS_shmctl, id, command, arg));
	case IPC_SEM:
		return result(syscall(SYS_semctl, id, 0, command, arg));
	default:
		return result(syscall(SYS_msgctl, id, command, arg));
	}
}

int ipc_host_stat(enum ipc_sort sort, int id, union ipc_status *ret)
{
	static const int any[IPC_SORTS] = {SHM_STAT_ANY, SEM_STAT_ANY, MSG_STAT_ANY};
	int r = ipc_host_ctl(sort, id, IPC_STAT, ret);

	if (r != -EACCES)
		return r;
	/* By its place in the kernel's table; somebody else's may be there by now. */
	return ipc_host_ctl(sort, id & (IPC_SLOTS - 1), any[sort], ret) == id ? 0 : -EACCES;
}

bool ipc_host_has(struct ipc_names *n, enum ipc_sort sort, struct ipc_object *o)
{
	union ipc_status status;
	int r = ipc_host_ctl(sort, o->host, IPC_STAT, &status);

	if (r == -EINVAL || r == -EIDRM) {
		ipc_names_remove(n, sort, o);
		return false;
	}
	if (r == 0 && sort == IPC_SHM && status.perm.mode & SHM_DEST)
		ipc_names_set_removed(n, o);
	return true;
}
