/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * signals - who sent them.  Private to rewrite/.
 *
 * kill(2) and its like are answered by the rewriter, which sends the signal itself.  The kernel
 * lets it say in the siginfo what it likes, but not that it came from kill(2) (SI_USER, SI_TKILL):
 * so it says SIGNALS_KILL or SIGNALS_TKILL, with the sender's number in the session, and that is
 * turned into the proper code when the signal is delivered.
 */
#ifndef SUPERVISOR_REWRITE_SIGNALS_H
#define SUPERVISOR_REWRITE_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

struct tasks;
struct task;

/* Codes that no kernel and no library uses. */
#define SIGNALS_KILL  (-0x7064)
#define SIGNALS_TKILL (-0x7065)
/*
 * A code that only the kernel may use, N: a task may send it to itself, but not the rewriter in its
 * place. SIGNALS_POSITIVE - N.
 */
#define SIGNALS_POSITIVE (-0x70640000)

/*
 * Makes what the kernel says of a signal what the session is to see.  True if it changed something.
 */
bool rewrite_siginfo(const struct tasks *t, siginfo_t *info);
/* The other way: what has to be queued for the session to see this. */
void rewrite_siginfo_back(const struct tasks *t, siginfo_t *info);

/*
 * As kill(2), tgkill(2) (@tgid 0: tkill) by @sender; numbers of the session.  0 or a negative
 * errno.
 */
int signals_kill(const struct tasks *t, const struct task *sender, pid_t number, int sig);
int signals_tgkill(
	const struct tasks *t, const struct task *sender, pid_t tgid, pid_t tid, int sig);
/* As rt_sigqueueinfo(2) and rt_tgsigqueueinfo(2) (@tgid > 0). */
int signals_queue(const struct tasks *t, const struct task *sender, pid_t tgid, pid_t tid, int sig,
	siginfo_t *info);

#endif
