/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kinds - the numbers of the kinds in images.  Never reused, never changed; new ones at the end
 * of their group.  proto/SPEC.md repeats this table.
 */
#ifndef PROTO_KINDS_H
#define PROTO_KINDS_H

enum proto_kind {
	PROTO_KIND_NONE = 0,

	/* written by the supervisor */
	PROTO_KIND_CONFIG = 1, /* what `run` was told: name, command, options */
	PROTO_KIND_TREE = 2,   /* the session's own files; DATA frames are their contents */
	PROTO_KIND_WORLD = 3,  /* host name, time offsets, mounts */
	PROTO_KIND_AHEAD = 4,  /* memory copied while the session ran; DATA frames are pages */
	PROTO_KIND_BASE = 5,   /* another image in whose file pages of this one are */

	/* SESSION */
	PROTO_KIND_SYSV_SHM = 10,
	PROTO_KIND_SYSV_SEM = 11,
	PROTO_KIND_SYSV_MSG = 12,
	PROTO_KIND_MQUEUE = 13,
	PROTO_KIND_DEVSHM = 14, /* contents of the session's tmpfs mounts */
	PROTO_KIND_SHARED_MEM = 15, /* anonymous shared memory, memfds and deleted files that are mapped */
	PROTO_KIND_CPU = 16,	    /* what the session may use of the CPU */
	PROTO_KIND_SECCOMP = 17,    /* filters that programs have installed for themselves */
	PROTO_KIND_NESTED = 18,	    /* namespaces that programs have made for themselves */
	PROTO_KIND_SETTINGS = 19,   /* what a root inside has set of its network and IPC */

	/* PROC */
	PROTO_KIND_TASK = 20, /* process: parents, groups, threads, zombies */
	PROTO_KIND_MM = 21,   /* mappings; DATA frames are pages, offset = address */
	PROTO_KIND_FDTABLE = 22,
	PROTO_KIND_FS = 23, /* cwd, root, umask */
	PROTO_KIND_SIGACTIONS = 24,
	PROTO_KIND_PENDING = 25, /* process-wide pending signals */
	PROTO_KIND_ITIMERS = 26,
	PROTO_KIND_POSIX_TIMERS = 27,
	PROTO_KIND_CREDS = 28,
	PROTO_KIND_RLIMITS = 29,
	PROTO_KIND_POSIX_LOCKS = 30,
	PROTO_KIND_PRCTL = 31, /* dumpable, child subreaper, pdeathsig, name, THP, ... */
	PROTO_KIND_REFS = 32,  /* pages that are in another image; DATA frames say where */

	/* THREAD */
	PROTO_KIND_THREAD = 40,	 /* registers, mask, altstack, robust list, rseq, clear_child_tid */
	PROTO_KIND_SCHED = 41,	 /* nice, policy, affinity, ioprio, personality */
	PROTO_KIND_TPENDING = 42, /* thread-directed pending signals */
	PROTO_KIND_TCREDS = 43,	 /* CREDS of a thread that has others than the first */

	/* FILE */
	PROTO_KIND_REGULAR = 60, /* files and directories by path, O_PATH, devices like /dev/null */
	PROTO_KIND_GHOST = 61,	 /* deleted files and O_TMPFILE; DATA frames are the contents */
	PROTO_KIND_PROCFILE = 62, /* open files of /proc and /sys */
	PROTO_KIND_PIPE = 63,
	PROTO_KIND_FIFO = 64,
	PROTO_KIND_EVENTFD = 65,
	PROTO_KIND_TIMERFD = 66,
	PROTO_KIND_SIGNALFD = 67,
	PROTO_KIND_EPOLL = 68,
	PROTO_KIND_PIDFD = 69,
	PROTO_KIND_INOTIFY = 70,
	PROTO_KIND_MEMFD = 71,
	PROTO_KIND_PTY = 72, /* both ends */
	PROTO_KIND_TTY = 73, /* /dev/tty */
	PROTO_KIND_UNIX = 74,
	PROTO_KIND_TCP = 75,
	PROTO_KIND_UDP = 76,
	PROTO_KIND_NETLINK = 77,
	PROTO_KIND_NSFILE = 78,
	PROTO_KIND_MQFILE = 79,
	PROTO_KIND_DEVICE = 80, /* device plug-ins */

	PROTO_KIND_MAX = 128
};

#endif
