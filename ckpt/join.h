/* SPDX-License-Identifier: GPL-2.0-or-later */
/* join - the builder enters the session it rebuilds, and stays.  Private to ckpt. */
#ifndef CKPT_JOIN_H
#define CKPT_JOIN_H

#include <stddef.h>

struct ckpt_fillers;
struct ckpt_world;
struct err;
struct proto_reader;

/*
 * Joins all namespaces of @w, with / of pid 1 as root.  The process must have one thread, those of
 * @in aside: they are ended and started again.  Those of @fillers (or NULL) are started.
 * @files: so many open files will be held about, for which room is made.
 */
int ckpt_join(const struct ckpt_world *w, struct proto_reader *in, struct ckpt_fillers *fillers,
	size_t files, struct err *e);

#endif
