/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * notify - answers the system calls of a session that its filter hands to the supervisor.
 *
 * One table maps a call to its handler (notify.c); handlers live with what they are about, such as
 * supervisor/names/users.c.  A handler never waits and decides nothing by CONTINUE that depends on
 * memory which the session could change: it reads once, acts itself, and answers.
 */
#ifndef SUPERVISOR_FILTER_NOTIFY_H
#define SUPERVISOR_FILTER_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct world;
struct world_config;

struct notify;

/* @w is borrowed for the life of the object, @c for the call. */
int notify_create(struct notify **ret, const struct world *w, const struct world_config *c,
	struct err *e);
void notify_destroy(struct notify *n);

/*
 * When notify_fd is readable: answers all that is pending.  0, or negative when nobody is left
 * whose calls could come.
 */
int notify_ready(struct notify *n, struct err *e);
int notify_fd(const struct notify *n);

/*
 * While a worker of ours makes tasks, calls it injects (clone3 with chosen numbers, userfaultfd)
 * are let through; no task of the session runs then.
 */
void notify_set_trusting(struct notify *n, bool on);

/*
 * Calls that are about memory go through @hold first, where it is set: true if it has taken the
 * call over, which is then answered when it is given to notify_again.
 */
struct seccomp_notif;
typedef bool notify_hold(void *ctx, const struct seccomp_notif *call);
void notify_set_hold(struct notify *n, notify_hold *hold, void *ctx);
/* Answers a call that was held, unless its task has left it. */
void notify_again(struct notify *n, const struct seccomp_notif *call);
/* Lets a call that was held fail. */
void notify_refuse(struct notify *n, const struct seccomp_notif *call, int error);

/* The seccomp filters that tasks of the session have installed for themselves. */
struct installs;
struct installs *notify_installs(const struct notify *n);

#endif
