/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * build - a session being rebuilt, as the kinds see it during restore.
 *
 * The builder is one process that has joined the session's namespaces; it creates objects with
 * plain system calls and holds them as its own descriptors.  Tasks are born blank (no memory but
 * the executor's pages), stopped and traced by the builder; what must happen inside one goes
 * through its remote.
 *
 *      read     all records of the image, which stand in front of its bulk data   restore/records.c
 *      world    the builder joins the session's namespaces                        restore/join.c
 *      tasks    process tree with sessions, groups, threads, zombies              restore/grow.c
 *      create   every kind's objects, in table order
 *      data     memory pages and bulk data, as they come in the stream, to its end: digests and
 *               signature of the image are proved
 *      link     descriptors moved into the tasks (fdtable is first), then every kind
 *      finish   every kind: those of files and of the whole session first, then those of stopped
 *               processes, then the others; registers are the last kind
 *
 * One builder rebuilds one session and then ends: it stays in the session's namespaces.
 */
#ifndef CKPT_BUILD_H
#define CKPT_BUILD_H

#include <limits.h>
#include <sched.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/kind.h"
#include "ckpt/nested/nested.h"
#include "ckpt/remote/remote.h"

struct ckpt_build_thread {
	struct ckpt_build_proc *proc;
	pid_t vtid, tid;
	struct remote *remote; /* NULL for zombies */
	cpu_set_t *cpus; /* where it will run, NULL: wherever the builder may */
};

struct ckpt_build_proc {
	pid_t vpid, pid;
	bool headless; /* its first thread will have ended; until the finish it does all the work */
	bool zombie, stopped; /* what it will be; until then it is as alive as the others */
	bool stop_pending;    /* a SIGSTOP was on its way to it */
	bool continued;	      /* which its parent has not asked for yet */
	pid_t mm, files, fs, sighand; /* as in struct ckpt_proc */
	struct ckpt_build_thread *threads; /* [0] is the leader, as long as that lives */
	size_t n_threads;
	struct ckpt_record *record; /* of kind TASK */
	struct ckpt_ns_set ns;	    /* ckpt/nested/nested.h */
	pid_t *inner; /* numbers in @depth nested pid namespaces, outermost first: its own, then each thread's */
	size_t depth;
	int lend_fd;		    /* the builder's pidfd in its table; ckpt/lend.h */
};

/* An open file: made by its kind's create. */
struct ckpt_build_file {
	uint32_t id;
	int fd; /* the builder's, -1 before create */
	struct ckpt_record *record;
	/* One place where a task has it after link: for calls that need a descriptor number. */
	pid_t holder; /* vpid, 0 if none */
	int holder_fd;
};

struct ckpt_build {
	const struct ckpt_world *world;
	struct ckpt_restore_options options;
	struct ckpt_report report;
	char note[PATH_MAX + 256]; /* the report's */
	struct proto_reader *in;
	/* The host's /proc, opened before joining: it numbers tasks as pid and tid above do. */
	int host_proc;
	size_t level; /* of the session's numbers in its lists (proc_level), once processes are made */

	struct ckpt_record *records;
	size_t n_records;
	struct ckpt_build_proc *procs; /* by vpid */
	size_t n_procs;
	struct ckpt_build_file *files; /* by id: files[i].id == i + 1 */
	size_t n_files;
	bool i386;     /* there is a 32-bit program among them: the area lies below 4 GiB */
	uint64_t area; /* address of the executor's pages: free in every process of the image */
	uint64_t xcr0; /* kind CPU: the extended registers there were where the image is from */
	bool portable; /* its programs were told to do without what other CPUs may lack */
	int self_pidfd;	/* of the builder */
	cpu_set_t cpus; /* the builder's own */
	int cpu;	/* the one where it and all tasks stay for now; -1: none */
	bool one_cpu;	/* the builder is there */
	struct ckpt_nested *nested; /* number i is nested[i - 1] */
	size_t n_nested;
	struct buf helpers; /* for them (nested/help.c) */
	pid_t *made;	/* every process made, dead or alive, for the undo */
	size_t n_made;
	/*
	 * What is mapped from the image at first (memory/mapped.c), and addresses for its own
	 * memory.
	 */
	struct buf lent; /* descriptors that tasks are being lent (lend.c) */
	struct buf pieces;
	size_t pieces_done;
	uint64_t spare, spare_end;
	struct ckpt_fillers *fillers;	  /* memory/fillers.h; NULL: the builder does it all */
	struct par_crew *crew;		  /* base/par.h; likewise */
	void *kind_state[PROTO_KIND_MAX]; /* the kinds' own; freed with free() */
};

/* By the session's own numbers; NULL if there is none (a hostile image may name any). */
struct ckpt_build_proc *ckpt_build_proc(struct ckpt_build *b, pid_t vpid);
struct ckpt_build_thread *ckpt_build_thread(struct ckpt_build *b, pid_t vtid);
/* The file with @id, or NULL (a hostile image may name any). */
struct ckpt_build_file *ckpt_build_file(struct ckpt_build *b, uint32_t id);
/* The record of (@kind number, @subject), or NULL. */
struct ckpt_record *ckpt_build_record(struct ckpt_build *b, uint32_t kind, uint64_t subject);

/* Logs that something is not as it was, and has whoever asked for the resume told so. */
void ckpt_build_note(struct ckpt_build *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Lends the builder's descriptor @fd to the task for one batch: the call that receives it (with
 * close-on-exec) is added to @r's batch and its index returned (use REMOTE_RESULT).  The task must
 * close it, or keep it.  Possible until its credentials are restored (ckpt/lend.h).
 */
int ckpt_build_lend(struct ckpt_build *b, struct remote *r, int fd, struct err *e);

#endif
