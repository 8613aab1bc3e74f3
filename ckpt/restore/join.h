/* SPDX-License-Identifier: GPL-2.0-or-later */
/* join - the builder enters the session it rebuilds, and stays.  Private to ckpt. */
#ifndef CKPT_RESTORE_JOIN_H
#define CKPT_RESTORE_JOIN_H

struct ckpt_build;
struct err;

/*
 * Joins all namespaces of @b's world, with / of pid 1 as root.  The process must have one thread,
 * those of its reader aside: they are ended and started again.  Those of its fillers and of its crew
 * are started, and room is made for as many open files as it has.
 */
int ckpt_join(struct ckpt_build *b, struct err *e);

#endif
