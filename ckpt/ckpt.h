/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ckpt - freeze, survey, write, read, rebuild.  The room's public header.
 *
 * The supervisor forks a *worker* for each operation and calls these functions in it: a worker
 * may wait, trace and use as much memory as it likes, while the supervisor goes on answering.
 * A worker that dies takes nothing with it (ckpt/remote heals the tasks it was holding).
 *
 *      suspend, snapshot:  worker: ckpt_freeze -> ckpt_write -> "written" -> supervisor decides
 *                          commit (renames the image, ends the session) or abort -> ckpt_thaw
 *      resume:             supervisor makes an empty world with a pid 1 in it;
 *                          worker joins it, ckpt_restore fills it, nothing runs before the
 *                          whole image is verified; ckpt_restore_release lets go
 */
#ifndef CKPT_CKPT_H
#define CKPT_CKPT_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct buf;
struct err;
struct proto_reader;
struct proto_writer;
struct sockaddr;

/*
 * An edge: a descriptor of the session whose other end the supervisor holds (stdin, stdout, stderr
 * as pipes, or a terminal as the master of a pty of the session's devpts).
 */
struct ckpt_edge {
	char name[16]; /* "stdin", "stdout", "stderr", "tty", "exec3.stdin", ... */
	int fd;	       /* the supervisor's end, borrowed */
};

/*
 * Of a session whose numbers of tasks no pid namespace holds.  Whoever rewrites them traces all its
 * tasks from birth: he stops them, lets them go, and knows which number is whose.  The caller of
 * ckpt_freeze or ckpt_restore is this process, in the thread that traces.
 */
struct ckpt_held {
	pid_t pid, tid; /* on the host */
	bool zombie;
	int stop_signal; /* of the group stop that it is in, else 0 */
};
/* A bit for each (capabilities(7)). */
struct ckpt_caps {
	uint64_t inheritable, permitted, effective, bounding, ambient;
};
struct ckpt_names {
	/*
	 * What the session calls host task (or group, or session) @host, and the other way; 0:
	 * nobody.
	 */
	pid_t (*number)(void *ctx, pid_t host);
	pid_t (*host)(void *ctx, pid_t number);
	/* All tasks but pid 1, zombies among them; *ret is freed by the caller.  -ENOMEM. */
	ssize_t (*list)(void *ctx, struct ckpt_held **ret);
	/* All tasks are brought into a PTRACE_EVENT_STOP, or some are (ERR_UNFREEZABLE); and let go
	 * again, in either case. */
	int (*stop)(void *ctx, uint32_t deadline_ms, struct err *e);
	void (*release)(void *ctx);
	/*
	 * @host is a copy of a task's memory, traced by the caller, and stands still also when the
	 * session runs: whatever it shows is no business of the session's.  -ENOMEM.
	 */
	int (*copied)(void *ctx, pid_t host);
	/* The caller ends it now.  False: it has ended, and its number may be another's. */
	bool (*uncopied)(void *ctx, pid_t host);
	/*
	 * Processes share no memory, descriptors, directories, handlers or SEM_UNDO if what this
	 * says of them differs.
	 */
	pid_t (*kin)(void *ctx, pid_t host);
	/* May a thread of process @host have descriptors or a working directory of its own? */
	bool (*parted)(void *ctx, pid_t host);
	/* Makes what the kernel says of a signal that waits what the session is to see. */
	void (*signal)(void *ctx, siginfo_t *info);
	/*
	 * The capabilities of thread @host as the session has them; false: those that the kernel
	 * tells are.
	 */
	bool (*caps)(void *ctx, pid_t host, struct ckpt_caps *ret);
	/*
	 * While all stand still, lend_call(lend_key, N) of a task gives it descriptor N of the
	 * caller's process, as the lowest that is free and close-on-exec (ckpt/lend.h).
	 */
	long lend_call;
	uint64_t lend_key;
	/*
	 * Restore.  The builder has made @host, a thread of @pid or that process, which stands
	 * still: it is @number.  -EEXIST: that is another's.
	 */
	int (*born)(void *ctx, pid_t number, pid_t host, pid_t pid);
	/*
	 * It has ended; its number may still be a zombie's or a group's.  Or it ended as the first
	 * thread of a process that goes on.
	 */
	void (*ended)(void *ctx, pid_t host, bool headless);
	/* It stands in a group stop by this signal, and will after the release. */
	void (*stopped)(void *ctx, pid_t host, int sig);
	/* Makes a siginfo_t as the session is to see it what has to be queued for that. */
	void (*queued)(void *ctx, void *siginfo);
	/*
	 * Thread @host has these capabilities as far as it can know, which may be none that the
	 * kernel knows of.
	 */
	void (*give_caps)(void *ctx, pid_t host, const struct ckpt_caps *caps);
	/* Process @host has been made to share nothing with any other. */
	void (*alone)(void *ctx, pid_t host);
	/*
	 * What the kernel remembers of @host, a child of the builder's, is @number's to the
	 * session.
	 */
	void (*alias)(void *ctx, pid_t number, pid_t host);
	/* Who is born next has a number behind this one. */
	void (*last)(void *ctx, pid_t number);
	/* What it takes the host for, as long as the session stands still. */
	const char *(*host_name)(void *ctx);
	void *ctx;
};

