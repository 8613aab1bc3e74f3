/* SPDX-License-Identifier: GPL-2.0-or-later */
/* kinds - the ops table at the bottom of every file of ckpt/kinds/, by name.  See ckpt/kind.h. */
#ifndef CKPT_KINDS_KINDS_H
#define CKPT_KINDS_KINDS_H

#include "ckpt/kind.h"

extern const struct ckpt_kind ckpt_kind_cpu;
extern const struct ckpt_kind ckpt_kind_creds;
extern const struct ckpt_kind ckpt_kind_device;
extern const struct ckpt_kind ckpt_kind_devshm;
extern const struct ckpt_kind ckpt_kind_epoll;
extern const struct ckpt_kind ckpt_kind_eventfd;
extern const struct ckpt_kind ckpt_kind_fdtable;
extern const struct ckpt_kind ckpt_kind_fifo;
extern const struct ckpt_kind ckpt_kind_fs;
extern const struct ckpt_kind ckpt_kind_ghost;
extern const struct ckpt_kind ckpt_kind_inotify;
extern const struct ckpt_kind ckpt_kind_itimers;
extern const struct ckpt_kind ckpt_kind_memfd;
extern const struct ckpt_kind ckpt_kind_mm;
extern const struct ckpt_kind ckpt_kind_refs;
extern const struct ckpt_kind ckpt_kind_mqfile;
extern const struct ckpt_kind ckpt_kind_mqueue;
extern const struct ckpt_kind ckpt_kind_nested;
extern const struct ckpt_kind ckpt_kind_settings;
extern const struct ckpt_kind ckpt_kind_netlink;
extern const struct ckpt_kind ckpt_kind_nsfile;
extern const struct ckpt_kind ckpt_kind_pending;
extern const struct ckpt_kind ckpt_kind_pidfd;
extern const struct ckpt_kind ckpt_kind_pipe;
extern const struct ckpt_kind ckpt_kind_posix_locks;
extern const struct ckpt_kind ckpt_kind_posix_timers;
extern const struct ckpt_kind ckpt_kind_prctl;
extern const struct ckpt_kind ckpt_kind_procfile;
extern const struct ckpt_kind ckpt_kind_pty;
extern const struct ckpt_kind ckpt_kind_regular;
extern const struct ckpt_kind ckpt_kind_rlimits;
extern const struct ckpt_kind ckpt_kind_sched;
extern const struct ckpt_kind ckpt_kind_seccomp;
extern const struct ckpt_kind ckpt_kind_shared_mem;
extern const struct ckpt_kind ckpt_kind_sigactions;
extern const struct ckpt_kind ckpt_kind_signalfd;
extern const struct ckpt_kind ckpt_kind_sysv_msg;
extern const struct ckpt_kind ckpt_kind_sysv_sem;
extern const struct ckpt_kind ckpt_kind_sysv_shm;
extern const struct ckpt_kind ckpt_kind_task;
extern const struct ckpt_kind ckpt_kind_tcp;
extern const struct ckpt_kind ckpt_kind_thread;
extern const struct ckpt_kind ckpt_kind_timerfd;
extern const struct ckpt_kind ckpt_kind_tcreds;
extern const struct ckpt_kind ckpt_kind_tpending;
extern const struct ckpt_kind ckpt_kind_tty;
extern const struct ckpt_kind ckpt_kind_udp;
extern const struct ckpt_kind ckpt_kind_unix;

/* What the record of the CPU needs is asked before the session stops. */
void ckpt_cpu_ahead(void);

#endif
