/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tasks - what the rewriter knows of each task of its session.  Private to rewrite/.
 */
#ifndef SUPERVISOR_REWRITE_TASKS_H
#define SUPERVISOR_REWRITE_TASKS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/rewrite/compat/compat.h"
#include "supervisor/rewrite/numbers.h"

struct rewrite_call;
struct rewrite_users;

/* A traced call that the task is in: what is to be undone when it comes back. */
struct task_call {
	const struct rewrite_call *row; /* NULL: in none */
	uint64_t args[6];		/* as the task gave them */
	uint64_t extra;			/* the row's own */
	uint64_t behind;		/* where it goes on, if it is at the door (confine.h); 0 */
	uint32_t sleeps_for;		/* owner of a mutex (pi.c) */
	uint64_t lent;			/* where there is another time than its own (clock_calls.c); 0 */
	size_t lent_len;		/* bytes of it */
	uint8_t was[16];		/* its own */
};

/* The call that has made it, as its maker's registers and, until it goes on, its own have it. */
struct task_birth {
	bool known;
	int nr; /* of x86-64 */
	uint64_t flags, parent_tid, child_tid; /* of clone(2), else 0 */
};

/* Of a root inside (users/caps.h). */
struct task_caps {
	uint64_t effective, permitted, inheritable, bounding, ambient;
	bool set; /* by capset(2), since its ids have changed */
};

struct task {
	pid_t host, number;
	pid_t tgid;   /* on the host */
	pid_t parent; /* whoever made it, on the host: its parent as long as it lives; 0: unknown */
	uint64_t serial; /* who is younger has a higher one */
	/*
	 * Processes of different kin share nothing but what every process does; those of the same
	 * may.  0: made by a resume, which has not told.
	 */
	pid_t kin;
	bool gone;  /* has ended; its number still names a group, a session or a zombie */
	bool lives; /* has left its first stop */
	bool waits; /* stands in it, a thread, until the one that made it has told whose */
	bool told;
	bool ends;	  /* stands in its last stop, or has ended */
	bool renewed;	  /* has called exec, perhaps before it was told of */
	bool threaded;	  /* a process: has had other threads since its exec */
	bool parted;	  /* a process: perhaps a thread has a directory or descriptors of its own */
	bool has_kin;	  /* has made a task, or was made, that may share something with the other */
	bool reaped;	  /* nobody is called by its number any more; it goes soon */
	bool leads;	  /* may have a group or a session by its number */
	bool headless;	  /* has ended as the first thread of a process that goes on */
	bool held;	  /* stands still for a freeze (hold.h) */
	int stop_signal;  /* of the group stop that it is in, else 0 */
	bool loose;	  /* goes on nevertheless, or its parent could not be held */
	pid_t vforked_by; /* host task that sleeps until it has called exec or has ended; 0 */
	bool closed; /* a process: not dumpable, as far as it knows (attributes.c) */
	bool inherited; /* what follows, from whom has made it */
	uint32_t uid; /* of a process of a root inside: the real one that it has set; 0 is root's */
	struct task_caps caps;
	bool bears;  /* counted in tasks.bearing */
	enum { WATCH_UNKNOWN, WATCH_ON, WATCH_OFF } watch; /* is its end a stop (robust.h)? */
	unsigned placed; /* when it was seen to run where we wait (place.h) */
	struct task_birth birth;
	uint64_t vdso; /* address of its vDSO; 0: nobody has looked (clocks.h) */
	struct task_call call;
	struct compat_call compat; /* the same, where it is of i386 */
	struct seccomp_data passed; /* a call with a path that was left to the kernel, the last one */
};

#define TASKS_REAPED 1024

struct tasks {
	struct numbers *numbers;
	struct task *all[NUMBERS_MAX]; /* by number */
	size_t n, n_gone; /* gone, but not reaped */
	size_t living;	/* not gone */
	bool closes;	/* some process was closed once */
	const struct rewrite_users *users; /* NULL: ids are the host's (users.h) */
	size_t bearing; /* tasks that are making another */
	uint64_t most;	/* --pids, 0 for no limit */
	size_t sweep_at; /* n_gone, when they are looked through */
	pid_t reaped[TASKS_REAPED]; /* numbers, around and around: who comes next is forgotten */
	size_t next_reaped;
	uint64_t last_serial;
	unsigned lost; /* calls whose end nobody has seen: perhaps they were made */
};

/* The state (a letter) and the parent of @host, as /proc has them now; false if it is gone. */
bool tasks_look(pid_t host, char *ret_state, pid_t *ret_parent);

/* Memory of a task: 0 or -EFAULT. */
int task_peek(const struct task *task, uint64_t addr, void *data, size_t len);
int task_poke(const struct task *task, uint64_t addr, const void *data, size_t len);

/* A task that is seen for the first time gets a number.  NULL when there is no room. */
struct task *tasks_add(struct tasks *t, pid_t host);
/* The same for one that is just born: no group has its number yet. */
struct task *tasks_born(struct tasks *t, pid_t host);
/* One with a number that it has to have; NULL if that is another's. */
struct task *tasks_add_as(struct tasks *t, pid_t host, pid_t number);
/*
 * @parent is about to make a task: may there be one more?  It counts from now on, until tasks_bore
 * says that it is there, or that it will not be.  Those that have ended don't count, and neither
 * does pid 1.
 */
bool tasks_bear(struct tasks *t, struct task *parent);
void tasks_bore(struct tasks *t, struct task *parent);
/* What a child has of who made it; as far as it can be known before that has told of it. */
void tasks_inherit_early(struct tasks *t, struct task *child);
void tasks_inherit(struct tasks *t, struct task *child, const struct task *parent);
/* By the host's number, NULL if it is none of the session's. */
struct task *tasks_find(const struct tasks *t, pid_t host);
/* Has it ended, and nobody has waited for it?  Only its number is left then. */
bool tasks_is_zombie(const struct tasks *t, const struct task *task);
/* It has ended.  Its number goes when nothing has it as its name any more. */
void tasks_end(struct tasks *t, struct task *task);
/* Somebody has waited for it, and got its number @number, which is free again soon. */
void tasks_reaped(struct tasks *t, pid_t number);
/* An exec by thread @former: it is process @leader from now on, the other threads are no more. */
void tasks_exec(struct tasks *t, struct task *leader, pid_t former);

/*
 * A number that the session says, as the host's: a process or thread that lives or is a zombie, a
 * group or a session with somebody in it.  0 if there is none.
 */
pid_t tasks_host_task(const struct tasks *t, pid_t number);
pid_t tasks_host_group(const struct tasks *t, pid_t number);
/*
 * One to wait for: of somebody who was waited for already it may say the number that the host has
 * given to a stranger, whom the kernel lets nobody here wait for.
 */
pid_t tasks_host_waited(const struct tasks *t, pid_t number);

#endif
