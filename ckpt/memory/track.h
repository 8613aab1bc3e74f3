/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * track - which pages of a session's processes have been written to since they were last asked
 * about.
 *
 * Theory of operation
 *
 * What is copied while a session runs (ckpt/memory/ahead.h) may be changed behind the copy.  The
 * kernel has two ways to tell, each a row of a table (struct ckpt_track_way) that is probed when it
 * is wanted:
 *
 *      wp_async    Linux 6.7.  A userfaultfd which the task makes itself, and which is taken out of it,
 *                  write-protects pages; the first write to one takes the protection away, in the kernel, and
 *                  PAGEMAP_SCAN finds and protects in one step, while the session runs
 *      soft_dirty  where the kernel was built with it (Debian's is).  A bit of the page map that all pages lose
 *                  at once (/proc/PID/clear_refs): between finding and clearing nothing may run
 *      none        everything counts as written
 *
 * Watched is private anonymous memory.  Everything else - shared memory, private pages of files -
 * and what has come since (new mappings, new processes, a new program) counts as written, until it
 * is taken up in turn:
 *
 *      arm     all tasks stand still: who is there, and which mappings have they
 *      take    what has been written since the last take; it counts as clean from now on
 *      look    all stand still for good: what is dirty, what is clean
 *
 * A memory space has a number of its own, never used again: one that a process leaves by execve(2)
 * is another's. Freezes, dumps and forks leave all of it as it is; a forked child is nobody who is
 * watched.  Whoever frees the tracker ends it without a trace, and so does his death: the
 * userfaultfds are his.
 */
#ifndef CKPT_MEMORY_TRACK_H
#define CKPT_MEMORY_TRACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct ckpt_dump;
struct ckpt_proc;
struct err;
struct proc_vma;

/* One memory space that is watched. */
struct ckpt_space {
	uint64_t id; /* from 1 */
	pid_t pid;   /* on the host: a thread that lives */
	uint64_t started;
	int uffd;	  /* of wp_async, else -1 */
	bool refused;	  /* the task may not have what is needed: all of it counts as written */
	bool taken;	  /* at least once */
	bool seen;	  /* in this arm */
	struct buf areas; /* struct ckpt_run: its private anonymous mappings */
};

struct ckpt_track_way {
	const char *name;
	bool while_running; /* take needs nobody to stand still */
	/* Does this kernel have it? */
	bool (*probe)(void);
	/* @p stands still: prepares @s for it.  -EOPNOTSUPP: this task can't be watched. */
	int (*begin)(struct ckpt_space *s, struct ckpt_dump *d, struct ckpt_proc *p, struct err *e);
	/* Its mappings are s->areas now.  -ESTALE: it is another memory than it was. */
	int (*cover)(struct ckpt_space *s, int proc_fd, struct err *e);
	int (*take)(struct ckpt_space *s, int proc_fd, struct buf *runs, struct err *e);
	/* A mapping with this in its VmFlags is watched; NULL: any that may be. */
	const char *flag;
	/* A part of a mapping that is watched; each of the three may be appended to. */
	int (*look)(int pagemap, uint64_t start, uint64_t end, struct buf *dirty, struct buf *clean,
		struct buf *guards);
};
extern const struct ckpt_track_way ckpt_track_wp_async, ckpt_track_soft_dirty;

struct ckpt_track;

/* @name: of a way, or NULL for the best that this kernel has.  ERR_HOST if it has none. */
int ckpt_track_new(struct ckpt_track **ret, const char *name, struct err *e);
void ckpt_track_free(struct ckpt_track *t);
const struct ckpt_track_way *ckpt_track_way(const struct ckpt_track *t);

/* Takes up all processes of @d, as far as that pays, and forgets those that are gone. */
int ckpt_track_arm(struct ckpt_track *t, struct ckpt_dump *d, struct err *e);
size_t ckpt_track_count(const struct ckpt_track *t);
struct ckpt_space *ckpt_track_at(struct ckpt_track *t, size_t i);
/*
 * Appends (struct ckpt_run) what has been written to since the last take; everything at the first.
 * A process that has ended has none.
 */
int ckpt_track_take(struct ckpt_track *t, struct ckpt_space *s, struct buf *runs, struct err *e);

/* The space of @p, from which at least one take has been made, or NULL. */
struct ckpt_space *ckpt_track_of(const struct ckpt_track *t, const struct ckpt_proc *p);
/* Is this mapping (of smaps) one that is watched? */
bool ckpt_track_watches(const struct ckpt_track *t, const struct proc_vma *v);
/*
 * Which pages of a mapping that is watched are there, and written to since the last take, or not.
 */
int ckpt_track_look(const struct ckpt_track *t, int pagemap, const struct proc_vma *v,
	struct buf *dirty, struct buf *clean, struct buf *guards, struct err *e);

#endif
