// SPDX-License-Identifier: GPL-2.0-or-later
/* The table of kinds.  Order matters only within a stage: what others need comes first. */
#include "ckpt/kinds/kinds.h"

const struct ckpt_kind *const ckpt_kinds[] = {
	&ckpt_kind_cpu, /* first: on the wrong host nothing else need be tried */
	&ckpt_kind_seccomp,
	&ckpt_kind_nested,
	&ckpt_kind_task,
	/* descriptors are in the tasks before anything else is linked */
	&ckpt_kind_fdtable,
	&ckpt_kind_posix_locks,
	&ckpt_kind_fs,
	&ckpt_kind_settings, /* before what they allow */
	&ckpt_kind_sysv_shm, /* before memory that is attached to it */
	&ckpt_kind_sysv_sem,
	&ckpt_kind_sysv_msg,
	&ckpt_kind_mqueue,
	&ckpt_kind_devshm, /* before open files in it */
	&ckpt_kind_unix, /* its check takes up what is in flight, for the checks of others */
	&ckpt_kind_mqfile, /* before deleted files: it knows its own */
	&ckpt_kind_memfd,
	&ckpt_kind_procfile, /* before deleted files: what stands in for one has no name */
	&ckpt_kind_ghost,
	&ckpt_kind_regular,
	&ckpt_kind_pty,
	&ckpt_kind_tty,
	&ckpt_kind_pipe,
	&ckpt_kind_fifo,
	&ckpt_kind_tcp,
	&ckpt_kind_udp,
	&ckpt_kind_netlink,
	&ckpt_kind_eventfd,
	&ckpt_kind_timerfd,
	&ckpt_kind_signalfd,
	&ckpt_kind_pidfd,
	&ckpt_kind_nsfile,
	&ckpt_kind_device, /* what no other kind has claimed */
	/* last of the files: the others are its targets */
	&ckpt_kind_epoll,
	/* no file is opened or closed behind its back any more */
	&ckpt_kind_inotify,
	&ckpt_kind_shared_mem, /* after the open files that carry such memory */
	&ckpt_kind_mm,
	&ckpt_kind_refs,
	&ckpt_kind_sigactions,
	&ckpt_kind_sched,
	&ckpt_kind_rlimits,
	/* from here on a task has no rights beyond its own */
	&ckpt_kind_creds,
	&ckpt_kind_tcreds,
	&ckpt_kind_prctl,
	/* clocks run from here on */
	&ckpt_kind_posix_timers,
	&ckpt_kind_itimers,
	&ckpt_kind_pending,
	&ckpt_kind_tpending,
	/* the very last: registers */
	&ckpt_kind_thread,
	NULL,
};
const size_t ckpt_n_kinds = ARRAY_SIZE(ckpt_kinds) - 1;

const struct ckpt_kind *ckpt_kind_by_number(uint32_t number)
{
	for (size_t i = 0; i < ckpt_n_kinds; i++)
		if ((uint32_t)ckpt_kinds[i]->number == number)
			return ckpt_kinds[i];
	return NULL;
}