/*
 * Of a session whose paths no mount namespace holds: what it calls a path of the host, and where on
 * the host a path of its is.  0 or a negative errno.
 */
struct ckpt_paths {
	int (*say)(void *ctx, const char *host, char ret[PATH_MAX]);
	int (*host)(void *ctx, const char *path, char ret[PATH_MAX]);
	/* What leads to the host's path @host, too, and fits into the name of a unix socket. */
	int (*socket)(void *ctx, const char *host, char *ret, size_t size);
	/*
	 * Opens a path of the session's which is no file of the host's (@copied: a copy
	 * will do); -ENOTSUP: it is one.  And makes it say, when all has been rebuilt, what it says
	 * of that.
	 */
	int (*open)(void *ctx, const char *path, int flags, bool copied);
	int (*settle)(void *ctx, const char *path, int fd);
	/* Where on the host the program @path is to be executed; NULL: where it is. */
	int (*program)(void *ctx, const char *path, char ret[PATH_MAX]);
	/*
	 * The host's terminal /dev/pts/@host has been made, and is /dev/pts/@number to the session.
	 */
	int (*terminal)(void *ctx, unsigned number, unsigned host);
	void *ctx;
};

/*
 * Of a session whose System V objects and message queues no ipc namespace holds: they are the
 * host's, the caller's, under names of their own.  While all tasks are stopped the caller may read
 * and change each of them, whatever its mode says.
 */
enum ckpt_ipc_sort { CKPT_IPC_SHM, CKPT_IPC_SEM, CKPT_IPC_MSG };
struct ckpt_ipc_object {
	int host, id; /* what the host calls it, and the session */
	int key;      /* the session's */
	unsigned mode;
};
#define CKPT_IPC_HOST_NAME 64
struct ckpt_ipc_names {
	/* All objects of a sort; *ret is freed by the caller.  -ENOMEM. */
	ssize_t (*list)(void *ctx, enum ckpt_ipc_sort sort, struct ckpt_ipc_object **ret);
	/*
	 * What the host calls the session's @name, or (@back) the session the host's.  -1: nothing.
	 */
	int (*look_up)(void *ctx, enum ckpt_ipc_sort sort, int name, bool back);
	/*
	 * A new one with these names, @size in bytes or semaphores, @flags as for shmget(2).  The
	 * host's id.
	 */
	int (*make)(void *ctx, enum ckpt_ipc_sort sort, const struct ckpt_ipc_object *o,
		uint64_t size, struct err *e);
	/*
	 * What the session calls queue @i (from 0), and the host, without slashes: 1, 0 if there is
	 * none now, -ENOENT: nor behind it.
	 */
	int (*queue)(
		void *ctx, unsigned i, const char **ret_name, char ret_host[CKPT_IPC_HOST_NAME]);
	/* What the host is to call the new queue @name. */
	int (*make_queue)(
		void *ctx, const char *name, char ret_host[CKPT_IPC_HOST_NAME], struct err *e);
	/* The session calls no queue @name any more. */
	void (*forget_queue)(void *ctx, const char *name);
	void *ctx;
};

/*
 * What has to be added to the host's clocks to give those of a session which no time namespace
 * carries on: CLOCK_MONOTONIC and its like (RAW, COARSE), and CLOCK_BOOTTIME.  Nanoseconds, less
 * than CKPT_CLOCK_MAX.
 */
