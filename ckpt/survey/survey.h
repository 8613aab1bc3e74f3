/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * survey - a frozen session as it was found: processes, threads, open files.
 *
 * Filled by ckpt/survey/survey.c after ckpt/freeze/freeze.c has stopped everything; read by the
 * kinds.  Virtual numbers (vpid, vtid, pgid, sid) are those of the session; `pid` and `tid` are the
 * host's, for ptrace and /proc.
 */
#ifndef CKPT_SURVEY_SURVEY_H
#define CKPT_SURVEY_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/kind.h"
#include "ckpt/memory/reserve.h"
#include "ckpt/nested/list.h"
#include "ckpt/remote/remote.h"

struct ckpt_before;
struct ckpt_foreseen;
struct ckpt_frozen;
struct ckpt_slots;

struct ckpt_thread {
	struct ckpt_proc *proc;
	pid_t tid, vtid;
	struct proc_status status;
	struct user_regs_struct regs; /* as stopped, before any remote call */
	struct remote *remote;	      /* opened on demand: ckpt_thread_remote */
	struct ckpt_asked *asked;     /* what it has told of itself, or NULL (ckpt/kinds/ask.h) */
	uint64_t asleep_ns; /* not run for so long when it was stopped; 0: unknown (freeze/restart.h) */
	bool slept;	    /* since it was met, before all that was looked at ahead */
	int own_filters;    /* seccomp filters that pid 1 does not have (ckpt/filters.h) */
};

/* How a process stood when it was stopped; group-stopped and zombie are states to keep. */
enum ckpt_state { CKPT_RUNNING, CKPT_STOPPED, CKPT_ZOMBIE };

/*
 * Left with the pages of a process (remote_note), or both: it has been made dumpable; it has made a
 * userfaultfd, which is still among its descriptors.
 */
#define CKPT_NOTE_CLOSED  1
#define CKPT_NOTE_WATCHED 2

struct ckpt_proc {
	const struct ckpt_dump *dump;
	pid_t pid, vpid;
	bool headless; /* its first thread has ended while others go on */
	pid_t look;    /* a thread that lives, for /proc and kcmp: `pid` unless it is headless */
	pid_t vppid; /* 1 for children of pid 1 */
	pid_t vpgid, vsid; /* 0: of a group or session whose number this session can't see */
	enum ckpt_state state;
	int stop_signal; /* of CKPT_STOPPED */
	struct proc_status status;
	struct ckpt_thread **threads; /* threads[0] is the leader, if that lives */
	size_t n_threads;
	struct proc_maps maps; /* with detail, unless outlined; empty for zombies */
	bool from_before;      /* they are from before it was stopped (memory/before.c) */
	bool guards_from_before; /* and so are memory_guards */
	bool outlined;	       /* its outline is still to tell the detail (memory/outline.c) */
	struct ckpt_mappings *mappings; /* what they are, as far as it was asked (memory/mapping.c) */
	struct buf memory_pages;    /* struct ckpt_run: its touched private pages (memory/space.c) */
	struct buf memory_guards;   /* and its guard pages */
	bool memory_scanned;	    /* they are known */
	bool memory_waits;	    /* only the guard pages are: its copy tells the rest (memory/space.c) */
	struct buf memory_kept;	    /* those that are as they were copied ahead, and not among them */
	struct remote *memory_copy; /* a forked copy of its memory, or NULL (memory/fork.c) */
	struct ckpt_aside *memory_aside; /* a copy that was not forked, or NULL (memory/aside.c) */
	bool memory_written;	    /* ahead of its turn */
	bool closed; /* not dumpable; it is while it is frozen (survey.c) */
	bool i386;   /* a 32-bit program */
	uint32_t program; /* the file that it runs, if that has no path any more (program.c) */
	int pidfd;

	/* The virtual pid of the first process (in order of vpid) sharing this thing with it;
	 * its own vpid when it is the first. */
	pid_t mm, files, fs, sighand;
	struct ckpt_ns_set ns; /* namespaces within the session's */

