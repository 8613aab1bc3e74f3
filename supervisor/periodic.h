/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * periodic - snapshots from time to time (run --every, --keep).
 *
 * Theory of operation
 *
 * They lie where `podrun snapshot` puts its own, as NAME@N with ever larger N.  Each refers to the
 * one before it for pages that are as they were (ckpt/base.h), the first stands alone.  Of those
 * made by this supervisor so many are kept.  One that is to go while others refer to it is kept
 * under another name, which nobody resumes, until nobody refers to it any more.
 *
 * A time at which something else is going on is passed; one that fails is told in the supervisor's
 * log.
 */
#ifndef SUPERVISOR_PERIODIC_H
#define SUPERVISOR_PERIODIC_H

struct session;

/* The session runs: from now on, if it was asked for. */
void periodic_begin(struct session *s);
/* A snapshot has been written. */
void periodic_done(struct session *s);
/* The file in the images' directory that the snapshot under way may refer to, or NULL. */
const char *periodic_older(const struct session *s);
void periodic_free(struct session *s);

#endif