#define CKPT_CLOCK_MAX (1LL << 61)
struct ckpt_clocks {
	int64_t monotonic_ns, boottime_ns;
};
/*
 * Makes clock_gettime of @vdso, a copy of this host's, add them, for programs that have not begun.
 * -ENOSYS: this one can't be understood.
 */
int ckpt_vdso_continue(uint8_t *vdso, size_t len, const struct ckpt_clocks *c);

/* The ways into a session, all owned by the supervisor and borrowed for the operation. */
struct ckpt_world {
	const char *name; /* of the session */
	pid_t init_pid;	  /* host pid of the session's pid 1 */
	int init_pidfd;
	int root_fd; /* O_PATH descriptor of the session's / */
	const struct ckpt_paths *paths; /* what else is between its paths and the host's; NULL: nothing */
	int proc_fd; /* the session's own /proc */
	int ns_user, ns_pid, ns_mnt, ns_net, ns_ipc, ns_uts, ns_time; /* -1: none of its own */
	const struct ckpt_names *names; /* NULL: the pid namespace has them */
	const struct ckpt_ipc_names *ipc; /* NULL: the ipc namespace has them, if there is one */
	struct ckpt_clocks clocks;	  /* 0: the time namespace carries them on, if there is one */
	bool copy; /* restore only: of a session that may run, too (ckpt_where_alone) */
	/*
	 * Its connections lead out by a network of its own whose other end somebody holds back
	 * while it stands still (options.hold): they are kept (ckpt/kinds/tcp_live.h).  Restore:
	 * unless they are lost, another's by now; then they come back as reset.
	 */
	bool vnet, vnet_lost;
	bool io_uring; /* its programs may use it: some of their threads are the kernel's own */
	bool wired; /* its own network leads out by an interface whose connections nobody keeps */
	uint8_t net4[4], net6[16]; /* its addresses in a virtual network; 0: none */
	uid_t uid;			/* the caller's uid inside (0 for --user root) */
	gid_t gid;
	const struct ckpt_edge *edges;
	size_t n_edges;

	/* Restore only.  Asks pid 1 for a blank child with number @vpid (under our filter, all
	 * descriptors closed, waiting in pause()); returns its host pid. */
	int (*seed)(void *ctx, pid_t vpid, pid_t *ret_pid, struct err *e);
	/* Restore only.  Gives the supervisor its end of edge @name; @fd is borrowed. */
	int (*edge)(void *ctx, const char *name, int fd, struct err *e);
	/* Restore only.  What the supervisor needs for ckpt_filters_load.  May be NULL. */
	int (*filters)(void *ctx, const void *record, size_t len, struct err *e);
	/*
	 * Restore only, of a virtual network: the connection from @client to the session's @port,
	 * which no program had accepted, is to begin anew.  May be NULL.
	 */
	int (*redo)(void *ctx, const struct sockaddr *client, uint16_t port, struct err *e);
	void *ctx;
};

/* What --json reports.  Times in nanoseconds. */
#define CKPT_MAX_STAGES 16
struct ckpt_report {
	uint64_t
		frozen_ns; /* from the first task stopped to the last one running again; of a suspend,
			     * to the decision that the session is its image now */
	uint64_t total_ns;
	uint64_t bytes; /* of the image */
	uint32_t tasks; /* processes and threads */
	uint32_t processes;
	uint64_t pages; /* written or restored */
	uint32_t rounds; /* of memory copied ahead */
	uint64_t ahead;	 /* bytes of it */
	const char *tracker, *note; /* how writes were told; what is not as asked for, or was; or NULL */
	struct {
		const char *name; /* static */
		uint64_t ns;
	} stages[CKPT_MAX_STAGES];
	size_t n_stages;
};
/*
 * Adds a stage that began at @since (io_now_ns) and ends now; beyond the room for them it is lost.
 */
void ckpt_report_stage(struct ckpt_report *r, const char *name, uint64_t since);

/* What becomes of connections that lead out of the session (ckpt/kinds/outside.h). */
enum ckpt_outside { CKPT_OUTSIDE_REFUSE, CKPT_OUTSIDE_CLOSE, CKPT_OUTSIDE_RESET };
/* "refuse", "close" or "reset"; anything else is -EINVAL. */
int ckpt_outside_parse(const char *text, enum ckpt_outside *ret);

