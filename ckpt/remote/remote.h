/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ckpt/remote - runs system calls inside a stopped task.
 *
 * Theory of operation
 *
 * No code of ours lives in a session.  When something must happen *inside* a task (asking for a
 * signal action, creating a child with a chosen number, mapping memory) the tracer lends it two
 * pages for a moment: one with an executor loop, one or more with a table of calls and room for
 * their arguments and results.
 *
 *      table page                         code page
 *      +-----------------------------+    next:  load nr, a0..a5 of entry i
 *      | n, stop_on_error            |           (an argument may be "result of entry k")
 *      | entry 0: nr args refs ret   |           syscall; store result
 *      | entry 1: ...                |           until i == n
 *      | ...                         |           the sentinel call     <- the one stop
 *      | data area (paths, structs)  |           jmp next
 *      +-----------------------------+    heal:  rt_sigreturn
 *
 * The whole batch costs one stop: our seccomp filter answers the sentinel's number with
 * RET_TRACE, which a tracer sees as PTRACE_EVENT_SECCOMP.
 *
 * The tracer may be killed at any moment, and the task must go on as if nothing had happened:
 *
 *   between batches   the task stands in the entry of the sentinel call with its own registers;
 *                     where a call of its own had been interrupted, that call's number has taken
 *                     the sentinel's place, so without a tracer it simply goes on there
 *   during a batch    the batch runs to its end, the sentinel fails with ENOSYS, and the executor
 *                     itself loads mask and registers back from a block written in front of
 *                     each batch.  (Not rt_sigreturn: that forgets the restart block, so a
 *                     sleep would end early, and wants a copy of the extended state, which
 *                     no call here touches.)
 *
 * The pages stay mapped then, as the only trace (ckpt/mend.c removes them).
 *
 * The pages are shared by all tasks of a memory space.  They are mapped, and unmapped, by a call
 * that is made from behind the vDSO (boot.c), where healing is possible as well.  A task without a
 * vDSO that has room, and a guarded one, maps them by tracing one `syscall` instruction which it
 * already has (where it stands, or anywhere executable), and unmaps them by making munmap of the
 * last sentinel call: some 20 us each, which are unprotected.  So it is for one that is not
 * dumpable or is being single-stepped.
 *
 * Signals are blocked while a batch runs (but for SIGSTOP, which is kept for the end, and
 * SIGKILL).
 *
 * A task may have seccomp filters of its own, which may kill it for any call.  All filters of a
 * session have a door in them (ckpt/filters.h): a call whose instruction pointer is PODRUN_DOOR
 * passes.  No instruction is there, so only a tracer can make such a call.  The remote of a
 * *guarded* task stops it at the entry of each call, where the kernel has not asked the filters
 * yet, moves the instruction pointer to the door, and back at the exit of the call: two more stops
 * for each call.  Between batches such a task heals like any other; if the tracer dies while a
 * batch runs, its filters decide what becomes of the executor's next call.
 *
 * A 32-bit task runs the same executor, in the 64-bit code segment, and is put back into its own:
 * at the close by its registers, when healing by a far jump.  The first call, for which there is no
 * code yet, is made by an `int $0x80` of its own.  An interrupted call of its own can't take the
 * sentinel's place, which is one of x86-64: so between batches such a task stands in front of the
 * instruction that makes the call again.
 *
 * What the tracer must have done: PTRACE_SEIZE with TRACE_OPTIONS (trace.h), the task is under a
 * filter that answers the sentinel with RET_TRACE, and stands in a PTRACE_EVENT_STOP.
 *
 * A remote is used by the thread that traces the task, and only while the task is stopped.
 */
#ifndef CKPT_REMOTE_REMOTE_H
#define CKPT_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct err;
struct proc_vma;
struct remote;	    /* one task */
struct remote_area; /* the lent pages of one memory space; reference counted */

/*
 * Maps the pages into the memory of @tid, a task stopped by PTRACE_EVENT_STOP.  @hint: where they
 * should be (page aligned, room of REMOTE_AREA_SIZE), 0 for anywhere free.  What lies at a hint is
 * replaced, unless it is the vDSO: it is for tasks that are to be blank.  The area belongs to the
 * memory space: open a remote for each further thread of it with the same area.
 * @proc_fd: a /proc that numbers tasks as @tid does; borrowed, outlives the remote.
 */
#define REMOTE_AREA_SIZE (256 * 1024UL)
#define REMOTE_MAX_CALLS 512
#define REMOTE_DATA_SIZE (128 * 1024UL) /* arguments and results of one batch */

/*
 * For the whole process: it is the tracer of podrun's own filter, which stops calls (RET_TRACE) for
 * the names in them.  Those of a batch have the host's names and are let through; -ENOSYS
 * otherwise.
 */
void remote_pass_traced(bool on);

