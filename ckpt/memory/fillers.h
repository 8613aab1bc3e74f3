/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fillers - threads that copy pages of an image into tasks, beside the builder.
 *
 * Theory of operation
 *
 * An image whose digests need not be looked at (this host wrote or verified it) is mapped by
 * the builder, and its pages are copied from there: nothing has to be read first and no buffer
 * waits for its turn, so the builder only says what goes where, and goes on with the mappings
 * of the next process.  In the end it helps until nothing is left:
 *
 *      builder   create 1 | create 2 | create 3 |  ...  | helps
 *      filler               pages of 1    | pages of 2  |  ...
 *
 * What was copied ahead of a session (kept.c) lies in a file likewise, and is copied by all of them.
 *
 * Writing into a task takes the right to trace it, which the builder's threads have with it.
 * What is not writable there is written through /proc/PID/mem, and that some kernels allow to
 * none but the thread that traces (proc_mem.force_override=ptrace).  So what a filler cannot
 * write the builder tries once more, by ckpt_fill, which also says why it fails; until then no
 * filler begins anything further, and of several failures the first in the order of the image
 * is the one that is told.
 *
 * Which of two pieces is written first is left open: two that lie over each other are the
 * caller's to keep apart.
 *
 * The builder forks meanwhile (nested/help.h): fillers hold no lock but their own, and take
 * nothing from the heap.
 */
#ifndef CKPT_MEMORY_FILLERS_H
#define CKPT_MEMORY_FILLERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;
struct ckpt_fillers;

/* Private memory of a task, to be filled: arguments of ckpt_fill. */
struct ckpt_filling {
	pid_t pid, vpid; /* the task; by @proc_fd's numbers */
	int proc_fd;
	int *mem; /* /proc/PID/mem, -1: not open yet; like @data there until the next wait */
	bool writable;
	uint64_t addr;
	const uint8_t *data;
	size_t len;
};

/*
 * As many as there are CPUs besides the caller's; *ret is NULL where there are none, or no
 * memory.  The threads begin with the start, which must come after the process has joined user
 * namespaces, and before it joins one of pids.  NULL is fine everywhere.
 */
struct ckpt_fillers *ckpt_fillers_new(void);
void ckpt_fillers_start(struct ckpt_fillers *f);
/* Is there room for one more? */
bool ckpt_fillers_room(struct ckpt_fillers *f);
/* Fills @w now or later; the caller does something itself where there is no room.  Negative:
 * something has failed. */
int ckpt_fillers_add(struct ckpt_fillers *f, const struct ckpt_filling *w, struct err *e);
/* Until all has been written, helping. */
int ckpt_fillers_wait(struct ckpt_fillers *f, struct err *e);
/* Nothing further is begun, and what has been begun is over when this returns. */
void ckpt_fillers_free(struct ckpt_fillers *f);

#endif