/*
 * Seccomp filters which programs of the session have given themselves (ckpt/filters.h).  The
 * supervisor keeps one table for each session; it goes with the image.
 */
struct ckpt_filters;
struct sock_filter;
struct ckpt_filters *ckpt_filters_new(void);
void ckpt_filters_free(struct ckpt_filters *f);
/*
 * The number of the filter @code on top of filter @parent (0: none), the same for the same; of
 * @flags those that are about the moment of installing are left out. 0: there is no room; then, or
 * when something is installed that can't be known, say so:
 */
uint32_t ckpt_filters_add(struct ckpt_filters *f, uint32_t parent, uint32_t flags,
	const struct sock_filter *code, size_t n);
void ckpt_filters_set_foreign(struct ckpt_filters *f);
/*
 * All tasks of the session are traced by podrun for life: a filter that hands calls to a tracer
 * finds none.
 */
void ckpt_filters_set_untraced(struct ckpt_filters *f);
/* 0 if @code can be recorded, -EINVAL if the kernel will refuse it, -E2BIG if it is too long. */
int ckpt_filters_try(const struct sock_filter *code, size_t n);
/* What takes the place of SECCOMP_SET_MODE_STRICT, which no task that has filters can have. */
const struct sock_filter *ckpt_filters_strict(size_t *ret_n);
/* Adds what a record of an image says. */
int ckpt_filters_load(struct ckpt_filters *f, const void *record, size_t len, struct err *e);

/*
 * Has a task install a filter, in the place of its own call: for a worker.  @tid waits in a call
 * which has been notified; @answer gives it any answer; when it stops behind the call,
 * @number is asked for the number of the new filter on top of filter @parent, and the task
 * goes on with the result of seccomp(2).  -EPERM: somebody else traces it.
 */
struct ckpt_install {
	pid_t tid, init_pid;
	uint32_t flags; /* as the task gave them */
	const struct sock_filter *code;
	size_t n;
	bool strict; /* it stands for strict mode, which a task that has a filter can't have */
	void (*answer)(void *ctx); /* not of ckpt_install_traced */
	uint32_t (*number)(void *ctx, uint32_t parent);
	/*
	 * What the session calls a thread that the result tells (SECCOMP_FILTER_FLAG_TSYNC).  NULL:
	 * what the kernel does.
	 */
	pid_t (*thread)(void *ctx, pid_t tid);
	void *ctx;
};
int ckpt_install(const struct ckpt_install *i, struct err *e);
/*
 * The same for one that the calling thread traces, which stands in a PTRACE_EVENT_SECCOMP of that
 * call and in a PTRACE_EVENT_STOP afterwards; *ret_signal is that of the group stop it is in, else
 * SIGTRAP.  Of a session that is untraced (ckpt_filters_set_untraced).  -ENOMEM: it still stands
 * where it was; -ETIMEDOUT: it will stop, behind the call that failed; -ESRCH: it has ended, and
 * may have been waited for, or another thread has called exec and stands in its event under that
 * number.
 */
int ckpt_install_traced(const struct ckpt_install *i, int *ret_signal, struct err *e);
/*
 * Has @tid, in a stop, made a call for which a filter of its own kills it?  Then it stands still
 * only on its way to its end, and must be let go on: no call can be made in it any more.  @proc_fd:
 * /proc of the host.
 */
bool ckpt_doomed(int proc_fd, pid_t tid);

/*
 * Memory that is copied while the session runs, in rounds, until so little is written to between
 * two that the session need not stand still for long when the rest is copied (ckpt/memory/ahead.c).
 */