/* See above; ERR_UNFREEZABLE when the task has no memory to spare or no system call instruction. */
int remote_open(struct remote **ret, int proc_fd, pid_t tid, uint64_t hint, struct err *e);
/*
 * The same of @n tasks, none of which share memory, at the same time.  *ret[i] is NULL for one that
 * could not be opened this way, which is as it was: remote_open tells why, or does it.
 */
void remote_open_many(struct remote **ret, int proc_fd, const pid_t *tids, size_t n);
/* The same for a task that has filters of its own. */
int remote_open_guarded(struct remote **ret, int proc_fd, pid_t tid, uint64_t hint, struct err *e);
/* From now on the task has filters of its own, or had them before; its children have them, too. */
void remote_set_guarded(struct remote *r);
/*
 * The same with pages that an earlier remote has left there (remote_leave), at @address: nothing is
 * mapped, so there is nothing unprotected in it.  -ENOENT if they are not there, -EAGAIN if @tid or
 * one of @others (tasks of the same memory, stopped as well) still is in them: a batch whose
 * tracer was killed must end first.
 */
int remote_open_left(struct remote **ret, int proc_fd, pid_t tid, uint64_t address,
	const pid_t *others, size_t n_others, struct err *e);
/*
 * Has the task call execve(2) of @path, with no arguments and no environment, and stops it before
 * the first instruction: it is another program from now on, with memory of its own, and *r another
 * remote of it, opened as by remote_open.  For a task that nobody shares memory with, before it has
 * any state. @options: what it is traced with.  On failure *r is of no more use, but to be
 * forgotten.
 */
int remote_reexec(
	struct remote **r, const char *path, uint64_t hint, unsigned long options, struct err *e);
/* The last close of this remote's memory will leave the pages there (or not, after all). */
void remote_leave(struct remote *r, bool leave);
/*
 * Another task of @sibling's memory: a thread that was seized like it, or one just created
 * by a clone or clone3 call of a batch with CLONE_VM (see below).  Costs no stop.
 */
int remote_open_thread(struct remote **ret, pid_t tid, struct remote *sibling, struct err *e);
/*
 * A child created by a clone call of @parent's batch without CLONE_VM, which has a copy of the
 * pages at the same address.
 *
 * Creating tasks: SYS_clone, SYS_fork and SYS_clone3 are entries like any other (not vfork, not
 * CLONE_VFORK, not CLONE_UNTRACED).  The result is the number in the task's own pid namespace;
 * remote_born tells the host's.  No stack needs to be given, also not with CLONE_VM: the executor
 * uses none.  The new task is traced from birth and stands still until it is opened here; its
 * registers are the executor's, its signal mask is full, so whoever made it sets both
 * (remote_regs, remote_sigmask) before the close.  If the tracer dies it exits.
 */
int remote_open_child(struct remote **ret, pid_t tid, struct remote *parent, struct err *e);
/*
 * The tracer's number of the @i-th task (from 0) created by the last batch, in the order of the
 * calls which created them; 0 when there is none.  At most REMOTE_MAX_BORN per batch are told.
 */
#define REMOTE_MAX_BORN 64
pid_t remote_born(const struct remote *r, int i);

/* Where the pages are. */
uint64_t remote_address(const struct remote *r);
pid_t remote_tid(const struct remote *r);

/* An argument that stands for the result of an earlier entry of the same batch. */
#define REMOTE_RESULT(i) ((struct remote_arg){.value = (uint64_t)(i), .ref = true})
#define REMOTE_ARG(v)	 ((struct remote_arg){.value = (uint64_t)(v), .ref = false})
struct remote_arg {
	uint64_t value;
	bool ref;
};

/*
 * Adds one call to the batch being prepared; returns its index (>= 0), or -ENOSPC when the table
 * is full (run it first).  Unused arguments are 0.
 */
int remote_add(struct remote *r, long nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
	uint64_t a4, uint64_t a5);
int remote_add_args(struct remote *r, long nr, const struct remote_arg args[6]);

/*
 * The same of a call of i386 (asm/unistd_32.h), as a 32-bit program makes it: what it notes is
 * meant for such a program.  Not for calls that make tasks.  The area lies below 4 GiB in 32-bit
 * programs; where else this is wanted the caller has put it there.
 */
int remote_add_i386(struct remote *r, long nr, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3);
/* Maps @len anonymous bytes where there is room, now: mmap(2), of which the kernel has two. */
int remote_map(struct remote *r, long *ret_addr, uint64_t len, int prot, int flags, struct err *e);
/*
 * 0 if a task with these registers, in a PTRACE_EVENT_STOP and not touched since, can be gone on
 * with: it runs plain 64-bit or 32-bit code, and no call of i386 of a 64-bit program.
 * ERR_UNFREEZABLE otherwise.
 */
int remote_judge_code(pid_t tid, const struct user_regs_struct *regs, struct err *e);

/*
 * Room for @len bytes (8-aligned) in the task, valid for the batch being prepared.  *ret_local is
 * our copy: what is in it when the batch starts is what the calls see, and after remote_run it
 * holds what they left there.  NULL when the data area is full.
 */
