/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * inside - what the units of ckpt/remote share.  Private to them.
 *
 *      area.c     the area: mapping it, taking it away; remotes come and go
 *      stops.c    letting a task run until it stands where it should, and with which registers
 *      batch.c    preparing a batch, running it
 *      gate.c     a batch during which others may not run
 *      reexec.c   another program in the same task
 *      boot.c     the first call and the last, when there is no area
 */
#ifndef CKPT_REMOTE_INSIDE_H
#define CKPT_REMOTE_INSIDE_H

#include "base/base.h"
#include "ckpt/remote/i386.h"
#include "ckpt/remote/layout.h"
#include "ckpt/remote/remote.h"
#include "ckpt/remote/trace.h"

struct entry {
	int32_t nr;
	uint8_t refs;
	uint8_t twice;
	uint8_t i386;
	uint8_t pad;
	uint64_t args[6];
	int64_t ret;
};

struct heal {
	uint64_t mask, rax, rbx, rcx, rdx, rsi, rdi, rbp, r8, r9, r10, r11, r12, r13, r14, r15, rsp,
		rip, flags;
	uint32_t far_rip, far_cs; /* where `rip` leads, if that is a far jump of ours */
};

/* exec_x86_64.S */
extern const uint8_t remote_exec_begin[], remote_exec_end[], remote_exec_run[],
	remote_exec_single[], remote_exec_gate[], remote_exec_far[];
extern const uint8_t remote_boot_begin[], remote_boot_heal[], remote_boot_far[];

struct remote_area {
	unsigned refs, leaving; /* remotes; those of them that are being closed (remote_close_all) */
	uint64_t addr;
	bool left;     /* stays when the last remote is closed */
	uint64_t room; /* behind the vDSO (boot.c), once it was looked for; 0 */
	uint64_t boot; /* the same while something of ours is there; 0 */
	int mem;       /* and the task's memory, or -errno, meanwhile */
};

/*
 * Our copy of a part of the data area.  What has been handed out may not move; most batches
 * need little, and a session has many threads.
 */
struct room {
	uint8_t *bytes; /* made on first use */
	size_t used;
};
#define ROOM_SMALL 2048UL
#define ROOM_BIG   (REMOTE_DATA_SIZE - ROOM_SMALL)

#define ALL_SIGNALS (~0ULL)
#define VDSO_ROOM   (64 * 1024UL) /* to each side of an instruction in it */

enum where { AT_STOP, AT_SENTINEL, GONE };

struct remote {
	pid_t tid;
	int proc_fd;
	struct remote_area *area;
	enum where where;
	bool born;	 /* made by a batch: has no registers of its own yet */
	bool held_stop;	 /* a SIGSTOP came while a batch ran, and is sent again in the end */
	int deliver;	 /* the signal with which it goes on */
	bool execed;	 /* has called exec (WANT_EXEC) */
	bool going;	 /* runs towards its next stop, which nobody has waited for yet */
	bool guarded;	 /* has filters of its own: calls go through the door */
	uint64_t behind; /* guarded, in a call: where it goes on behind it; else 0 */
	struct user_regs_struct regs;
	uint64_t mask;

	struct entry *entries; /* grows up to REMOTE_MAX_CALLS */
	int n, cap;
	struct room small, big;
	bool ran;
	pid_t born_tids[REMOTE_MAX_BORN];
	int n_born;
};

/* ---- stops.c ------------------------------------------------------------------------------ */

/* Does it run 32-bit code? */
static inline bool remote_runs_32(const struct remote *r)
{
	return i386_runs(&r->regs);
}

/* The task is gone: notes that, returns -ESRCH. */
int remote_died(struct remote *r, struct err *e);
int remote_set_regs(struct remote *r, const struct user_regs_struct *regs, struct err *e);
int remote_set_mask(struct remote *r, uint64_t mask, struct err *e);

enum want { WANT_SENTINEL, WANT_SYSCALL_STOP, WANT_EVENT_STOP, WANT_EXEC /* or the sentinel */ };

/*
 * Lets the task run, and does not wait: remote_go_until does, which is to follow with the same
 * @want.
 */
int remote_go(struct remote *r, enum want want, struct err *e);
/* Lets the task run until it stands as wanted; all other stops on the way are passed. */
int remote_go_until(struct remote *r, enum want want, struct err *e);
/*
 * From wherever it stands to a PTRACE_EVENT_STOP, by way of the call in orig_rax of @via.  The
 * first half only starts, and wants remote_go_until.
 */
int remote_go_to_event_stop(struct remote *r, const struct user_regs_struct *via, struct err *e);
int remote_to_event_stop(struct remote *r, const struct user_regs_struct *via, struct err *e);
/* Leaves the task as it was, for failures after it has been moved. */
void remote_put_back(struct remote *r);

/* What healing loads in user space, where nobody restarts a call.  @far: where a far jump is. */
void remote_fill_heal(const struct remote *r, struct heal *h, uint64_t far);
/* In pages of the executor's at @area. */
uint64_t remote_exec_far_at(uint64_t area);
struct user_regs_struct remote_exec_regs(const struct remote *r, bool stop_on_error);
/* After a batch, at the sentinel: the task's own registers and mask (see "between batches"). */
int remote_stand(struct remote *r, struct err *e);
/* The task's own registers such that in user space, where nobody restarts it, an interrupted call
 * is made again. */
struct user_regs_struct remote_user_regs(const struct remote *r);
/* To stand behind a call, on the way back to user space. */
int remote_stand_in_user(struct remote *r, struct err *e);

/* ---- batch.c ------------------------------------------------------------------------------ */

/* Forgets the last batch. */
void remote_clear_batch(struct remote *r);
void remote_free_batch(struct remote *r);

/* ---- batch.c ------------------------------------------------------------------------------ */

/* Writes the batch that was prepared, and what heals, into the task's pages. */
int remote_put_batch(struct remote *r, struct err *e);
/* Lets the task go until it has run its batch, and takes the results. */
int remote_finish_batch(struct remote *r, struct err *e);

/* ---- boot.c ------------------------------------------------------------------------------- */

/* Where there is room for it in @r's memory, 0 if nowhere. */
uint64_t remote_boot_place(struct remote *r);
/* Writes it there, with what heals @r. */
int remote_boot_put(struct remote *r, uint64_t at);
/*
 * One call with the registers @call, in two steps; its raw result in *ret.  The task stands at the
 * sentinel then, with registers that are not its own.
 */
int remote_boot_start(struct remote *r, const struct user_regs_struct *call, struct err *e);
int remote_boot_wait(struct remote *r, uint64_t *ret, struct err *e);
/* Once the task stands elsewhere. */
void remote_boot_wipe(struct remote *r);

/* ---- remote.c ----------------------------------------------------------------------------- */

/* Lets a tracer write where the task itself may not; @mem: its /proc/PID/mem, or -1. */
int remote_force(struct remote *r, int mem, uint64_t at, const void *data, size_t len);
/*
 * One more task in a PTRACE_EVENT_STOP, with its registers as they are; NULL and the story in @e.
 */
struct remote *remote_observe(int proc_fd, pid_t tid, uint64_t area, struct err *e);

#endif
