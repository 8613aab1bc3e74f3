/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of stopped processes in memory of our own; the theory of operation is in aside.c. */
#ifndef CKPT_MEMORY_ASIDE_H
#define CKPT_MEMORY_ASIDE_H

#include <stddef.h>
#include <stdint.h>

struct ckpt_aside; /* those of one process */
struct ckpt_dump;
struct ckpt_pages;
struct ckpt_run;
struct err;

/*
 * When all records are made and nobody has run since: puts the private pages of those processes
 * aside that have no forked copy (p->memory_aside), as far as d->reserve goes.
 */
int ckpt_aside_take(struct ckpt_dump *d, struct err *e);
/* Appends what @pages has at @run, behind all that was put there before. */
int ckpt_aside_put(
	struct ckpt_aside *a, struct ckpt_pages *pages, struct ckpt_run run, struct err *e);
/* A part of one run. */
void ckpt_aside_read(const struct ckpt_aside *a, uint64_t addr, uint8_t *to, size_t len);
/* NULL is fine. */
void ckpt_aside_free(struct ckpt_aside *a);

#endif
