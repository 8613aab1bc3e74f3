/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * confine - programs that give themselves seccomp filters.  Private to rewrite/.
 *
 * A filter of its own stands on top of the session's: the kernel asks both, and what is stricter
 * counts. So that it can be frozen and moved the rewriter has the task install a form of it with a
 * door (ckpt/filters.h), in the place of its own call; who waits is all tasks of the session that
 * are at a stop, for some 200 us.
 *
 * A filter must decide on the session's numbers.  It does where a call is notified.  Where one
 * stops for its numbers to be replaced it has decided, too, before the stop; but then the kernel
 * asks once more, with what is in the registers by now.  That is why a call whose registers have
 * been replaced goes through the door (calls.c).
 */
#ifndef SUPERVISOR_REWRITE_CONFINE_H
#define SUPERVISOR_REWRITE_CONFINE_H

struct rewrite;

/* 0 or -ENOMEM. */
int confine_begin(struct rewrite *rw);

#endif
