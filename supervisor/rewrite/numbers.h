/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * numbers - the numbers of a session's tasks where no pid namespace holds them.
 *
 * A number is given to a task when it is born and stays with it for life (Zap, section 3): 1 is pid
 * 1, the next is one more than the last, and after the highest comes 300 again, as in the kernel
 * (pid_namespaces(7)).  It is the name of a process, a thread, a process group and a session alike,
 * so it lives as long as any of them.
 *
 * The table is in memory shared with processes forked after it was made.  One process changes it;
 * the others look, and may see a change half an instant late.
 */
#ifndef SUPERVISOR_REWRITE_NUMBERS_H
#define SUPERVISOR_REWRITE_NUMBERS_H

#include <sys/types.h>

struct err;

#define NUMBERS_MAX 32768 /* exclusive: kernel.pid_max as it comes */

struct numbers;

/*
 * 0, or -ENOMEM with @e set.  numbers_free takes what it made, or NULL, in each process for itself.
 */
int numbers_create(struct numbers **ret, struct err *e);
void numbers_free(struct numbers *n);

/* A number for task @host, which has none; -EAGAIN when all are taken. */
pid_t numbers_add(struct numbers *n, pid_t host);
/* The next that numbers_add gives is behind @number, if that is free. */
void numbers_go_on(struct numbers *n, pid_t number);
/* @number is now the name of @host (an exec by a thread takes the leader's place). */
void numbers_set(struct numbers *n, pid_t number, pid_t host);
/* Whoever had @host on the host is called @number, too, as long as nobody else gets that. */
void numbers_alias(struct numbers *n, pid_t number, pid_t host);
/* The number names nobody any more. */
void numbers_remove(struct numbers *n, pid_t number);

/* What the host calls it, and the session: 0 if there is no such task. */
pid_t numbers_host(const struct numbers *n, pid_t number);
pid_t numbers_virtual(const struct numbers *n, pid_t host);

#endif