struct ckpt_ahead_progress {
	uint32_t round;	   /* from 1 */
	uint64_t done, all; /* bytes of this round */
	uint64_t rate;	    /* bytes the line takes in a second; 0: not known yet */
	uint64_t dirty;	    /* bytes the session writes to in a second; 0: not known yet */
};
struct ckpt_ahead_options {
	const char *tracker; /* a way of ckpt/memory/track.h; NULL or empty: the best there is */
	uint32_t rounds;     /* at most; 0: 30 */
	uint32_t seconds;    /* at most; 0: no limit */
	uint64_t rest;	     /* bytes that are little enough; 0: what the line takes in 20 ms */
	bool force;	     /* stop then, however much is left; else it is a failure */
	void (*progress)(void *ctx, const struct ckpt_ahead_progress *p); /* some times in a second */
	void *ctx;
};
struct ckpt_ahead;
struct ckpt_dump_options;
/*
 * Writes AHEAD frames to @out, which has been opened and not written to.  -EOPNOTSUPP (ERR_HOST):
 * this host can't tell which memory was written to; nothing has been written.  A rest that does not
 * become small is a failure that says how fast the session writes and the line takes.  @ret is
 * given to the freeze, in its options.
 */
int ckpt_ahead_copy(struct ckpt_ahead **ret, const struct ckpt_world *w,
	const struct ckpt_dump_options *o, const struct ckpt_ahead_options *a,
	struct proto_writer *out, struct err *e);
/* Rounds, and bytes that were copied; the name of the way. */
void ckpt_ahead_sum(const struct ckpt_ahead *a, uint32_t *ret_rounds, uint64_t *ret_bytes,
	const char **ret_way);
void ckpt_ahead_free(struct ckpt_ahead *a);

/* The other end of it: such pages in a file of ours, until a record says which of them count. */
struct ckpt_arrived;
/*
 * Takes all AHEAD frames that come next in @in.  *ret is NULL if there are none.  @dir: where a
 * nameless file may be made.
 */
int ckpt_arrived_read(
	struct ckpt_arrived **ret, struct proto_reader *in, const char *dir, struct err *e);
/* The file as one that can't be written to: a descriptor of the caller's, or -errno. */
int ckpt_arrived_image(const struct ckpt_arrived *a);
void ckpt_arrived_free(struct ckpt_arrived *a);

/*
 * Images that another one refers to for pages which are as they were: a snapshot costs what has
 * changed since the last one (ckpt/base.c).
 */
struct ckpt_base;
/*
 * Dump: the image @name in directory @dir, and those it refers to itself.  -EINVAL where nothing
 * can be referred to, such as compressed pages.
 */
int ckpt_base_open(struct ckpt_base **ret, int dir, const char *name, struct err *e);
/* Writes the records that stand in front. */
int ckpt_base_write(const struct ckpt_base *b, struct proto_writer *out, struct err *e);
/*
 * Resume: takes the records that come next in @in; *ret is NULL if there are none.  The files are
 * in @dir (-1: this is a stream, and there is none).  @check says whether an image in a file is
 * whole and may be trusted.
 */
int ckpt_base_read(struct ckpt_base **ret, struct proto_reader *in, int dir,
	int (*check)(void *ctx, int fd, struct err *e), void *ctx, struct err *e);
/*
 * Calls @each with the name of each file that the image @fd refers to; its offset does not matter.
 */
int ckpt_base_names(int fd, void (*each)(void *ctx, const char *name), void *ctx, struct err *e);
void ckpt_base_free(struct ckpt_base *b);
/* A file that is to go while others refer to it has this behind its name. */
#define CKPT_BASE_SUFFIX ".base"

/* What becomes of packets; each HOLD has one HELD, before the PASS. */
enum ckpt_packets {
	CKPT_PACKETS_HOLD, /* they are to be held back */
	CKPT_PACKETS_HELD, /* waits until that is in effect */
	CKPT_PACKETS_PASS  /* they go on */
};

enum ckpt_phase { CKPT_RUNS, CKPT_STOPPING, CKPT_STANDS };

