/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * memory - what ckpt/kinds/mm.c and its neighbours stand on: pages, mapped files, the vDSO.
 *
 * Private to ckpt.  One header for the small units of ckpt/memory:
 *
 *      pages.c     which pages of a mapping must be written, and writing them
 *      fill.c      pages of an image into a task
 *      file.c      mapped files: described at dump, recognised at restore
 *      vdso.c      the vDSO of the image against the one of this host
 *      layout.c    where an image leaves room
 */
#ifndef CKPT_MEMORY_MEMORY_H
#define CKPT_MEMORY_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ckpt_build;
struct err;

/*
 * Finds @size bytes, page aligned, which no memory space among the image's MM records uses and
 * which lie apart from all of them: room for the executor's pages (struct ckpt_build's area).
 * Only b->records has to be there.
 */
int ckpt_layout_free(struct ckpt_build *b, uint64_t size, uint64_t *ret, struct err *e);

#endif
