// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The end of a frozen session's tasks.
 *
 * A task gives its memory back by itself when it dies, on one CPU: 80 ms a gigabyte of small pages.
 * process_mrelease(2) (Linux 5.15) has us do the same at the same time; the two leave each other
 * what they have not got to, and it takes half as long.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/remote/trace.h"
#include "ckpt/survey/survey.h"

#define MUCH_KB (32u << 10)

static void release_memory(const struct ckpt_proc *p)
{
	if (p->pidfd >= 0 && p->mm == p->vpid && p->status.vm_rss_kb >= MUCH_KB)
		syscall(SYS_process_mrelease, p->pidfd, 0);
}

int ckpt_bind(struct ckpt_dump *d, bool bound, struct err *e)
{
	unsigned long options = TRACE_OPTIONS | (bound ? PTRACE_O_EXITKILL : 0);

	for (size_t i = 0; i < d->n_procs && !d->world->names; i++) {
		struct ckpt_proc *p = d->procs[i];

		for (size_t k = 0; k < p->n_threads && p->state != CKPT_ZOMBIE; k++)
			if (ptrace(PTRACE_SETOPTIONS, p->threads[k]->tid, 0, options) < 0)
				return err_errno(e, -errno, "task %d (%s)", p->threads[k]->vtid,
					p->status.comm);
	}
	return 0;
}

void ckpt_kill(struct ckpt_dump *d)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (p->pidfd < 0)
			p->pidfd = sys_pidfd_open(p->pid, 0);
		if (p->pidfd >= 0)
			sys_pidfd_send_signal(p->pidfd, SIGKILL);
	}
	for (size_t i = 0; i < d->n_procs; i++)
		release_memory(d->procs[i]);
}