void *remote_data(struct remote *r, size_t len, uint64_t *ret_addr);
/* The same, filled with a copy of @data; returns the address in the task, 0 when full. */
uint64_t remote_put(struct remote *r, const void *data, size_t len);
uint64_t remote_put_str(struct remote *r, const char *s);

/*
 * Runs the batch; all results are available until the next remote_add, remote_data or remote_put.
 * @stop_on_error ends the batch at the first call that fails (later results read as -ECANCELED).
 * Returns 0 when the batch ran (calls in it may have failed), negative when the task could not run
 * it (it died).
 */
int remote_run(struct remote *r, bool stop_on_error, struct err *e);
/*
 * The same in two steps, so that many tasks run theirs at the same time: all are started, then
 * waited for. One that was started must be waited for before anything else is done with it; one
 * that was not must not be.
 */
int remote_start(struct remote *r, bool stop_on_error, struct err *e);
int remote_wait(struct remote *r, struct err *e);
/*
 * A batch during which no other task of the same memory may run, also if the tracer is killed
 * meanwhile and they are not stopped any more (gate.c).
 *
 * open   @tids: the others, in PTRACE_EVENT_STOPs; no batch may be in preparation.  Costs two stops
 *        of @r, and some microseconds for each of the others
 * run    as remote_run without stop_on_error, of the batch prepared in @r
 * close  the others are as they were, whatever happened.  NULL is fine
 */
struct remote_gate;
int remote_gate_open(
	struct remote_gate **ret, struct remote *r, const pid_t *tids, size_t n, struct err *e);
int remote_gate_run(struct remote_gate *g, struct err *e);
int remote_gate_close(struct remote_gate *g, struct err *e);

/* The raw result of call @i of the last batch: >= 0, an address, or -errno. */
long remote_result(const struct remote *r, int i);
/* How many calls there are in the batch. */
int remote_count(const struct remote *r);

/* One call, now: result or -errno in *ret_value.  Fails only when the task could not run it.
 * No other call may be in preparation (data may). */
int remote_call(struct remote *r, long *ret_value, struct err *e, long nr, uint64_t a0, uint64_t a1,
	uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
/* One call that must succeed; the error says which call failed in which task. */
int remote_must(struct remote *r, long *ret_value, struct err *e, long nr, uint64_t a0, uint64_t a1,
	uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);

/*
 * Reads and writes the task's memory at any address its owner could (FOLL_FORCE semantics of
 * /proc/PID/mem are not used here: plain process_vm_readv/writev).
 */
int remote_peek(struct remote *r, uint64_t addr, void *data, size_t len, struct err *e);
int remote_poke(struct remote *r, uint64_t addr, const void *data, size_t len, struct err *e);

/* The registers the task will have when the remote is closed; those it had when it was opened
 * unless changed.  Restarting of an interrupted call follows orig_rax as ptrace(2) says. */
struct user_regs_struct *remote_regs(struct remote *r);
/* The same for the blocked signals (bit n-1 is signal n). */
uint64_t *remote_sigmask(struct remote *r);

/*
 * Puts the original (or changed) registers back and, for the last remote of a memory space,
 * unmaps the pages.  The task stays stopped by PTRACE_EVENT_STOP.  Frees @r also on failure.
 */
int remote_close(struct remote *r, struct err *e);
/* The same of all in @list, which may have NULLs, many at the same time; what fails is logged. */
void remote_close_all(struct remote **list, size_t n);
/*
 * A note for whoever finds the pages after our death (0 unless something was noted): what has to be
 * undone in the task.
 */
int remote_note(struct remote *r, uint64_t note, struct err *e);
uint64_t remote_left_note(pid_t tid, uint64_t area);
/*
 * A note of the child that a batch has made and that is to be waited for; 0: none any more.  Who
 * finds the pages is told of it, by its number in the task's pid namespace; and of one that was not
 * noted yet, if it was made by the first call of the last batch and that had REMOTE_CHILD as its
 * last argument, which clone(2) does not have.
 */
#define REMOTE_CHILD 0x646c6968632d7270UL
int remote_note_child(struct remote *r, long child, struct err *e);
long remote_left_child(pid_t tid, uint64_t area);
/*
 * Does @vma of task @tid, which is nobody's remote, begin with the pages of one whose tracer was
 * killed?
 */
bool remote_is_left(pid_t tid, const struct proc_vma *vma);
/*
 * The same for what was behind the vDSO of @tid for the first or the last call: its place, or 0;
 * and away with it, when nobody is in there.
 */
#define REMOTE_BOOT_SIZE 384UL
uint64_t remote_boot_left(int proc_fd, pid_t tid);
void remote_boot_remove(int proc_fd, pid_t tid, uint64_t at);
/* Frees our side of a task that is gone. */
void remote_forget(struct remote *r);

#endif
