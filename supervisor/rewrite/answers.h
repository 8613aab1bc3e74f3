/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * answers - the calls that the rewriter answers in the task's place.  Private to rewrite/.
 *
 * The filter hands them over by user notification, half as dear as a stop: who am I, who is that,
 * and signals.  What a handler decides depends on the call's registers alone.
 */
#ifndef SUPERVISOR_REWRITE_ANSWERS_H
#define SUPERVISOR_REWRITE_ANSWERS_H

#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

struct rewrite;
struct task;

struct question {
	struct rewrite *rw;
	struct task *asker;
	const struct seccomp_data *data;
	pid_t tid;   /* the asker's on the host */
	uint64_t id; /* of the notification */
	bool go_on;  /* to be set: the kernel shall do it */
	bool sent;   /* to be set: it has been answered, or will be by somebody else */
	int nr32;    /* the number of a call of i386, which @data says as x86-64's (compat.h); -1 */
};

/* The value that the call returns, or a negative errno.  With rw->lock held. */
typedef long rewrite_answer(struct question *q);

struct answer_row {
	int nr;
	rewrite_answer *answer;
};

/* The rows of each room (answers.c puts them together): of tasks and their numbers. */
extern const struct answer_row task_answers[];
extern const size_t task_n_answers;
/* System V objects (ipc/sysv.c), message queues (ipc/queues.c). */
extern const struct answer_row ipc_sysv_answers[], ipc_queue_answers[];
/* Of paths (view.h). */
extern const struct answer_row view_answers[];
extern const size_t view_n_answers;
extern const size_t ipc_sysv_n_answers, ipc_queue_n_answers;
extern const struct answer_row pidfd_answers[]; /* pidfds.c */
extern const size_t pidfd_n_answers;
extern const struct answer_row user_answers[]; /* users/answers.c */
extern const size_t user_n_answers;
extern const struct answer_row attribute_answers[]; /* attributes.c */
extern const size_t attribute_n_answers;
extern const struct answer_row host_answers[]; /* host_calls.c */
extern const size_t host_n_answers;
extern const struct answer_row clock_answers[]; /* clock_calls.c */
extern const size_t clock_n_answers;

/* One to be answered even when nobody but ckpt can ask: the kernel does not know. */
bool attributes_asked(const struct seccomp_data *data);

#define ANSWERS_MAX 512
/* All of them, whatever the room; returns how many. */
size_t answers_list(long ret[ANSWERS_MAX]);
/*
 * While all stand still, ANSWERS_LEND(key, N) made in a task gives it our descriptor N
 * (ckpt/lend.h).  A new key; the one before, and any other number, is none any more.
 */
#define ANSWERS_LEND SYS_getpgrp
uint64_t answers_lend(struct rewrite *rw);
/* Is @nr one of them? */
bool answers_has(int nr);
/* Waits for a call at rw->listener and answers it.  0 or a negative errno. */
int answers_one(struct rewrite *rw);

/* For the rows: an argument that is an int, and memory of the asker (0 or -EFAULT). */
static inline int question_arg(const struct question *q, int i)
{
	return (int)q->data->args[i];
}
/* What rt_sigqueueinfo(2) and its like are given at @addr: 0 or -EFAULT. */
int question_siginfo(const struct question *q, uint64_t addr, siginfo_t *ret);
int question_read(const struct question *q, uint64_t addr, void *data, size_t len);
/* Only as long as the call still waits: its memory may be somebody else's by now. */
int question_write(const struct question *q, uint64_t addr, const void *data, size_t len);
/* Is the asker still waiting for its answer? */
bool question_waits(const struct question *q);

#endif
