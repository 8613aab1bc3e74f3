/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stash - contents that a snapshot copies while the session stands still, and writes behind that.
 *
 * Theory of operation
 *
 * Shared memory can't be forked: a copy would show what is written later.  To write a gigabyte of it,
 * that is, to look for zeros, hash it and put it into the image, takes a second; to copy it takes a
 * tenth of that, if the room for it has been touched before (reserve.h) and all CPUs copy.  So kinds
 * say what there is to be copied, and where in their record it belongs:
 *
 *      ckpt_stash_pages     pieces of memory are noted, with room for them
 *      ckpt_stash_fill      they are copied, all that wait at the same time
 *      ckpt_stash_file      the same at once, of a file that is about to be closed; or of our own
 *      ckpt_stash_copy      memory
 *      ckpt_stash_write     the session runs: they are written, and the room given back
 *
 * What finds no room any more is written at once, as it is when nobody waits for the end of it (a
 * suspend): kinds write what they are told was not taken.
 */
#ifndef CKPT_MEMORY_STASH_H
#define CKPT_MEMORY_STASH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/kinds.h"

struct ckpt_dump;
struct ckpt_proc;
struct ckpt_run;
struct err;

/* Where copied bytes belong: DATA of a record, at their offset here + @shift. */
struct ckpt_stash_place {
	enum proto_kind kind;
	uint64_t subject, shift;
	bool sparse; /* what is zero need not be written; then all is whole pages */
};

/*
 * Notes @run of @p's memory.  Returns how many bytes from its start on will be copied; the caller has
 * to write the rest.
 */
uint64_t ckpt_stash_pages(struct ckpt_dump *d, const struct ckpt_stash_place *place,
	struct ckpt_proc *p, struct ckpt_run run);
/* Copies all that is noted, while all stand still.  Fails for a task that was killed. */
int ckpt_stash_fill(struct ckpt_dump *d, struct err *e);
/*
 * Copies [from, to) of @fd.  Of these *ret_n bytes from the start on were, or are not there because the
 * file has been cut; the caller has to write the rest.  Fails for a file that can't be read.
 */
int ckpt_stash_file(struct ckpt_dump *d, const struct ckpt_stash_place *place, int fd,
	uint64_t from, uint64_t to, uint64_t *ret_n, struct err *e);
/* The same of @len bytes at @from, as offsets from there on. */
int ckpt_stash_copy(struct ckpt_dump *d, const struct ckpt_stash_place *place, const void *from,
	size_t len, uint64_t *ret_n, struct err *e);
/* All of it into d->out, in the order in which it was noted; pages count in the report. */
int ckpt_stash_write(struct ckpt_dump *d, struct err *e);
void ckpt_stash_free(struct ckpt_dump *d);

#endif
