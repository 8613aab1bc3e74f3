/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * procfs/way - from a path below /proc to what it names.  Private to rewrite/.
 *
 *      "self/status"        a node
 *      "12/cwd/src/a.c"     a jump: a descriptor of what cwd is, "src/a.c" is left
 *      "12/root/etc/hosts"  elsewhere: "/etc/hosts", to be resolved from the session's root
 *      "../etc/hosts"       elsewhere: the same
 */
#ifndef SUPERVISOR_REWRITE_PROCFS_WAY_H
#define SUPERVISOR_REWRITE_PROCFS_WAY_H

#include "supervisor/rewrite/procfs/node.h"

enum procfs_end {
	PROCFS_NODE, /* in /proc: node */
	PROCFS_JUMP, /* fd (O_PATH) is what a magic link leads to, rest is left below it ("": nothing) */
	PROCFS_ELSEWHERE, /* rest is an absolute path of the session */
};

struct procfs_way {
	enum procfs_end end;
	struct procfs_node node;
	int fd;
	char rest[PATH_MAX];
};

/*
 * Follows @path, relative to /proc, as @asker would.  @follow: a link at its end, too (one with a
 * slash behind it is followed always).  0, or the error that the call returns.  Finish with
 * procfs_way_fini, what failed as well.
 */
int procfs_walk(struct procfs *p, const struct task *asker, const char *path, bool follow,
	struct procfs_way *ret);
void procfs_way_fini(struct procfs_way *w);
#define _cleanup_way_ __attribute__((cleanup(procfs_way_fini)))

#endif
