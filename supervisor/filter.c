// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include "base/base.h"

static int install(const struct sock_fprog *program)
{
	static const unsigned long flags[] = {
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		SECCOMP_FILTER_FLAG_NEW_LISTENER, /* before 5.19 */
	};
	int fd = -1;

	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], program);
		if (fd >= 0 || errno != EINVAL)
			break;
	}
	return fd < 0 ? -errno : fd;
}

int filter_install(const struct world_config *c, struct err *e)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_PODRUN_SENTINEL, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_SIZE(code), code};
	int fd = install(&program);

	if (fd == -EBUSY)
		return err_hint((err_set(e, ERR_HOST, fd, "cannot listen to the session's calls"), e),
			"podrun runs under another seccomp listener, of a container or sandbox");
	return fd < 0 ? err_errno(e, fd, "cannot install the session's filter") : fd;
}
