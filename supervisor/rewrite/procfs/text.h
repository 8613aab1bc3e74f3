/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procfs/text - files of /proc that have numbers of tasks in them, with the session's in their
 * place.
 *
 * proc(5), and fs/proc/array.c, fs/locks.c and kernel/pid.c of the kernel for the forms.  A number
 * that is no task of the session becomes 0, which is what a pid namespace shows of those outside;
 * lines and entries that are about such a task alone are left out where the kernel leaves them out.
 * Everything else is copied as it is, so that what newer kernels add is there, too.
 *
 * The rewriter shows in a task's state as well: who stands in one of its stops runs as far as the
 * session can know, and who asks for his own state runs, although he waits for this very answer.
 */
#ifndef SUPERVISOR_REWRITE_PROCFS_TEXT_H
#define SUPERVISOR_REWRITE_PROCFS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct buf;
struct numbers;

struct procfs_facts {
	const struct numbers *numbers;
	bool stopped; /* by a signal: the session's, not a stop of the rewriter's */
	bool asks;    /* it is the one that reads */
	const struct host_names *host; /* NULL: the host's own */
	int64_t boottime_ns; /* the session's boot time less the host's */
	const struct procfs_ids *ids; /* of a status: NULL where they are the host's */
	/* What the session calls a path of the host's (procfs_ops.session_path). */
	int (*session_path)(void *arg, const char *host, char *buf, size_t size);
	bool (*is_hosts)(void *arg, const char *path); /* procfs_ops.is_hosts */
	void *arg;
};

struct procfs_ids {
	uint32_t uid[4], gid[4]; /* real, effective, saved, of the file system */
	const gid_t *groups;
	size_t n_groups;
	bool has_caps;	  /* else the host's are right */
	uint64_t caps[5]; /* inheritable, permitted, effective, bounding, ambient */
};

/* Appends @text, rewritten, to @out; the caller looks at buf_error. */
typedef void procfs_text_fn(const struct procfs_facts *f, const char *text, struct buf *out);

procfs_text_fn procfs_text_status;   /* PID/status */
procfs_text_fn procfs_text_stat;     /* PID/stat */
procfs_text_fn procfs_text_children; /* PID/task/TID/children */
procfs_text_fn procfs_text_sched;    /* PID/sched */
procfs_text_fn procfs_text_timers;   /* PID/timers */
procfs_text_fn procfs_text_maps;     /* PID/maps, PID/smaps */
procfs_text_fn procfs_text_fdinfo;   /* PID/fdinfo/FD */
/*
 * PID/mounts, PID/mountstats: what is mounted where the session sees it.  PID/mountinfo is the
 * host's: who waits for mounts does so by that, in an epoll, which takes no copy.
 */
procfs_text_fn procfs_text_mounts, procfs_text_mountstats;
procfs_text_fn procfs_text_locks;    /* locks */
procfs_text_fn procfs_text_pid_max;  /* sys/kernel/pid_max */
procfs_text_fn procfs_text_uptime;   /* uptime */
procfs_text_fn procfs_text_hostname, procfs_text_domainname; /* sys/kernel/ */

/*
 * From the text of a PID/status: does @tracer trace it, or is it a zombie that has its parent in
 * the table? So it is nobody who has been given the number of somebody who was.
 */
bool procfs_text_is_ours(const struct numbers *numbers, const char *status, pid_t tracer);

#endif