	struct ckpt_fd *fds; /* empty unless files == vpid */
	size_t n_fds;
};

/* One slot of a descriptor table. */
struct ckpt_fd {
	int fd;
	bool cloexec;
	bool unsure; /* whether it is (ckpt/survey/opensock.h) */
	bool locks; /* its fdinfo shows locks: the file's, or record locks of the table's process */
	struct ckpt_file *file;
};

/* One open file description. */
struct ckpt_file {
	uint32_t id;  /* from 1, in images */
	int fd;	      /* our duplicate, owned by the dump.  Shares offset and flags: put back
		       * whatever you change */
	char *link;   /* readlink of /proc/PID/fd/N: "/tmp/x (deleted)", "pipe:[123]" */
	char *fdinfo; /* text of /proc/PID/fdinfo/N */
	struct stat st;
	int flags;  /* F_GETFL */
	off_t pos;  /* from fdinfo */
	int mnt_id; /* from fdinfo */
	const struct ckpt_kind *kind;
	int domain, type, protocol; /* of a socket: socket(2); else 0 */
	bool net_known;
	uint32_t net; /* of a socket: the nested network namespace it belongs to; 0: the session's */
	struct ckpt_proc *holder; /* one that has it in its table at holder_fd; NULL for a file
				   * found in flight in a socket only */
	int holder_fd;
};

struct ckpt_dump {
	const struct ckpt_world *world;
	struct ckpt_dump_options options;
	struct ckpt_report report;
	int host_proc; /* the host's /proc */
	pid_t tracer;  /* of all tasks; 0 if they end with it (ckpt/careful.h) */
	size_t level;  /* of the session's numbers */
	struct ckpt_frozen *frozen; /* ckpt/freeze/freeze.h */

	struct ckpt_proc **procs; /* by vpid, without pid 1 */
	size_t n_procs;
	struct ckpt_slots *slots; /* of descriptor tables, until there are files (openfiles.c) */
	struct ckpt_file **files; /* by id: files[i]->id == i + 1 */
	size_t n_files;
	struct ckpt_nested *nested; /* number i is nested[i - 1] */
	size_t n_nested;

	const struct ckpt_foreseen *foreseen; /* while freezing: who was met before it; NULL */
	struct ckpt_before *before; /* while freezing: memory/before.c; NULL */
	struct ckpt_foreseen *spent_foreseen; /* these two are only to be freed, when there is time */
	struct ckpt_before *spent_before;
	struct ckpt_reserve reserve; /* for memory that can't be forked (memory/reserve.h) */
	struct ckpt_stash *stash;    /* contents to be written when it runs (memory/stash.h), or NULL */
	void *room; /* for what is written in the pause, or NULL (ckpt_dump_room) */
	int diag; /* while freezing: a socket from before it, of ckpt_sock_diag_open; -1 */
	bool has_tcp; /* likewise; there were sockets to be listed */
	struct ckpt_inet_diag_list *tcp; /* of the kind that takes it, once it is made; NULL */
	const struct buf *sending; /* while freezing: who sends much (kinds/tcp_drain.h), or NULL */
	bool hears;	/* and whether much comes in, while nobody does */
	bool hold_said; /* packets are to be held, and whether they are is still to be heard */
	struct buf found; /* names from before the freeze, and of lost files (kinds/find.h) */
	bool found_lost;
	struct proto_writer *out; /* while writing */
	struct ckpt_answers *answers; /* of the asks of kinds (ckpt/answers.h), while writing */
	void *kind_state[PROTO_KIND_MAX]; /* the kinds' own; freed with their forget, or free() */
};

/* ---- the steps of the survey, for ckpt/dump/dump.c, in this order
 * ------------------------------ */

/* Processes and threads of what was frozen. */
int ckpt_survey_tasks(struct ckpt_dump *d, const struct ckpt_frozen *f, struct err *e);
/* Which are 32-bit programs; before any call is made in one.  Refuses those that mix both
 * kinds of code (ckpt/code.h). */
