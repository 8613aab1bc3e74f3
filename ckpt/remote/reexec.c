// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which program a process runs (/proc/PID/exe) can be said without executing it only by who has a
 * capability (PR_SET_MM_EXE_FILE).  Everybody else has to have it executed.
 */
#include "ckpt/remote/inside.h"

#include <errno.h>

/* Through the batch of one call to the stop behind a successful execve. */
static int execute(struct remote *r, const char *path, struct err *e)
{
	uint64_t argv[2] = {remote_put_str(r, path), 0};
	uint64_t at = remote_put(r, argv, sizeof(argv));
	struct user_regs_struct g;
	int k;

	if (!argv[0] || !at ||
		remote_add(r, SYS_execve, argv[0], at, at + sizeof(argv[0]), 0, 0, 0) < 0)
		return err_errno(e, -ENOSPC, "execute %s", path);
	k = remote_put_batch(r, e);
	g = remote_exec_regs(r, true);
	if (k == 0)
		k = remote_set_regs(r, &g, e);
	if (k == 0)
		k = remote_set_mask(r, ALL_SIGNALS, e);
	if (k == 0)
		k = remote_go_until(r, WANT_EXEC, e);
	if (k < 0 || r->execed)
		return k;
	return err_set(e, ERR_HOST, -ENOEXEC, "the program %s can't be executed", path);
}

int remote_reexec(
	struct remote **ret, const char *path, uint64_t hint, unsigned long options, struct err *e)
{
	struct remote *r = *ret;
	pid_t tid = r->tid;
	int proc_fd = r->proc_fd, k;

	ptrace(PTRACE_SETOPTIONS, tid, 0, options | PTRACE_O_TRACEEXEC);
	k = execute(r, path, e);
	if (k < 0)
		return k;
	ptrace(PTRACE_SETOPTIONS, tid, 0, options);
	if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) < 0)
		return remote_died(r, e);
	k = remote_go_until(r, WANT_EVENT_STOP, e);
	if (k < 0)
		return k;
	*ret = NULL;
	remote_forget(r);
	return remote_open(ret, proc_fd, tid, hint, e);
}
