/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * view/question - a call with a path that is answered in the task's place.  Private to rewrite/.
 *
 * These are the frequent ones that only look: open without O_CREAT, stat, access, readlink, getcwd.
 * A path that leads nowhere near the view is the kernel's (CONTINUE); one notification and one look
 * at the task's memory have been paid for it then.
 */
#ifndef SUPERVISOR_REWRITE_VIEW_QUESTION_H
#define SUPERVISOR_REWRITE_VIEW_QUESTION_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/view/view.h"

/* One of them, and where it has led so far. */
struct path_question {
	struct question q;
	struct seccomp_data data; /* what q.data points to, where it outlives the call of the handler */
	const struct path_row *row;
	struct view_place *at;
	int mem; /* the asker's memory, where process_vm_writev is closed to us; -1 */
};

/* What there is to do with a path. */
struct path_row {
	int nr;
	int8_t dirfd, path; /* which arguments; dirfd -1: none */
	unsigned (*how)(const struct seccomp_data *d); /* for view_walk */
	/*
	 * On what p->at is, in a mount or in /proc; on the text of p->at->path where that is the
	 * host's, which may wait.  The result of the call; PATH_LATER: it has to be done where
	 * waiting does no harm.
	 */
	long (*inside)(struct path_question *p);
	long (*outside)(struct path_question *p);
};
#define PATH_LATER (-4096L) /* no errno */

#endif