#define CKPT_VISITED_SIZE 64
struct ckpt_dump_options {
	enum ckpt_outside outside;
	bool snapshot; /* the session runs on: private memory may be written after the thaw */
	bool portable; /* its programs are held to what every CPU has (kind CPU) */
	/* Where a unix socket of the session listens to those who look at it from outside, or "":
	 * who has gone before being accepted there has left nothing. */
	char visited[CKPT_VISITED_SIZE];
	uint32_t deadline_ms; /* for tasks that can't be stopped at once (vfork, D state), and for
			       * what is in the way for the moment only (-EAGAIN) */
	/* System calls which the session's filter notifies, borrowed: one that is waiting for its
	 * answer is done again whatever happens. */
	const long *notified;
	size_t n_notified;
	const struct ckpt_filters *filters; /* borrowed; NULL: nothing is known */
	struct ckpt_base *base; /* of a snapshot: borrowed, NULL: it stands alone */
	struct ckpt_ahead *ahead; /* what was copied ahead, into the same image; borrowed, NULL: nothing */
	/* Tasks are about to be stopped, have all stopped, are about to run.  May be NULL. */
	void (*phase)(void *ctx, enum ckpt_phase phase);
	/* A task was told to stop and does not: one whose call has been notified is to be answered
	 * with -ERESTARTNOINTR now.  May be NULL. */
	void (*unhold)(void *ctx, pid_t tid);
	void *ctx;
	/*
	 * Of a session with a virtual network: packets from and to it are held back once its tasks
	 * stand still, which takes effect before its sockets are looked at, and go on just before its
	 * tasks run.  May be NULL.
	 */
	int (*hold)(void *ctx, enum ckpt_packets what, struct err *e);
	void *hold_ctx;
	/* With snapshot: the session runs on, ckpt_write is not at its end.  May be NULL. */
	void (*thawed)(void *ctx);
	void *thawed_ctx;
	/*
	 * Where the calling thread has to look after the session's tasks (ckpt_names) as soon as
	 * they run: has @work(@arg) done in another, and returns when it is.  NULL: there is
	 * nothing to look after.
	 */
	void (*meanwhile)(void *ctx, void (*work)(void *arg), void *arg);
	void *meanwhile_ctx;
};
/* @work(@arg), which takes long and traces nobody, while the session runs. */
void ckpt_meanwhile(const struct ckpt_dump_options *o, void (*work)(void *arg), void *arg);

struct ckpt_dump; /* a frozen session */

/* quiesce + survey + plan: stops every task and finds out everything.  On failure the session
 * runs as before.  ERR_UNFREEZABLE names task, descriptor and object. */
int ckpt_freeze(struct ckpt_dump **ret, const struct ckpt_world *w,
	const struct ckpt_dump_options *o, struct err *e);
/* Says after the freeze what becomes of what leads out: ckpt_write refuses then. */
void ckpt_dump_set_outside(struct ckpt_dump *d, enum ckpt_outside outside);
/* Says what the image refers to, before it is written. */
void ckpt_dump_set_base(struct ckpt_dump *d, struct ckpt_base *base);
/*
 * Memory in which what is written of a snapshot, while the session stands still, can be kept
 * (proto_writer_put_aside): the caller's from now on, whole pages of mmap(2).  What will be wanted
 * of it has been touched before, as far as it was known.  NULL: there is none.
 */
void *ckpt_dump_room(struct ckpt_dump *d, size_t *ret_size);
/* Writes all records and pages (the caller has opened the writer, written its own records, and
 * finishes it).  With options.snapshot the session runs again long before it returns. */
int ckpt_write(struct ckpt_dump *d, struct proto_writer *out, struct err *e);
/*
 * @bound: from now on the tasks end if the process that has frozen them does, for the session may
 * run elsewhere.  Else they run on then, as they do from the beginning.  ERR_FAILED: a task has
 * ended.
 */
int ckpt_bind(struct ckpt_dump *d, bool bound, struct err *e);
/*
 * Before a session that was written is killed: its open files are its tasks' alone from now on, but
 * for those that ckpt_leave is to look at.  They are closed for the last time by many tasks at once
 * then, which for an inotify instance means to wait 15 ms for the kernel.
 */
void ckpt_let_go(struct ckpt_dump *d);
/* Kills every task of a session that was written, after its pid 1; whoever traces them waits. */
void ckpt_kill(struct ckpt_dump *d);
/*
 * After the tasks of a session that was written have been killed: closes what is left of it, but for
 * connections of a network of its own, which end with this process: a thousand take 10 ms.
 */
void ckpt_leave(struct ckpt_dump *d);
/* Lets the session run on exactly as before and frees @d.  NULL is fine. */
int ckpt_thaw(struct ckpt_dump *d, struct err *e);
/*
 * After a worker has been killed: removes what it has left in the tasks, for which the session
 * stops for a moment.
 */
int ckpt_mend(const struct ckpt_world *w, const struct ckpt_dump_options *o, struct err *e);
/* Up to now, if the session is still frozen. */
const struct ckpt_report *ckpt_dump_report(struct ckpt_dump *d);

