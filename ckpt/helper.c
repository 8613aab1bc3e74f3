// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in helper.h. */
#include "ckpt/helper.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/remote/remote.h"
#include "ckpt/remote/trace.h"
#include "ckpt/survey/survey.h"

int ckpt_helper_start(struct remote *maker, uint64_t flags, struct err *e)
{
	int i = remote_add(maker, SYS_clone, flags, 0, 0, 0, 0, REMOTE_CHILD);

	return i < 0 ? err_errno(e, i, "a new task") : remote_start(maker, false, e);
}

int ckpt_helper_wait(
	struct remote *maker, uint64_t flags, struct remote **ret, long *ret_vpid, struct err *e)
{
	int r = remote_wait(maker, e);
	long vpid = remote_result(maker, remote_count(maker) - 1);
	pid_t born;

	if (r >= 0 && vpid < 0)
		r = err_errno(e, (int)vpid, "task %d makes a new task", remote_tid(maker));
	if (r < 0)
		return r;
	*ret_vpid = vpid;
	born = remote_born(maker, 0);
	if (born <= 0)
		return err_set(e, ERR_FAILED, -ESRCH, "the new task was not seen");
	/* Its own calls take the place of this one, where it was told. */
	r = flags & CLONE_VM ? remote_note_child(maker, vpid, e) : 0;
	if (r >= 0)
		r = flags & CLONE_VM ? remote_open_thread(ret, born, maker, e)
				     : remote_open_child(ret, born, maker, e);
	/* Nobody would know of it, and somebody might let it go on. */
	if (r < 0) {
		trace_kill(born);
		waitpid(born, NULL, __WALL);
	}
	return r;
}

int ckpt_helper_clone(
	struct remote *maker, uint64_t flags, struct remote **ret, long *ret_vpid, struct err *e)
{
	int r = ckpt_helper_start(maker, flags, e);

	return r < 0 ? r : ckpt_helper_wait(maker, flags, ret, ret_vpid, e);
}

int ckpt_helper_end_start(struct remote *helper)
{
	int i = remote_add(helper, SYS_exit_group, 0, 0, 0, 0, 0, 0);

	return i < 0 ? i : remote_start(helper, false, NULL);
}

void ckpt_helper_end_wait(struct remote *helper, int started)
{
	pid_t tid = remote_tid(helper);

	if (started < 0 || remote_wait(helper, NULL) != -ESRCH) {
		trace_kill(tid);
		waitpid(tid, NULL, __WALL);
	}
	remote_forget(helper);
}

void ckpt_helper_end(struct remote *helper)
{
	ckpt_helper_end_wait(helper, ckpt_helper_end_start(helper));
}

int ckpt_helper_borrow(struct ckpt_proc *p, struct ckpt_helper *ret, int *ret_pidfd, struct err *e)
{
	struct ckpt_helper h = {0};
	int r = ckpt_proc_remote(p, &h.maker, e);

	if (r >= 0)
		r = ckpt_helper_clone(
			h.maker, CLONE_VM | CLONE_FS | CLONE_FILES, &h.task, &h.vpid, e);
	if (r < 0)
		return r;
	*ret_pidfd = sys_pidfd_open(remote_tid(h.task), 0);
	if (*ret_pidfd < 0) {
		r = err_errno(e, -errno, "pidfd_open");
		ckpt_helper_return(&h, NULL);
		return r;
	}
	*ret = h;
	return 0;
}

int ckpt_helper_return(struct ckpt_helper *h, struct err *e)
{
	struct remote *maker = take_ptr(h->maker);
	int r;

	if (!maker)
		return 0;
	ckpt_helper_end(take_ptr(h->task));
	r = remote_must(maker, NULL, e, SYS_wait4, (uint64_t)h->vpid, 0, __WALL, 0, 0, 0);
	return r < 0 ? r : remote_note_child(maker, 0, e);
}
