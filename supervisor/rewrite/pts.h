/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * pts - numbers of terminals where the session has no devpts of its own.  Private to rewrite/.
 *
 * A terminal's number is a name: programs keep /dev/pts/N.  New ones have the host's, and nothing
 * is to be done, until one has to have another:
 *
 *      rebuilt          N is as it was, the host's M is any that was free
 *      new              the host has given it M, by which the session calls another: it gets the lowest
 *                       N that neither the session nor the host has just now
 *
 * Such a pair is an entry of the view (view.h), /dev/pts/N at /dev/pts/M, whose descriptor is the
 * terminal itself: the entry leads to this one and no other, and to nothing when it is gone.  What
 * is gone gives its number to the next that comes by it.  An entry is never taken away, only led
 * elsewhere, in one step each for its descriptor and its text: threads that answer (view/later.h)
 * look at it without a lock.
 *
 * The session is told numbers in two ways: by TIOCGPTN, where the host's comes from what the
 * descriptor is and not from memory, and by links of /proc.  Either way it holds the terminal.
 *
 * Seen as the host's are still: the listing of /dev/pts, device numbers (st_rdev, tty_nr), and
 * tty-index in fdinfo. What is opened by its number here is opened by the rewriter, and so becomes
 * nobody's controlling terminal.
 */
#ifndef SUPERVISOR_REWRITE_PTS_H
#define SUPERVISOR_REWRITE_PTS_H

#include <sys/user.h>

struct rewrite;
struct task;
struct view;

/*
 * The host's terminal @host, which is there, has been rebuilt as @number.  -EEXIST: there is such a
 * one.
 */
int pts_born(struct view *v, unsigned number, unsigned host);
/* At the exit of TIOCGPTN: the number that the kernel has written becomes the session's. */
void pts_told(struct rewrite *rw, const struct task *task, struct user_regs_struct *regs);

#endif
