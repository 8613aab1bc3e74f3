/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view/later - answers that may take their time.  Private to rewrite/.
 *
 * Each has a thread of its own, so that nobody else waits: the open of a FIFO whose other side is
 * not there, a file system that is not the session's own, a path that a symlink of the session has
 * led back to the host.  The last is done behind the session's own fence (fence.h): the thread can
 * reach no more than the session.
 *
 * A task that waits for its answer takes no signals but deadly ones (WAIT_KILLABLE_RECV).  So a
 * keeper looks at those threads now and then: one whose task has ended is woken to end as well, one
 * whose task has a signal to take answers that the call was interrupted.
 */
#ifndef SUPERVISOR_REWRITE_VIEW_LATER_H
#define SUPERVISOR_REWRITE_VIEW_LATER_H

struct path_question;

/*
 * The question will be answered; with @path (the session's, absolute) as far as it has been walked.
 * 0, or a negative errno that the call ends with.
 */
int view_later(const struct path_question *p, const char *path);

/*
 * All tasks are to stop: who waits for such an answer makes its call again afterwards.  To be
 * called until they have stopped, for one may be just about to wait.
 */
void view_later_let_go(void);

#endif
