/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * fault - named places where a test makes podrun fail or die.
 *
 * Each step of a suspend and of a resume ends with a row of the table in fault.c.  Nothing happens
 * there unless the supervisor was started with PODRUN_TEST_FAULT, the path of a file with one line:
 *
 *      POINT ACTION [N]        at the N-th time (1) that POINT is passed
 *
 *      fail                    the step fails with -EIO, "fault at POINT"
 *      kill                    SIGKILL to the process that is there
 *      kill-supervisor         SIGKILL to the supervisor, whose worker comes by
 *      kill-client             SIGKILL to the command that asked for the operation
 *      kill-worker             SIGKILL to the worker, whose child comes by, once it waits for that
 *      stop                    SIGSTOP to the process that is there, until a test has looked
 *
 * The supervisor reads the file when an operation begins; its worker inherits what it read.
 * tests/state/faults.py walks the table, which the program tests/fault_points prints.
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

enum fault_point {
	FAULT_FREEZE_BEGIN,
	FAULT_FREEZE_SWEPT,
	FAULT_FREEZE_QUIESCE,
	FAULT_FREEZE_SURVEY,
	FAULT_FREEZE_MEMORY,
	FAULT_FREEZE_NETWORK,
	FAULT_FREEZE_FILES,
	FAULT_FREEZE_PLAN,
	FAULT_SUSPEND_FROZEN,
	FAULT_WRITE_BEGIN,
	FAULT_WRITE_FRONT,
	FAULT_WRITE_RECORD,
	FAULT_WRITE_ASKED,
	FAULT_WRITE_SENT,
	FAULT_WRITE_PUT,
	FAULT_WRITE_RECORDS,
	FAULT_WRITE_DATA,
	FAULT_WRITE_THAW,
	FAULT_WRITE_FINISH,
	FAULT_WRITE_SYNC,
	FAULT_SUSPEND_WRITTEN,
	FAULT_SUSPEND_PLACED,
	FAULT_SUSPEND_RECORDED,
	FAULT_END_BEGIN,
	FAULT_END_KILLED,
	FAULT_SUSPEND_ENDED,
	FAULT_RESTORE_BEGIN,
	FAULT_RESTORE_FRONT,
	FAULT_RESUME_IMAGE,
	FAULT_RESTORE_UNPACK,
	FAULT_RESUME_UNPACKED,
	FAULT_RESUME_WORLD,
	FAULT_RESTORE_READ,
	FAULT_RESTORE_WORLD,
	FAULT_RESTORE_TASKS,
	FAULT_RESTORE_RECORD,
	FAULT_RESTORE_CREATE,
	FAULT_RESTORE_DATA,
	FAULT_RESTORE_LINK,
	FAULT_RESTORE_FINISH,
	FAULT_RESUME_RESTORED,
	FAULT_RESUME_NAMED,
	FAULT_RESUME_LISTENING,
	FAULT_RESUME_CONSUMED,
	FAULT_RELEASE_BEGIN,
	FAULT_RELEASE_HALF,
	FAULT_RESUME_RELEASED,
	FAULT_TAKE_QUEUE,
	FAULT_TAKE_TERMINAL,
	FAULT_COPY_HELPED,
	FAULT_AHEAD_BEGIN,
	FAULT_AHEAD_WATCHED,
	FAULT_AHEAD_ROUND,
	FAULT_AHEAD_READY,
	FAULT_AHEAD_ARRIVED,
	FAULT_POINT_MAX
};

/* One row of the table. */
struct fault_info {
	const char *name;
	const char *ways; /* the operations that always come by: "suspend snapshot", "resume" */
	bool worker;	  /* in a worker, else in the supervisor itself */
	bool fails;	  /* the step can still fail; else it can only die */
};
const struct fault_info *fault_info(enum fault_point p);

/*
 * In a fresh worker, or one that has read the file by itself: it is this one that kill-worker
 * kills.
 */
void fault_in_worker(void);
/* In a worker that has nothing more to do until its child has ended. */
void fault_worker_waits(void);
/* Reads the file of PODRUN_TEST_FAULT.  @client: who asked for the operation, 0 if nobody. */
void fault_load(pid_t client);

extern _Atomic bool fault_armed; /* private to fault_at */
int fault_strike(enum fault_point p, struct err *e);
/* Is it @p that may fail?  For who does things otherwise where other points are tried. */
bool fault_may_fail(enum fault_point p);

/* 0, or the failure that is due here. */
static inline int fault_at(enum fault_point p, struct err *e)
{
	return fault_armed ? fault_strike(p, e) : 0;
}

#endif
