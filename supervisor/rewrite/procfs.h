/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procfs - /proc as a session without a pid namespace sees it.  Private to rewrite/.
 *
 * Whoever resolves the session's paths (the view) hands over what is left of a path once it has led
 * into /proc, and gets back a node in it or the way on:
 *
 *      "self/status"        a node                     procfs_open, procfs_stat, ...
 *      "12/cwd/src/a.c"     a jump: a descriptor of what cwd is, "src/a.c" is left
 *      "12/root/etc/hosts"  elsewhere: "/etc/hosts", to be resolved from the session's root
 *      "../etc/hosts"       elsewhere: the same
 *
 * All is found below the host's own /proc, and by way of the table of numbers alone: a number that is
 * not in it leads nowhere, so that nobody but the session's processes is there.  What a node
 * gives when it is opened:
 *
 *      a copy       a file with numbers of tasks in it (status, stat, children, ...) is read, the numbers
 *                   are replaced (procfs_text.h), and a sealed memfd has the result
 *      the file     any other is the host's own, opened for the task; what is checked when it is read or
 *                   written the kernel checks for whoever does that
 *      a directory  one with numbers in it is made right in a tree of empty files (procfs_mirror.h), for
 *                   getdents(2) to list; one without is the host's own
 *
 * The rewriter is an ordinary process of the session's user, and the kernel allows a tracer nothing
 * more in /proc than any other process of that user, so that it can open what the task itself could.
 * Two differences are made good here: pid 1, which is ours, shows only what everybody may read,
 * and Yama's ptrace_scope lets a task open the memory of its descendants only.
 *
 * That the host's number still is the task's is seen behind the open of its directory, which names the
 * task from then on: nobody else is traced by this process.
 *
 * All functions are called with the rewriter's lock held, and wait for nobody.
 */
#ifndef SUPERVISOR_REWRITE_PROCFS_H
#define SUPERVISOR_REWRITE_PROCFS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct err;
struct procfs;
struct task;
struct tasks;

/*
 * What /proc needs from others.  @session_path puts what the session calls the host's path @host into
 * @buf, as readlink(2) would, and returns its length or a negative errno; NULL if they are the same.
 * @sysvipc writes the session's own /proc/sysvipc/@name ("shm", "sem", "msg") behind its heading; NULL: none.
 */
struct buf;
struct procfs_ops {
	int (*session_path)(void *arg, const char *host, char *buf, size_t size);
	int (*sysvipc)(void *arg, const char *name, struct buf *text);
	void *arg;
};

/*
 * @mirror: an absolute path of the host, of a directory that the caller has made, empty, for this alone, and
 * removes (io_rm_rf).  @tasks, @ops are borrowed for as long as it lives.  0, or a negative errno with @e.
 */
int procfs_create(struct procfs **ret, const struct tasks *tasks, const char *mirror,
	const struct procfs_ops *ops, struct err *e);
/* NULL is fine. */
void procfs_free(struct procfs *p);

/*
 * A path of the host that is in the mirror or in the host's /proc, as one below the session's /proc
 * ("" is /proc itself).  This is how what a descriptor or a working directory names is found again.  Its
 * length; -ENOENT if it is neither; -EACCES if it is of a process outside.
 */
int procfs_from_host(const struct procfs *p, const char *host, char *buf, size_t size);

enum procfs_end {
	PROCFS_NODE,	  /* in /proc: node */
	PROCFS_JUMP,	  /* fd (O_PATH) is what a link of a process leads to, rest is left below it ("": nothing) */
	PROCFS_ELSEWHERE, /* rest is an absolute path of the session */
};

struct procfs_node {
	int dir;		     /* O_PATH: the directory of the host's /proc that it is found below */
	char host[PATH_MAX];	     /* its path below that */
	char path[PATH_MAX];	     /* below the session's /proc */
	const struct procfs_row *row; /* what is special about it, or NULL */
	mode_t type;		     /* S_IFDIR, S_IFREG, S_IFLNK */
	pid_t number, thread;	     /* whose it is: as the session says; 0 if nobody's */
};

struct procfs_way {
	enum procfs_end end;
	struct procfs_node node;
	int fd;
	char rest[PATH_MAX];
};

/*
 * Follows @path, relative to /proc, as @asker would.  @follow: a link at its end, too (but for one that ends
 * in a slash, which is followed always).  0, or the error that the call returns.  Finish what was
 * found with procfs_way_fini, which takes what failed as well.
 */
int procfs_walk(struct procfs *p, const struct task *asker, const char *path, bool follow,
	struct procfs_way *ret);
void procfs_way_fini(struct procfs_way *w);
#define _cleanup_way_ __attribute__((cleanup(procfs_way_fini)))

/*
 * What the calls do with a node; each returns the call's result or the error it ends with.
 * procfs_open: @flags as the task gave them; the descriptor is close-on-exec and the caller's, to be handed
 * to the task.  A node that is a link can be opened with O_PATH|O_NOFOLLOW only.
 * procfs_stat: of the node itself.  procfs_access: @mode as access(2).
 */
int procfs_open(struct procfs *p, const struct task *asker, const struct procfs_node *node, int flags);
int procfs_stat(struct procfs *p, const struct procfs_node *node, struct stat *ret);
int procfs_access(struct procfs *p, const struct procfs_node *node, int mode);
int procfs_readlink(struct procfs *p, const struct task *asker, const struct procfs_node *node,
	char *buf, size_t size);

#endif
