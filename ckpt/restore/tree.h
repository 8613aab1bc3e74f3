/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tree - in which order a process tree can be born.  Private to ckpt.
 *
 * A process's parent, session and group are facts of its past: it inherits the session of whoever
 * called clone, and loses its parent when that one ends.  A plan is a list of steps that live,
 * blank processes can take so that at its end every process has the number, parent, session and
 * group it had.  It is a function of numbers alone: the dump makes a plan to find out whether the
 * tree can be rebuilt at all (and throws it away), the restore carries it out
 * (ckpt/restore/grow.c).
 */
#ifndef CKPT_RESTORE_TREE_H
#define CKPT_RESTORE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "ckpt/nested/nested.h"

struct err;

struct ckpt_tree_node {
	pid_t vpid, ppid; /* ppid 1: child of pid 1 */
	pid_t pgid, sid;  /* 0 or 1: those of pid 1 */
	int exit_signal;
	/* The first process that shares these; its own number otherwise. */
	pid_t mm, sighand, files, fs;
	/*
	 * Namespaces within the session's (ckpt/nested/nested.h): which it is in; the sorts (bits)
	 * of those that it came into first; around these, for users and pids; who owns such a pid
	 * namespace.
	 */
	struct ckpt_ns_set ns, outer;
	unsigned founds;
	uint32_t pid_owner, first_user; /* the first user namespace that it makes: there may be several */
};

enum ckpt_tree_op_type {
	CKPT_TREE_SEED,	    /* pid 1 makes @target */
	CKPT_TREE_CHILD,    /* @who makes @target, its child */
	CKPT_TREE_SIBLING,  /* @who makes @target, a child of its own parent */
	CKPT_TREE_ORPHAN,   /* @who makes @target through a child that ends at once; if @adopter is
			     * not 1, that one adopts it */
	CKPT_TREE_SETSID,   /* @who */
	CKPT_TREE_SETPGID,  /* @who joins group @target, or makes it (@who == @target) */
	CKPT_TREE_UNSHARE,  /* @who makes namespaces: @founds */
	CKPT_TREE_END,	    /* @who was there only to lead; @target (not 1) is its parent */
};

struct ckpt_tree_op {
	enum ckpt_tree_op_type type;
	pid_t who, target;
	pid_t adopter;	   /* of ORPHAN */
	int exit_signal;   /* of CHILD; 0 for one that is there only to lead */
	bool share_mm, share_sighand, share_files, share_fs; /* with @who */
	unsigned founds;      /* sorts of namespaces (bits) that a birth or UNSHARE makes */
	uint32_t user;	      /* of a birth: the user namespace that its maker is in */
};

/*
 * Plans for @nodes, sorted by vpid.  The caller frees *ret.  -EOPNOTSUPP when the kernel offers no
 * way to such a tree, -EINVAL when no kernel could have had it.
 */
int ckpt_tree_plan(const struct ckpt_tree_node *nodes, size_t n, struct ckpt_tree_op **ret,
	size_t *ret_n, struct err *e);

#endif
