/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kind - one sort of kernel object, with everything podrun knows about it in one file.
 *
 * Theory of operation
 *
 * The survey turns a stopped session into processes, threads and open files (ckpt/survey/survey.h).
 * Each kind then says what it needs to: a file of ckpt/kinds/ has both directions and, at its
 * bottom, one `const struct ckpt_kind`.  ckpt/kinds/table.c lists them all; nothing else knows
 * them.
 *
 *      scope     subject of its records     examples
 *      SESSION   0                          sysvipc, hostname, shm tmpfs contents
 *      PROC      virtual pid                signals, timers, rlimits, fs, locks, mm, fdtable
 *      THREAD    virtual tid                regs, sigmask, altstack, robust list, rseq
 *      FILE      file id (survey.h)         regular, pipe, unix, tcp, eventfd, pty ...
 *
 * A record is (kind number, subject, protobuf body); bulk data follows its record as DATA frames
 * with the same kind and subject (ckpt_dump_data).  Numbers are for ever: see proto/kinds.h.
 *
 * Dump:     claim -> gather (both FILE only) -> check -> ask -> dump
 *           all tasks stopped; remote calls allowed
 *           -> leave (FILE only), when the session ends and does not run on
 * Restore:  create -> link -> finish                  each over all records before the next stage
 *
 *      create    makes the object itself; for FILE it returns a descriptor of the builder
 *      link      ties objects together: everything exists, descriptors are in their tasks
 *      finish    what must come last: after memory is in place, just before release
 *
 * Ops return 0 or a negative errno with the story in *e; errors are wrapped by the driver with
 * "task 12 (mysqld) fd 7".
 */
#ifndef CKPT_KIND_H
#define CKPT_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/base.h"
#include "proto/proto.h"

struct ckpt_dump;
struct ckpt_build;
struct ckpt_file;
struct ckpt_proc;
struct ckpt_thread;
struct ckpt_world;

enum ckpt_scope { CKPT_SESSION, CKPT_PROC, CKPT_THREAD, CKPT_FILE };

/* What a kind's ops work on; which member is valid follows from the scope. */
union ckpt_subject {
	struct ckpt_proc *proc;
	struct ckpt_thread *thread;
	struct ckpt_file *file;
};

/* A record as read from an image: bytes owned by the build, valid until it ends. */
struct ckpt_record {
	const struct ckpt_kind *kind;
	uint64_t subject;
	const uint8_t *body;
	size_t len;
	void *state; /* the kind's own, for restore; freed with free() */
};

struct ckpt_kind {
	enum proto_kind number; /* in images, for ever */
	const char *name;	/* in error messages, image show, coverage.md */
	enum ckpt_scope scope;

	/* FILE: true if this open file is mine.  Looks only at @f. */
	bool (*claim)(const struct ckpt_file *f);
	/* FILE: takes up the files that are in flight in this one (ckpt_file_add), before any is
	 * checked.  May be NULL. */
	int (*gather)(struct ckpt_dump *d, union ckpt_subject s, struct err *e);
	/* Can it be frozen, and by this host?  Before anything is written.  May be NULL. */
	int (*check)(struct ckpt_dump *d, union ckpt_subject s, struct err *e);
	/*
	 * SESSION: what can be told only inside the session's ipc and net namespace.  Runs in a helper
	 * there, one for all kinds (ckpt/answers.h); dump finds @answer with ckpt_answer.  May be
	 * NULL.
	 */
	int (*ask)(const struct ckpt_world *w, struct buf *answer, struct err *e);
	/* Fills @body.  A positive return means "nothing to record". */
	int (*dump)(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e);
	/*
	 * With data_apart: when all records are made, takes the children that dump_data needs, so
	 * that it needs none below a limit (ckpt/dump/recording.h).  May be NULL.
	 */
	int (*send_out)(struct ckpt_dump *d, union ckpt_subject s, struct err *e);
	/* After the record has been written: bulk data by ckpt_dump_data.  May be NULL. */
	int (*dump_data)(struct ckpt_dump *d, union ckpt_subject s, struct err *e);
	/* FILE: the image is safe and every task has ended; what must be done to the object before
	 * its last descriptor, ours, is closed.  May be NULL. */
	void (*leave)(struct ckpt_dump *d, const struct ckpt_file *f);
	/* Frees ckpt_dump.kind_state of this kind.  NULL: free() will do. */
	void (*forget)(void *state);

	/* Takes its record apart, into its state, while the world is made; may be NULL. */
	int (*read)(struct ckpt_record *r, struct err *e);
	/* FILE: *ret_fd receives a descriptor owned by the build.  Others: ret_fd is NULL. */
	int (*create)(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e);
	/* A DATA frame of this record, as it passes in the stream, after create. */
	int (*data)(struct ckpt_build *b, struct ckpt_record *r, uint64_t offset, const void *data,
		size_t len, struct err *e);
	int (*link)(struct ckpt_build *b, struct ckpt_record *r, struct err *e);
	int (*finish)(struct ckpt_build *b, struct ckpt_record *r, struct err *e);
	/* FILE: nothing can fail any more, and nothing runs yet.  May be NULL. */
	void (*release)(struct ckpt_build *b, struct ckpt_record *r);
	/*
	 * Its dump, or dump_data, enters no task and leaves alone what other kinds keep: it may run
	 * beside those that do (ckpt/dump/recording.h).  The dump of a FILE kind always may.
	 */
	bool apart, data_apart;
	/*
	 * FILE: its dump takes no child, and may run for several files at the same time.  Its create
	 * and finish have work for ckpt_build.crew, which is there when an image has many of them.
	 */
	bool many;
	bool last; /* its finish tells what tasks are: behind those of all others */

	/*
	 * One line of text about a record, without newline.  @bare: 0 in place of the numbers that
	 * the image gives to its files and objects, which are others in another image of the same
	 * session.  May be NULL.
	 */
	void (*show)(const void *body, size_t len, bool bare, FILE *out);
};

/* The table: walked in this order within every stage. */
extern const struct ckpt_kind *const ckpt_kinds[];
extern const size_t ckpt_n_kinds;
const struct ckpt_kind *ckpt_kind_by_number(uint32_t number);

/* Packs a protobuf message (a pointer to any generated struct's `base`) into @body. */
struct ProtobufCMessage;
int ckpt_pack(const struct ProtobufCMessage *m, struct buf *body, struct err *e);

#endif