/*
 * A resume may map long runs of memory from its image at first and turn them into memory of the
 * session's own while it runs (ckpt/memory/mapped.c, convert.c): the first look at the image, what
 * the session's filter must hold, the pieces that were mapped, and the converter.
 */
struct ckpt_range {
	uint64_t start, end;
};
#define CKPT_MAX_MAPPED 8
struct ckpt_mapped {
	int image;	  /* a regular file that nobody can change now; borrowed */
	bool arrived;	  /* it is that of what came ahead, whose offsets are not the image's */
	uint32_t cookie;  /* by this the filter knows calls of ours */
	uint64_t min_run; /* bytes */
	struct ckpt_range ranges[CKPT_MAX_MAPPED];
	size_t n;	/* 0: nothing is to be mapped */
	uint64_t bytes; /* at most so much */
	uint64_t room;	/* of addresses */
};
struct ckpt_mapped_options {
	uint32_t cookie;
	uint64_t min_run, min_total, max_total; /* bytes */
};
/* @image: whole and genuine.  The descriptor's offset is where the image begins, and stays. */
int ckpt_mapped_survey(
	struct ckpt_mapped *ret, int image, const struct ckpt_mapped_options *o, struct err *e);
/* The same of what came ahead, @image being its file (ckpt_arrived_image).  -ENOMEM. */
int ckpt_mapped_arrived(struct ckpt_mapped *ret, const struct ckpt_arrived *arrived,
	const struct ckpt_mapped_options *o, int image);

struct ckpt_piece {
	uint64_t addr, len;
	uint64_t offset; /* in the file */
	uint64_t spare;	 /* where its own memory waits */
	uint64_t area;	 /* of the executor's pages, which stay until all is converted */
	pid_t vpid;
	uint32_t prot, flags; /* of mmap(2) */
};

struct ckpt_frozen; /* tasks that are being stopped */
/* True if @tid is one of them, and has been told so. */
bool ckpt_frozen_expects(const struct ckpt_frozen *f, pid_t tid);

struct ckpt_convert_options {
	const struct ckpt_world *world; /* init_pid, proc_fd */
	int image;
	uint32_t cookie;
	const struct ckpt_piece *pieces; /* sorted by offset; borrowed */
	size_t n_pieces;
	const long *notified;
	size_t n_notified;
	/*
	 * Is called while tasks are waited for; ckpt_frozen_expects(f, tid) says whether a task
	 * whose call is being held must be made to do it again, or it would never stop.
	 */
	void (*waiting)(void *ctx, const struct ckpt_frozen *f);
	void *ctx;
};
struct ckpt_convert;
int ckpt_convert_new(
	struct ckpt_convert **ret, const struct ckpt_convert_options *o, struct err *e);
void ckpt_convert_free(struct ckpt_convert *c);
/*
 * Stops one process for some milliseconds and converts a part of what it has mapped.  1: go on, 0:
 * nothing is left in any process, -EAGAIN: not now, somebody can't be stopped.
 */
int ckpt_convert_step(struct ckpt_convert *c, struct err *e);
/* The same for all of [@start, @end) in the memory of @tid.  0 when nothing of it is mapped. */
int ckpt_convert_range(
	struct ckpt_convert *c, pid_t tid, uint64_t start, uint64_t end, struct err *e);

struct ckpt_restore_options {
	const struct ckpt_mapped *mapped; /* with proto_read_options.leave_long; NULL */
	/* The image file, mapped, with leave_long: where data of memory is to be had; NULL.
	 * Borrowed. */
	const uint8_t *left;
	size_t left_len;
	const struct ckpt_base *base; /* images it refers to; borrowed, NULL: none */
	struct ckpt_arrived *arrived; /* what was copied ahead; borrowed, NULL: nothing */
	bool paused; /* leave the tasks stopped by SIGSTOP-free freeze; see ckpt_restore_release */
	/*
	 * NULL, or set by the release once the tasks go on whatever happens to the caller: in
	 * memory shared with whoever wants to know after its death.
	 */
	_Atomic bool *going;
};
struct ckpt_build; /* a session being rebuilt */

/*
 * Reads the records that follow the caller's own from @in: what can be done before there is a world.
 * What @o borrows, and @in, are there until the release.
 */
