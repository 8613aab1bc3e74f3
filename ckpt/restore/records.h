/* SPDX-License-Identifier: GPL-2.0-or-later */
/* records - the records of an image, read and checked against each other.  Private to ckpt. */
#ifndef CKPT_RESTORE_RECORDS_H
#define CKPT_RESTORE_RECORDS_H

#include "ckpt/build.h"

/*
 * Reads b->in up to its bulk data (or its end): fills records (by kind in table order, then by
 * subject), files, and procs with their threads, none of which exist yet.  Nothing in an image is
 * believed: every count is bounded, every number that is referred to here exists.
 */
int ckpt_records_read(struct ckpt_build *b, struct err *e);
/* "task 12 (mysqld)", "file 3": what a record is about, for errors. */
int ckpt_records_wrap(struct ckpt_build *b, const struct ckpt_record *r, struct err *e);

/* Of kinds/task.c: fills the process from its record, all but `record`.  */
int ckpt_task_read(struct ckpt_record *r, struct ckpt_build_proc *p, struct err *e);

#endif
