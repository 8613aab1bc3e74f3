/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * install - seccomp filters that programs of a session give themselves.
 *
 * Theory of operation
 *
 * ckpt/filters.h says why such a filter must be installed in a form of ours.  Here is who does it:
 * seccomp(2) is notified, its program is copied, and a short-lived worker (a fork) has the task
 * install it (ckpt_install).  Numbers are given by the supervisor, which has the table:
 *
 *      task       seccomp(2) ... waits for its answer .......... stopped . seccomp(2) . goes on
 *      worker                    seizes, answers .. asks its newest filter,          exits
 *      supervisor forks           "the newest is 7" > < "the new one is 12"
 *
 * The second call of the task is notified as well, and let through: it is the worker's.
 *
 * A freeze and an installation can't both trace a task, and the worker that freezes has the table
 * as it was when it was forked.  So a freeze begins when no installation is under way, and none
 * begins until the session runs again: calls that come while tasks are being stopped are *held*,
 * and whoever stops tasks answers those that are in its way with -ERESTARTNOINTR, so that they are
 * made again later (installs_unhold).  What is held is in memory shared with that worker.
 */
#ifndef SUPERVISOR_FILTER_INSTALL_H
#define SUPERVISOR_FILTER_INSTALL_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "ckpt/ckpt.h"

struct ckpt_filters;
struct err;
struct installs;

/* @listener: of the session's notifications, borrowed. */
int installs_create(struct installs **ret, int listener, pid_t init_pid, struct err *e);
void installs_destroy(struct installs *s);
/* The session's table; owned by @s. */
struct ckpt_filters *installs_table(struct installs *s);
/* Readable when the listener is, or installs_ready has something to do. */
int installs_fd(const struct installs *s);
void installs_ready(struct installs *s);

/* A notified call to be carried out: @id of @tid.  Takes @code over.  The answer is given here. */
struct installs_call {
	uint64_t id;
	pid_t tid;
	uint32_t flags; /* as in seccomp(2) */
	struct sock_filter *code;
	size_t n;
	bool strict; /* as in struct ckpt_install */
};
void installs_begin(struct installs *s, const struct installs_call *call);
/* Is this call of @tid the one a worker makes inside it? */
bool installs_expects(struct installs *s, pid_t tid);

/* From when a freeze is asked for until its worker has done with the session. */
void installs_hold(struct installs *s, bool on);
/*
 * Is an installation under way?  Then @idle is called once none is any more, from installs_ready.
 */
bool installs_busy(const struct installs *s);
void installs_when_idle(struct installs *s, void (*idle)(void *ctx), void *ctx);
/* Does everything stand still?  Then whoever calls is a worker of ours, inside a task. */
bool installs_stands(const struct installs *s);

/* For the worker that freezes: as ckpt_dump_options wants them, with installs as context. */
void installs_phase(void *installs, enum ckpt_phase phase);
void installs_unhold(void *installs, pid_t tid);

#endif