int ckpt_restore_begin(struct ckpt_build **ret, struct proto_reader *in,
	const struct ckpt_restore_options *o, struct err *e);
/*
 * Rebuilds the session inside @w.  The calling process joins the session's namespaces and stays
 * there: call it in a forked, single-threaded worker.  When it returns 0 every task exists, is
 * stopped, and has everything; the image has been verified to its end.  On failure everything made
 * is undone, and @b is freed.
 */
int ckpt_restore(struct ckpt_build *b, const struct ckpt_world *w, struct err *e);
/* Lets all tasks run and frees @b. */
int ckpt_restore_release(struct ckpt_build *b, struct err *e);
/* Kills everything made and frees @b.  NULL is fine. */
void ckpt_restore_undo(struct ckpt_build *b);
const struct ckpt_report *ckpt_build_report(const struct ckpt_build *b);
/* What has been mapped from the image, in the order of the stream; valid until the release. */
const struct ckpt_piece *ckpt_build_pieces(const struct ckpt_build *b, size_t *ret_n);

/* The name of its host as the session knows it now, which it may have changed. */
#define CKPT_HOST_NAME 65 /* of utsname(2), with its end */
int ckpt_host_name(const struct ckpt_world *w, char ret[CKPT_HOST_NAME], struct err *e);

/*
 * The session's own files.  The supervisor keeps them in one directory (`files`: the overlays'
 * upper layers, /tmp, /run) outside every namespace; they are written in front of everything else
 * and unpacked before the session's mounts are made.  @frozen says what it has open; NULL: nothing.
 */
int ckpt_tree_write(
	int dirfd, const struct ckpt_dump *frozen, struct proto_writer *out, struct err *e);
/* The same with the files beneath that the frozen session has in use, but for those at or below
 * @except (absolute paths: volumes). */
int ckpt_tree_write_all(int dirfd, const struct ckpt_dump *d, char *const *except, size_t n_except,
	struct proto_writer *out, struct err *e);
/*
 * Of a session that runs: the directories of its layer as a message, which is appended to @ret.  1
 * if it has anything else in it, or many.
 */
int ckpt_tree_layer(int dirfd, struct buf *ret, struct err *e);
/* Makes them, where nothing is yet. */
int ckpt_tree_make_layer(int dirfd, const void *layer, size_t len, struct err *e);
/*
 * @changed: NULL, and everything is made new; or there is what a session begins with already, and
 * *changed becomes true if its layers are not as they were there.
 */
int ckpt_tree_read(int dirfd, struct proto_reader *in, bool *changed, struct err *e);

/*
 * Stops the session for a moment and writes where every thread stands, with symbols where their
 * files can be read; with @json an array of threads with their frames.  Of @w only init_pid, names
 * and proc_fd (or -1) are looked at, of @o only the notified calls; NULL: there are none.
 */
int ckpt_stacks(const struct ckpt_world *w, const struct ckpt_dump_options *o, FILE *out, bool json,
	struct err *e);

/* One line per record, for `podrun image show`; with @json one object per record. */
int ckpt_image_show(struct proto_reader *in, FILE *out, bool json, struct err *e);
/* An image to be looked into. */
struct ckpt_image {
	struct proto_reader *in;
	int fd;			      /* what @in reads from; borrowed */
	const struct ckpt_base *base; /* images that it refers to (ckpt_base_read), or NULL */
};
/*
 * ELF core files, one for each process that is not a zombie: @path.VPID.  @told hears of each that
 * is complete. Pages of files that nobody had changed are not in them, as in the kernel's.
 * -EOPNOTSUPP: of a 32-bit program there is none; of all others there is one.
 */
int ckpt_image_core(const struct ckpt_image *image, const char *path,
	void (*told)(void *ctx, const char *path), void *ctx, struct err *e);
/* Where every thread of the image stands; with @json an array of threads with their frames. */
int ckpt_image_stacks(const struct ckpt_image *image, FILE *out, bool json, struct err *e);
/*
 * What is not the same in two images of a session: its processes with their mappings, memory,
 * descriptors and so on, and its own files.  1: something is, and was written; 0: nothing; with
 * @json always one object.
 */
int ckpt_image_diff(const struct ckpt_image *a, const struct ckpt_image *b, FILE *out, bool json,
	struct err *e);

#endif
