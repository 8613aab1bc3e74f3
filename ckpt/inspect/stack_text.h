/* SPDX-License-Identifier: GPL-2.0-or-later */
/* stack_text - stacks of threads as text or JSON, of a session or of an image.  Private to ckpt. */
#ifndef CKPT_INSPECT_STACK_TEXT_H
#define CKPT_INSPECT_STACK_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct ckpt_stack_frame {
	int number; /* 0: the innermost */
	uint64_t ip;
	const char *function; /* NULL: unknown */
	uint64_t into;
	const char *file; /* NULL: none */
	uint64_t offset;
};

/* In this order: begin, then per process its line, per thread its head, frames and end; end. */
struct ckpt_stack_text {
	FILE *out;
	bool json; /* an array of threads, each with its frames */
	bool more; /* not the first thread */
};

/* @json: as an array; nothing is kept of @out but the pointer. */
void ckpt_stack_begin(struct ckpt_stack_text *t, FILE *out, bool json);
void ckpt_stack_end(struct ckpt_stack_text *t);
/* @comm: the name the kernel has for it.  @ended: a zombie, which has no stacks. */
void ckpt_stack_process(struct ckpt_stack_text *t, pid_t vpid, const char *comm, bool ended);
void ckpt_stack_thread(struct ckpt_stack_text *t, pid_t vpid, pid_t vtid, const char *comm);
void ckpt_stack_thread_end(struct ckpt_stack_text *t);
/* One frame of the thread begun last, innermost first. */
void ckpt_stack_put(struct ckpt_stack_text *t, const struct ckpt_stack_frame *f);

#endif
