/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * enter - asks a question inside a session's namespaces while the one who asks stays outside.
 *
 * Whoever dumps is a process of the host: it can't join namespaces itself (it has no privilege
 * of its own, and must go on seeing the host's /proc).  But it owns the session's user namespace,
 * so a forked child may join that first and then all the others.  The child runs one function and
 * hands back what it writes: bytes, and descriptors made inside.
 *
 * The child is a copy of the caller at the time of the call: it sees the caller's memory and has
 * its descriptors.  It must not use the tracer's remotes.
 *
 * To copy a process that is busy with a session, and has a thread beside it, takes longer than most
 * answers: page tables are copied, and every page that is written to from then on, each with an
 * interrupt to the other CPU.  Where the caller waits anyway the child can share the caller's memory
 * (ckpt_enter_call).
 */
#ifndef CKPT_ENTER_H
#define CKPT_ENTER_H

#include <sched.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/base.h"
#include "ckpt/ckpt.h"

/*
 * What runs inside: answers over @sock (a stream socket to the caller) with io_write_full and
 * io_send_fds.  A failure is carried to ckpt_enter_end in @e.
 */
typedef int (*ckpt_enter_fn)(int sock, void *ctx, struct err *e);

struct ckpt_enter {
	pid_t pid;
	int sock;   /* the caller's end: read the answer from it */
	int status; /* where the outcome comes from */
};

/*
 * Forks a child that joins those of @w's namespaces which @namespaces (CLONE_NEW*, always with
 * the user namespace) names, as far as the session has its own, and runs @run in it.  Returns as
 * soon as it has been forked.  With CLONE_NEWPID @run has a number of the session's own.
 */
int ckpt_enter_begin(struct ckpt_enter *ret, const struct ckpt_world *w, int namespaces,
	ckpt_enter_fn run, void *ctx, struct err *e);
/* Closes the socket, waits for the child's end and returns how @run ended, with its story. */
int ckpt_enter_end(struct ckpt_enter *en, struct err *e);

/* Both at once for an answer of bytes (at most @max) and nothing else, appended to @ret. */
int ckpt_enter_read(const struct ckpt_world *w, int namespaces, ckpt_enter_fn run, void *ctx,
	size_t max, struct buf *ret, struct err *e);
/* Both at once for an answer of one descriptor, which @run sends with one byte.  Returns it. */
int ckpt_enter_fd(
	const struct ckpt_world *w, int namespaces, ckpt_enter_fn run, void *ctx, struct err *e);

/*
 * Runs @run inside in a child that shares this memory and has descriptors of its own, while this
 * thread sleeps: what it writes is there for the caller, and what it maps stays.  With CLONE_NEWPID
 * it must not allocate: somebody in the session might kill it while it holds a lock.
 */
int ckpt_enter_call(const struct ckpt_world *w, int namespaces,
	int (*run)(void *ctx, struct err *e), void *ctx, struct err *e);

#endif
