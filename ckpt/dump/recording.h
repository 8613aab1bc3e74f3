/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * recording - the records of a frozen session, by two threads.  Private to ckpt.
 *
 * Theory of operation
 *
 * What tasks tell of themselves they are asked by the one thread that traces them, which mostly
 * waits for them; so they are copied (memory/fork.c).  What open files are like is asked of
 * duplicates of them, and has this process busy.  Neither needs the other:
 *
 *      tracer     questions to all tasks --> records from these ---.            .--> forks
 *                                                                   \          /
 *      beside     records of files, and others without a task --> children for contents
 *                                                         --> all records written --> contents
 *
 * Of a snapshot, what is written here is only put aside, unless it is much, and hashed and written
 * when the session runs again (proto_writer_put_aside).
 *
 * Forks live until the image is written, and take what they can get of a limit.  So they wait until
 * no record and no contents need a child of ours any more (ckpt/enter.h): a snapshot does not fail
 * for want of one where its copies could be fewer.
 *
 * A kind whose dump enters no task, and leaves alone what others keep in struct ckpt_dump, has
 * `apart` set; of kinds of open files that is so for all.  Records stand in the image in the order
 * in which they always have.
 *
 * Where a session has many of a kind that says so (`many`), who is beside makes their records with
 * as many others as there are CPUs: the tracer mostly has no thousand questions then.
 *
 * When one of them fails the other stops before its next record: nothing of it is wanted any more,
 * and the session stands still.
 *
 * Where names are rewritten one thread does it all, one after the other: what says paths and
 * numbers there belongs to the thread that traces.  So it is where a limit leaves no room for a
 * thread beside the children that records take (the thread itself finds that out, while tasks are
 * asked, and ends), and where a fault is to be tried (base/fault.h): who is killed then is in the
 * middle of nothing else, which has points of its own.  Two are there when a step is to fail that
 * only one of them comes by.
 */
#ifndef CKPT_DUMP_RECORDING_H
#define CKPT_DUMP_RECORDING_H

#include "ckpt/kind.h"

/* A record, from subject to image. */
struct ckpt_item {
	const struct ckpt_kind *kind;
	union ckpt_subject s;
	uint64_t id;
	struct buf body; /* until it is written; free it, whatever happened */
	bool none;	 /* there is nothing to record */
	bool data;	 /* bulk data is still to follow: kind->dump_data */
};

/*
 * Makes and writes (d->out) the records of all @n items, in their order, and the bulk data of those
 * that need no task; of a snapshot, forks the memory that is worth it (ckpt_fork_make).  ->data
 * says of what the caller is to write more.
 */
int ckpt_record_all(struct ckpt_dump *d, struct ckpt_item *items, size_t n, struct err *e);
/* The bulk data of one of them. */
int ckpt_item_data(struct ckpt_dump *d, struct ckpt_item *item, struct err *e);

#endif
