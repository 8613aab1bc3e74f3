/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ahead - what of a session's memory has been copied while it ran, as the dump sees it.
 */
#ifndef CKPT_MEMORY_AHEAD_H
#define CKPT_MEMORY_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct ckpt_ahead;
struct ckpt_proc;
struct err;
struct proc_vma;

/* How it goes, from round to round. */
struct ckpt_ahead_course {
	uint64_t before, least; /* bytes, that the round before found, and any round */
	unsigned stuck;		/* rounds on end that found nearly as much as the one before */
};
/* The next round has found so many bytes.  True if it does not get less. */
bool ckpt_ahead_stuck(struct ckpt_ahead_course *c, uint64_t found);

/* All of these: NULL is fine, and means that nothing was. */

/*
 * All stand still, until the other is called: what was written to since is copied by a thread, which has
 * the writer to itself.  Nothing is where that can't be told at any time, or would take long: it comes
 * with the session then.  If it fails, a negative errno from the end and from all that follow, the image is
 * good for nothing.  Ending what was not begun, or has ended, is no failure.
 */
void ckpt_ahead_begin_last(struct ckpt_ahead *a);
int ckpt_ahead_end_last(struct ckpt_ahead *a, struct err *e);

/* The number of @p's memory space; 0: nothing of it was copied. */
uint64_t ckpt_ahead_space(const struct ckpt_ahead *a, const struct ckpt_proc *p);
/* Is this mapping (of smaps) one whose pages may have been? */
bool ckpt_ahead_watches(const struct ckpt_ahead *a, const struct proc_vma *v);
/*
 * Of such a mapping of a process that has a space: pages (struct ckpt_run) to be copied now, those
 * that are as they were copied, guard pages.
 */
int ckpt_ahead_look(const struct ckpt_ahead *a, int pagemap, const struct proc_vma *v,
	struct buf *pages, struct buf *kept, struct buf *guards, struct err *e);

#endif
