/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * calls - the calls that a task makes itself, with the host's numbers in place of the session's.
 * Private to rewrite/.
 *
 * The filter stops the task at the entry of such a call (RET_TRACE).  A row of the table says which
 * argument registers hold what sort of number; they are replaced, and put back at the exit of the
 * call, where what it returns is replaced by the session's number.  Where numbers are in memory a
 * row has functions of its own.
 *
 * What another task of the same memory does to these numbers meanwhile is its own loss: the kernel
 * checks them again, and no call in the table gives power over a task to which the session has
 * none (isolation does not rest on it).
 */
#ifndef SUPERVISOR_REWRITE_CALLS_H
#define SUPERVISOR_REWRITE_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct rewrite;
struct task;
struct tasks;

enum number_sort {
	NUMBER_NONE,
	NUMBER_TASK,  /* a process or thread; 0 is the caller */
	NUMBER_GROUP, /* a process group; 0 is the caller's */
	NUMBER_WAIT,  /* wait4(2): a process, a group as its negative, -1, 0 */
};

#define REWRITE_ARGS 6
#define CALL_DONE    2
#define CALL_LEFT    3
#define CALL_GONE    4
#define CALL_EXECED  5

struct rewrite_call {
	int nr;
	uint8_t args[REWRITE_ARGS]; /* enum number_sort */
	bool result;		    /* is the number of a task or a group */
	int error;		    /* of a number that nobody has: negative */
	/*
	 * What the registers alone do not say.  enter: 0, 1 if nothing will have to be put back,
	 * CALL_DONE if regs->rax is the result already, CALL_LEFT if the task has made it and
	 * stands in a PTRACE_EVENT_STOP behind it (or will), CALL_GONE if it can't be touched any
	 * more, CALL_EXECED if another thread has called exec and stands in its event under the
	 * number, or the error that the call returns unmade.
	 */
	int (*enter)(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
	void (*leave)(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
};

/* The rows of each room (calls.c puts them together): of tasks and their numbers. */
extern const struct rewrite_call task_calls[];
extern const size_t task_n_calls;
/* What waits for System V objects, or attaches them (ipc/calls.c). */
extern const struct rewrite_call ipc_calls[];
/* What has a path (view/calls.h). */
extern const struct rewrite_call view_calls[];
extern const size_t view_n_calls;
extern const size_t ipc_n_calls;
extern const struct rewrite_call owner_calls[]; /* owners.c */
extern const size_t owner_n_calls;
extern const struct rewrite_call priority_calls[]; /* priorities.c */
extern const size_t priority_n_calls;
extern const struct rewrite_call confine_calls[]; /* confine.c */
extern const size_t confine_n_calls;
extern const struct rewrite_call host_calls[]; /* host_calls.c */
extern const size_t host_n_calls;
extern const struct rewrite_call clock_calls[]; /* clock_calls.c */
extern const size_t clock_n_calls;

/* Of a msghdr, as much as anybody here looks at. */
struct message {
	uint64_t name, name_len, control, control_len;
};
bool calls_peek_message(const struct task *task, uint64_t addr, struct message *ret);
/* The @i-th of those at @addr, which sendmmsg(2) and recvmmsg(2) have. */
uint64_t calls_message_at(const struct task *task, uint64_t addr, uint64_t i);
/* Credentials in a message; for who has more to do there. */
int calls_enter_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
void calls_leave_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
int calls_enter_sendmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
void calls_leave_sendmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);

/* Of i386 alone, by COMPAT_OWN and their number (compat/calls.c). */
extern const struct rewrite_call compat_calls[];
extern const size_t compat_n_calls;
/*
 * socketcall(2) and ipc(2) become the calls they stand for, unless the latter waits.  -EFAULT,
 * -EINVAL, 0 (also where there is nothing to do).
 */
int compat_unpack(struct task *task, struct user_regs_struct *regs);
/* A clock as the first argument, which may be that of a process. */
int calls_enter_clock(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);

/* NULL: the call is none of these. */
const struct rewrite_call *rewrite_call_find(int nr);

/*
 * At the entry of a call, the task in its PTRACE_EVENT_SECCOMP stop.  0 if it has to be stopped at
 * the exit, where rewrite_call_leave is due; 1 if not; CALL_LEFT; CALL_EXECED; CALL_GONE: there may
 * be no @task any more.
 */
int rewrite_call_enter(struct rewrite *rw, struct task *task);
void rewrite_call_leave(struct rewrite *rw, struct task *task);

/*
 * Of the fork family the kernel tells in the middle (PTRACE_EVENT_FORK and so on), so that no entry
 * is stopped at: rewrite_call_leave is due from here on, too.  @number is the child's, who may be
 * forgotten by then.
 */
void rewrite_call_birth(struct task *task, pid_t number);

/* For the rows. */
static inline unsigned long long *call_arg(struct user_regs_struct *r, int i)
{
	unsigned long long *const all[] = {&r->rdi, &r->rsi, &r->rdx, &r->r10, &r->r8, &r->r9};

	return all[i];
}
void calls_leave_wait4(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
static inline bool call_failed(const struct user_regs_struct *regs)
{
	return regs->rax > -(unsigned long long)4096;
}
/* The host's number in place of the session's: 0 or -ESRCH. */
int call_replace(const struct tasks *t, enum number_sort sort, unsigned long long *value);
/* A number in memory which the call has left there becomes the session's. */
void call_rename(const struct tasks *t, const struct task *task, uint64_t addr);
/*
 * One that the call will read; call_back_at, a row's leave, puts the session's back.  Only for what
 * the kernel checks once more: another thread may change it meanwhile.  0, -EFAULT or -ESRCH.
 */
int call_host_at(struct tasks *t, struct task *task, enum number_sort sort, uint64_t addr);
void call_back_at(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);

#endif
