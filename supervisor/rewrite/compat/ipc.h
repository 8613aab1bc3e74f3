/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * compat/ipc - what shmctl(2) and its like tell and take in memory of 32-bit programs.  Private to
 * rewrite/. The kernel's asm-generic/compat.h and asm/compat.h.
 */
#ifndef SUPERVISOR_REWRITE_COMPAT_IPC_H
#define SUPERVISOR_REWRITE_COMPAT_IPC_H

#include <stddef.h>
#include <stdint.h>

#include "supervisor/rewrite/ipc/host.h"

struct compat_ipc_perm {
	int32_t key;
	uint32_t uid, gid, cuid, cgid, mode;
	uint16_t seq, pad;
	uint32_t unused[2];
};

struct compat_shmid {
	struct compat_ipc_perm perm;
	uint32_t segsz, atime, atime_high, dtime, dtime_high, ctime, ctime_high;
	int32_t cpid, lpid;
	uint32_t nattch, unused[2];
};

struct compat_semid {
	struct compat_ipc_perm perm;
	uint32_t otime, otime_high, ctime, ctime_high, nsems, unused[2];
};

struct compat_msqid {
	struct compat_ipc_perm perm;
	uint32_t stime, stime_high, rtime, rtime_high, ctime, ctime_high, cbytes, qnum, qbytes;
	int32_t lspid, lrpid;
	uint32_t unused[2];
};

union compat_ipc_status {
	struct compat_ipc_perm perm;
	struct compat_shmid shm;
	struct compat_semid sem;
	struct compat_msqid msg;
};

struct compat_shminfo {
	uint32_t shmmax, shmmin, shmmni, shmseg, shmall, unused[4];
};

struct compat_shm_info {
	int32_t used_ids;
	uint32_t tot, rss, swp, attempts, successes;
};

size_t compat_ipc_size(enum ipc_sort sort);
/* IPC_STAT's answer. */
void compat_ipc_tell(enum ipc_sort sort, const union ipc_status *s, union compat_ipc_status *ret);
/* What IPC_SET says: owner, mode, a queue's size; the rest is zero. */
void compat_ipc_take(enum ipc_sort sort, const union compat_ipc_status *s, union ipc_status *ret);
struct compat_shminfo compat_ipc_limits(const struct shminfo *info);
struct compat_shm_info compat_ipc_totals(const struct shm_info *info);

#endif
