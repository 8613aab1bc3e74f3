/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * foreseen - the tasks of a session that still runs, met ahead so that stopping them takes less.
 *
 * Theory of operation
 *
 * To name a task's files in /proc, to find out since when it sleeps (restart.h), and who is whose
 * child, takes several times as long as to stop it.  So that is done while the session runs:
 *
 *      each process: its directory "task", kept open
 *      each thread: its files stat, status and schedstat, kept open; what schedstat says; then
 *      since when it sleeps                                                     (the session runs)
 *      ... whatever else is found out ahead ...
 *      of who has run meanwhile the last two once more
 *      schedstat says the same: it has not run since, and sleeps since then     (about to be stopped)
 *
 * What schedstat says is for how long and how often it has run: both only grow.
 *
 * An open file of /proc belongs to the task and not to its number.  When that is another's, nothing
 * can be read, so that whoever is met here is the session's own.  Nothing is believed of who is
 * missing: it is for the freeze to prove that nobody is (freeze.c), and for who can't be read here
 * to be read as if he had never been met.
 */
#ifndef CKPT_FREEZE_FORESEEN_H
#define CKPT_FREEZE_FORESEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ckpt_foreseen;
struct err;
struct proc_status;

/* All below @init_pid, which is not among them.  NULL when there is no memory.  For whoever
 * has @host_proc open until ckpt_foreseen_refresh. */
struct ckpt_foreseen *ckpt_foreseen_look(int host_proc, pid_t init_pid);
/* Just before they are stopped. */
void ckpt_foreseen_refresh(struct ckpt_foreseen *s);
/* NULL is fine, here and below: then nobody was met. */
void ckpt_foreseen_free(struct ckpt_foreseen *s);

/* Number @i of the processes; 0 behind the last. */
pid_t ckpt_foreseen_process(const struct ckpt_foreseen *s, size_t i);
/* Its threads now, sorted; caller frees *ret.  -ESRCH when it was not met, else as it may fail. */
int ckpt_foreseen_list(const struct ckpt_foreseen *s, pid_t pid, int **ret, size_t *ret_n);
/* How many they are now, and its number at @level (proc_at_level).  -ESRCH when it was not met, or
 * has gone. */
int ckpt_foreseen_count(const struct ckpt_foreseen *s, pid_t pid, size_t level, pid_t *ret_number);
/*
 * True if it has slept since it was looked at.  *ret_ns is then what ckpt_restart_asleep would say;
 * *ret_all_the_time: since it was met.
 */
bool ckpt_foreseen_asleep(
	const struct ckpt_foreseen *s, pid_t tid, uint64_t *ret_ns, bool *ret_all_the_time);
/* Its status now.  -ESRCH when it was not met, or has gone. */
int ckpt_foreseen_status(const struct ckpt_foreseen *s, pid_t tid, struct proc_status *ret);

#endif
