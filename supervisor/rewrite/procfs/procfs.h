/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procfs - /proc as a session without a pid namespace sees it.  Private to rewrite/.
 *
 * Whoever resolves the session's paths (view.h) hands over what is left of one that has led into
 * /proc and gets back a file there, or the way on (procfs/way.h).  All is found below the host's
 * own /proc, and by way of the table of numbers alone (procfs/node.h): a number that is not in it
 * leads nowhere, so that nobody but the session's processes is there.  What a file gives when it is
 * opened:
 *
 *      a copy       a file with numbers of tasks in it (status, stat, children, ...) is read, the numbers
 *                   are replaced (procfs/text.h), and a sealed memfd has the result
 *      the file     any other is the host's own, opened for the task; what the kernel checks when it is read
 *                   or written it checks for whoever does that
 *      a directory  one with numbers in it is made right in a tree of empty files (mirror.h), for
 *                   getdents(2) to list; one without is the host's own
 *      a magic link leads where the kernel's leads: whoever asked opens that once more
 *
 * The rewriter is an ordinary process of the session's user, and the kernel allows a tracer nothing
 * more in /proc than any other process of that user, so that it can open what the task itself
 * could. Two differences are made good here: pid 1, which is ours, shows only what everybody may
 * read, and Yama's ptrace_scope lets a task open the memory of its descendants only.
 *
 * That a number of the host still is the task's is seen behind the open of its directory, which
 * names the task from then on: nobody else is traced by this process.
 */
#ifndef SUPERVISOR_REWRITE_PROCFS_PROCFS_H
#define SUPERVISOR_REWRITE_PROCFS_PROCFS_H

#include "supervisor/rewrite/procfs/way.h"

struct err;

/*
 * @mirror: an absolute path of the host, of a directory that the caller has made, empty, for this
 * alone, and removes (io_rm_rf).  @tasks, @ops are borrowed for as long as it lives.  0, or a
 * negative errno with @e.
 */
int procfs_create(struct procfs **ret, const struct tasks *tasks, const char *mirror,
	const struct procfs_ops *ops, struct err *e);
/* NULL is fine. */
void procfs_free(struct procfs *p);

/*
 * What the calls do with a node, the rewriter's lock held; each returns the call's result or the
 * error it ends with, and waits for nobody. procfs_open: @flags as the task gave them; the
 * descriptor is close-on-exec and the caller's, to be handed to the task.  A node that is a link
 * can be opened with O_PATH|O_NOFOLLOW only. procfs_stat: of the node itself.  procfs_access: @mode
 * as access(2). procfs_host: the path on the host for what the task does itself (chdir, execve,
 * inotify_add_watch, ...).
 */
int procfs_open(
	struct procfs *p, const struct task *asker, const struct procfs_node *node, int flags);
int procfs_stat(struct procfs *p, const struct procfs_node *node, struct stat *ret);
int procfs_access(struct procfs *p, const struct procfs_node *node, int mode);
int procfs_readlink(struct procfs *p, const struct task *asker, const struct procfs_node *node,
	char *buf, size_t size);
int procfs_host(struct procfs *p, const struct procfs_node *node, char ret[PATH_MAX]);

/*
 * For a session that is put together again: opens what it had open as @path below its /proc
 * (@copied: a copy will do), and makes @fd, which is that, say what is there when all else has been
 * made.  0, a descriptor, or a negative errno.
 */
int procfs_reopen(struct procfs *p, const char *path, int flags, bool copied);
int procfs_settle(struct procfs *p, const char *path, int fd);

#endif
