// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/rewrite/compat/ipc.h"

#include <limits.h>

#include "base/base.h"

_Static_assert(sizeof(struct compat_ipc_perm) == 36, "compat_ipc64_perm");
_Static_assert(sizeof(struct compat_shmid) == 84, "compat_shmid64_ds");
_Static_assert(sizeof(struct compat_semid) == 64, "compat_semid64_ds");
_Static_assert(sizeof(struct compat_msqid) == 88, "compat_msqid64_ds");

size_t compat_ipc_size(enum ipc_sort sort)
{
	static const size_t sizes[IPC_SORTS] = {sizeof(struct compat_shmid),
		sizeof(struct compat_semid), sizeof(struct compat_msqid)};

	return sizes[sort];
}

static void tell_perm(const struct ipc_perm *p, struct compat_ipc_perm *ret)
{
	*ret = (struct compat_ipc_perm){.key = p->__key,
		.uid = p->uid,
		.gid = p->gid,
		.cuid = p->cuid,
		.cgid = p->cgid,
		.mode = p->mode,
		.seq = p->__seq};
}

static void tell_time(time_t t, uint32_t *low, uint32_t *high)
{
	*low = (uint32_t)t;
	*high = (uint32_t)((uint64_t)t >> 32);
}

void compat_ipc_tell(enum ipc_sort sort, const union ipc_status *s, union compat_ipc_status *ret)
{
	*ret = (union compat_ipc_status){0};
	switch (sort) {
	case IPC_SHM:
		ret->shm.segsz = (uint32_t)s->shm.shm_segsz;
		tell_time(s->shm.shm_atime, &ret->shm.atime, &ret->shm.atime_high);
		tell_time(s->shm.shm_dtime, &ret->shm.dtime, &ret->shm.dtime_high);
		tell_time(s->shm.shm_ctime, &ret->shm.ctime, &ret->shm.ctime_high);
		ret->shm.cpid = s->shm.shm_cpid;
		ret->shm.lpid = s->shm.shm_lpid;
		ret->shm.nattch = (uint32_t)s->shm.shm_nattch;
		break;
	case IPC_SEM:
		tell_time(s->sem.sem_otime, &ret->sem.otime, &ret->sem.otime_high);
		tell_time(s->sem.sem_ctime, &ret->sem.ctime, &ret->sem.ctime_high);
		ret->sem.nsems = (uint32_t)s->sem.sem_nsems;
		break;
	case IPC_MSG:
		tell_time(s->msg.msg_stime, &ret->msg.stime, &ret->msg.stime_high);
		tell_time(s->msg.msg_rtime, &ret->msg.rtime, &ret->msg.rtime_high);
		tell_time(s->msg.msg_ctime, &ret->msg.ctime, &ret->msg.ctime_high);
		ret->msg.cbytes = (uint32_t)s->msg.__msg_cbytes;
		ret->msg.qnum = (uint32_t)s->msg.msg_qnum;
		ret->msg.qbytes = (uint32_t)s->msg.msg_qbytes;
		ret->msg.lspid = s->msg.msg_lspid;
		ret->msg.lrpid = s->msg.msg_lrpid;
		break;
	case IPC_SORTS:
		break;
	}
	tell_perm(&s->perm, &ret->perm);
}

void compat_ipc_take(enum ipc_sort sort, const union compat_ipc_status *s, union ipc_status *ret)
{
	*ret = (union ipc_status){0};
	if (sort == IPC_MSG)
		ret->msg.msg_qbytes = s->msg.qbytes;
	ret->perm.uid = s->perm.uid;
	ret->perm.gid = s->perm.gid;
	ret->perm.mode = (unsigned short)s->perm.mode;
}

/* As compat_sys_shmctl(): what is without bounds has those of an int. */
struct compat_shminfo compat_ipc_limits(const struct shminfo *info)
{
	return (struct compat_shminfo){
		.shmmax = (uint32_t)MIN(info->shmmax, (unsigned long)INT_MAX),
		.shmmin = (uint32_t)info->shmmin,
		.shmmni = (uint32_t)info->shmmni,
		.shmseg = (uint32_t)info->shmseg,
		.shmall = (uint32_t)info->shmall};
}

struct compat_shm_info compat_ipc_totals(const struct shm_info *info)
{
	return (struct compat_shm_info){.used_ids = info->used_ids,
		.tot = (uint32_t)info->shm_tot,
		.rss = (uint32_t)info->shm_rss,
		.swp = (uint32_t)info->shm_swp,
		.attempts = (uint32_t)info->swap_attempts,
		.successes = (uint32_t)info->swap_successes};
}
