/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mqueue - POSIX message queues with names (mqueue.c) and as open files (mqfile.c). */
#ifndef CKPT_KINDS_MQUEUE_H
#define CKPT_KINDS_MQUEUE_H

#include <sys/types.h>

#include "base/base.h"

struct Pb__Mqueue;

#define MQUEUE_NAME_MAX 255

/* Fills @m (initialised) with attributes and messages of the queue @fd (open for both, not
 * blocking), which has them as before afterwards.  Freed with mqueue_fini. */
int mqueue_read(int fd, struct Pb__Mqueue *m, struct err *e);
void mqueue_fini(struct Pb__Mqueue *m);
/* Makes a queue "/@name" of this ipc namespace.  Returns a descriptor open for both. */
int mqueue_make(const char *name, const struct Pb__Mqueue *m, struct err *e);
/* True if @name can be a queue's. */
bool mqueue_check_name(const char *name);

#endif
