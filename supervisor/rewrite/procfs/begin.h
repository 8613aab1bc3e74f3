/* SPDX-License-Identifier: GPL-2.0-or-later */
/* procfs/begin - gives a rewriter's session its /proc, with what it needs of the other rooms. */
#ifndef SUPERVISOR_REWRITE_PROCFS_BEGIN_H
#define SUPERVISOR_REWRITE_PROCFS_BEGIN_H

struct err;
struct rewrite;

/*
 * In the process that will answer, for as long as it lives; @files is the directory of the
 * session's own files. @rw has its tasks and its view.  0, or a negative errno with @e.
 */
int procfs_begin(struct rewrite *rw, const char *files, struct err *e);

#endif
