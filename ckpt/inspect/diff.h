/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * diff - what is not the same in two images of a session.  Private to ckpt.
 *
 * Theory of operation
 *
 * Both images are looked into (ckpt/inspect/inspect.h) and gone through side by side: processes by
 * their number, mappings by address, pages where they are stored in one of the two, descriptors by
 * number, files by path.  What is found is told at once, so nothing is kept but the two images.
 *
 *      diff.c          processes, threads, descriptors, what else they have
 *      diff_memory.c   mappings, and pages of those that both have
 *      diff_files.c    the session's own files
 *      diff_text.c     how it is told: lines, or one JSON object
 *
 * Numbers that an image gives to its open files and objects mean nothing outside of it, and are not
 * compared.
 */
#ifndef CKPT_INSPECT_DIFF_H
#define CKPT_INSPECT_DIFF_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "ckpt/inspect/inspect.h"

struct ckpt_diff_text {
	FILE *out;
	bool json;
	bool any;				 /* something has been told */
	bool more_lists, more_items, more_parts; /* JSON: a comma comes first */
	const char *list;			 /* at the top: "processes", "files", "session" */
	const char *part;			 /* of a process; NULL: none is open */
	pid_t pid;				 /* the process that parts are told of */
	const char *name;			 /* its, borrowed */
	bool headed;				 /* has been told itself */
};

void ckpt_diff_begin(struct ckpt_diff_text *t, FILE *out, bool json);
void ckpt_diff_end(struct ckpt_diff_text *t);
/* What comes now is about these. */
void ckpt_diff_list(struct ckpt_diff_text *t, const char *list);
/* One of them: JSON goes behind its opening brace, text at the beginning of a line. */
FILE *ckpt_diff_item(struct ckpt_diff_text *t);
/* A process of which parts may be told; ends with ckpt_diff_process_end. */
void ckpt_diff_process(struct ckpt_diff_text *t, pid_t pid, const char *name);
void ckpt_diff_process_end(struct ckpt_diff_text *t);
/* Something of that process, in the array @part: as ckpt_diff_item, each line is indented. */
FILE *ckpt_diff_part(struct ckpt_diff_text *t, const char *part);
/*
 * "was" and "is" of what has been begun by one of these, which it ends.  NULL: it was, or is, not
 * there.
 */
void ckpt_diff_change(struct ckpt_diff_text *t, const char *was, const char *is);

/* Mappings of two processes, and memory where both have it. */
int ckpt_diff_memory(
	struct ckpt_diff_text *t, struct ckpt_space *a, struct ckpt_space *b, struct err *e);
int ckpt_diff_files(struct ckpt_diff_text *t, const struct ckpt_inspect *a,
	const struct ckpt_inspect *b, struct err *e);

#endif
