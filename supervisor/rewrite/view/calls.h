/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view/calls - calls with a path that the task makes itself, with the host's path in place of the
 * session's.  Private to rewrite/.
 *
 * What a call creates, changes or waits for is the kernel's affair then: umask, default ACLs,
 * signals that interrupt, who is asked for his rights.  The host's path is put below the task's
 * stack, red zone or not, and what was there is put back when the call returns.
 *
 * Another task may change that text before the kernel reads it.  Then the call goes where the
 * session could have gone anyway: Landlock (supervisor/world/fence.h) looks at what the kernel
 * finds.
 */
#ifndef SUPERVISOR_REWRITE_VIEW_CALLS_H
#define SUPERVISOR_REWRITE_VIEW_CALLS_H

#include <limits.h>
#include <stddef.h>

#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/view/view.h"

/* ---- for the modules that have rows of their own --------------------------------------------- */

/* Memory of the task: 0 or -EFAULT. */
int view_peek(const struct task *task, uint64_t addr, void *data, size_t len);
int view_poke(const struct task *task, uint64_t addr, const void *data, size_t len);
/* The text at @addr: its length, -EFAULT, -ENAMETOOLONG. */
ssize_t view_peek_path(const struct task *task, uint64_t addr, char ret[PATH_MAX]);

/*
 * Where @path (as the task said it, relative to @dirfd) leads: 1 if the kernel will find that by
 * itself (of what is too deep in a mount to be said there is ret->in), 0 and the place, or what the
 * call ends with.
 */
int view_find_place(struct rewrite *rw, const struct task *task, int dirfd, const char *path,
	unsigned how, struct view_place *ret);

/*
 * Puts @len bytes below the stack of @task and returns their address, 0 if there is no room.  Once
 * for a call; view_take_back undoes it.
 */
static inline uint64_t view_below(const struct user_regs_struct *regs, size_t len)
{
	return (regs->rsp - len) & ~UINT64_C(15);
}
uint64_t view_put_below(struct rewrite *rw, const struct task *task,
	const struct user_regs_struct *regs, const void *data, size_t len);
void view_take_back(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);

/* Rows' functions of view/exec.c and view/sockets.c. */
int view_enter_exec(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
int view_enter_execat(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
int view_enter_bind(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
int view_enter_connect(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
int view_enter_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
void view_leave_sendmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
int view_enter_sendmmsg(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
int view_enter_sendto(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
int view_enter_sockname(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
void view_leave_sockname(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);

void view_leave_exec(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
/*
 * Where on the host the kernel has to be told to find program @path of the session's, of whose
 * links nothing is left: for a session that is rebuilt.  0 or a negative errno.
 */
int view_exec_path(struct rewrite *rw, const char *path, char ret[PATH_MAX]);
/*
 * At the event of an exec: where the auxiliary vector is, and how wide its words are; 0 if nowhere.
 */
uint64_t view_vector(const struct task *task, size_t *ret_width);
/* Its entries, without AT_NULL at its end, from @at on, in as few reads as can be: how many. */
#define VIEW_VECTOR 64
struct view_auxiliary {
	uint64_t sort, value;
};
size_t view_read_vector(const struct task *task, uint64_t at, size_t width,
	struct view_auxiliary ret[VIEW_VECTOR]);
/*
 * At the event of an exec: false if the new program's memory is closed to us, so that it must not
 * run.
 */
bool view_may_run(struct rewrite *rw, const struct task *task);
/* At the event of an exec: the new program is not to see the host's path. */
void view_execed(struct rewrite *rw, const struct task *task);

static inline unsigned long long *view_arg(struct user_regs_struct *r, int i)
{
	unsigned long long *const all[] = {&r->rdi, &r->rsi, &r->rdx, &r->r10, &r->r8, &r->r9};

	return all[i];
}

#endif
