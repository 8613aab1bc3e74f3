/* SPDX-License-Identifier: GPL-2.0-or-later */
/* mqueue - POSIX message queues with names (mqueue.c) and as open files (mqfile.c). */
#ifndef CKPT_KINDS_MQUEUE_H
#define CKPT_KINDS_MQUEUE_H

#include <sys/types.h>

#include "base/base.h"

struct Pb__Mqueue;
struct ckpt_dump;
struct ckpt_world;

#define MQUEUE_MAGIC	0x19800202 /* of its file system: ipc/mqueue.c */
#define MQUEUE_NAME_MAX 255

/* Fills @m (initialised) with attributes and messages of the queue @fd (open for both, not
 * blocking), which has them as before afterwards.  Freed with mqueue_fini. */
int mqueue_read(const struct ckpt_dump *d, int fd, struct Pb__Mqueue *m, struct err *e);
void mqueue_fini(struct Pb__Mqueue *m);
/* Makes a queue that the session calls "/@name".  Returns a descriptor open for both. */
int mqueue_make(
	const struct ckpt_world *w, const char *name, const struct Pb__Mqueue *m, struct err *e);
/*
 * The name to make calls with, with its slash, for what the session calls @name and the other way
 * (without, as /proc tells it): they differ where no ipc namespace holds them.  -ENOENT with a
 * story.
 */
#define MQUEUE_PATH (MQUEUE_NAME_MAX + 2)
int mqueue_host_path(
	const struct ckpt_world *w, const char *name, char ret[MQUEUE_PATH], struct err *e);
int mqueue_name(const struct ckpt_world *w, const char *host, char ret[MQUEUE_PATH], struct err *e);
/* True if @name can be a queue's. */
bool mqueue_check_name(const char *name);

#endif
