/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * careful - steps in which something of the session's is in our hands only: what waits in a message
 * queue or a terminal can't be looked at, only taken out and put back.
 *
 * Such a step runs in a child of its own.  If the caller is killed the child goes on to its end.
 * If the child is killed the caller does the rest, by what it noted in memory that both share.  The
 * tasks stand still in the second case; in the first they run already, for the moment it takes.
 */
#ifndef CKPT_CAREFUL_H
#define CKPT_CAREFUL_H

#include <stddef.h>

struct err;

/* Memory that is shared with children, zero; NULL when there is none.  Freed with careful_free. */
void *ckpt_careful_alloc(size_t len);
void ckpt_careful_free(void *shared, size_t len);

/*
 * Runs @step(@shared) in a child.  It notes in *@shared how far it is, and goes on from there when
 * it is called again because the child was killed.  Returns what it returned.
 */
int ckpt_careful(int (*step)(void *shared, struct err *e), void *shared, struct err *e);

#endif