int ckpt_survey_code(struct ckpt_dump *d, struct err *e);
/*
 * Which threads have seccomp filters of their own; no call can be made in one before.  Refuses
 * those whose filters may be unknown.
 */
int ckpt_survey_filters(struct ckpt_dump *d, struct err *e);
/* Which of them share memory, descriptor tables, directories and handlers
 * (ckpt/survey/sharing.c). */
int ckpt_survey_sharing(struct ckpt_dump *d, struct err *e);
/* Makes one dumpable, if it is not, until ckpt_survey_leave. */
int ckpt_survey_open_up(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e);
/*
 * Their memory maps; takes threads out of the vDSO.  Beside it @other of @d, which asks /proc
 * alone.
 */
int ckpt_survey_memory(struct ckpt_dump *d, int (*other)(struct ckpt_dump *d, struct err *e), struct err *e);
/*
 * Opens remotes of all that will be asked, as far as that can be done together; ckpt_thread_remote
 * opens the others.
 */
void ckpt_survey_enter(struct ckpt_dump *d);
/* Closes all remotes: the tasks are as they were frozen. */
void ckpt_survey_leave(struct ckpt_dump *d);
void ckpt_survey_free(struct ckpt_dump *d);

/* ---- for the kinds ------------------------------------------------------------------------ */

/* NULL if there is none; pid 1 is not among them. */
struct ckpt_proc *ckpt_proc_by_vpid(const struct ckpt_dump *d, pid_t vpid);
struct ckpt_proc *ckpt_proc_by_pid(const struct ckpt_dump *d, pid_t pid);

/*
 * By which number a call made in a task of @by means @p, of the same pid namespace or one inside.
 */
static inline pid_t ckpt_proc_number(const struct ckpt_proc *by, const struct ckpt_proc *p)
{
	const struct ckpt_dump *d = p->dump;
	size_t depth = ckpt_nested_depth(d->nested, d->n_nested, by->ns.ns[CKPT_NS_PID]);

	if (depth)
		return proc_at_level(p->status.ns_tgid, &p->status, d->level + depth);
	return d->world->names ? p->pid : p->vpid;
}
/*
 * What such a call has told of a task, group or session: the session's number.  0: none of the
 * session's.
 */
static inline pid_t ckpt_told_number(const struct ckpt_dump *d, pid_t told)
{
	const struct ckpt_names *names = d->world->names;

	return names && told > 0 ? names->number(names->ctx, told) : told;
}

/* The remote of a thread, opened on first use, closed by the thaw. */
int ckpt_thread_remote(struct ckpt_thread *t, struct remote **ret, struct err *e);
static inline int ckpt_proc_remote(struct ckpt_proc *p, struct remote **ret, struct err *e)
{
	return ckpt_thread_remote(p->threads[0], ret, e);
}

/*
 * Takes up a file that no table holds (in flight in a socket): @fd becomes the dump's.  Finds it
 * again if it is the same open file as one already known.  New files are claimed; for `gather` of a
 * kind or before it, so that they are gathered and checked with all others.  Returns the file.
 */
int ckpt_file_add(struct ckpt_dump *d, int fd, struct ckpt_file **ret, struct err *e);

/* The value of "key:\t" in a file's fdinfo, or NULL. */
const char *ckpt_fdinfo_get(const struct ckpt_file *f, const char *key);

/* Writes one DATA frame belonging to the record of (@kind, @subject). */
int ckpt_dump_data(struct ckpt_dump *d, const struct ckpt_kind *kind, uint64_t subject,
	uint64_t offset, const void *data, size_t len, struct err *e);

/* The edge whose supervisor's end is the same pipe or pty as @f's other end, or NULL. */
const struct ckpt_edge *ckpt_edge_of_pipe(const struct ckpt_dump *d, const struct stat *st);
const struct ckpt_edge *ckpt_edge_of_pty(const struct ckpt_dump *d, unsigned index);

#endif
