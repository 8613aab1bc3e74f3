/* SPDX-License-Identifier: GPL-2.0-or-later */
/* grow - the process tree of an image, born anew.  Private to ckpt. */
#ifndef CKPT_RESTORE_GROW_H
#define CKPT_RESTORE_GROW_H

#include "ckpt/build.h"

/*
 * Makes every process and thread of b->procs: blank (no memory but the executor's pages, no
 * descriptor but the one of ckpt/lend.h, all signals blocked and default), stopped, with its
 * remote; zombies are zombies already.  What was made is in b->made also on failure.
 */
int ckpt_grow(struct ckpt_build *b, struct err *e);

/* The first threads of headless processes end; the next one takes the work over. */
int ckpt_grow_heads(struct ckpt_build *b, struct err *e);

#endif
