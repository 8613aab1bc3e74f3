/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * leased - reading files of which the session has a lease.  Private to ckpt.
 *
 * A lease for writing (F_SETLEASE of fcntl(2)) is broken by whoever opens the file, and so would we
 * break it.  The file is read by the open file that has the lease.  Where that can't read - it is
 * for writing only, or wants memory aligned for O_DIRECT - the lease is laid down for as long as it
 * takes, by a task that has the descriptor, because the signal of a lease tells the descriptor by
 * which it was taken.
 */
#ifndef CKPT_SURVEY_LEASED_H
#define CKPT_SURVEY_LEASED_H

#include <fcntl.h>
#include <stdbool.h>

struct ckpt_file;
struct err;

/* True if who opens the file of @f to read it would break a lease that @f has. */
bool ckpt_leased(const struct ckpt_file *f);

/* One that is being read. */
struct ckpt_leased_reading {
	const struct ckpt_file *file;
	bool laid_down;
	int signal; /* with which its end is told, and to whom: forgotten with the lease */
	struct f_owner_ex owner;
};

/*
 * Begins to read the file of @f, of which ckpt_leased is true and whose tasks stand still: 1 if
 * that is to be done by @f's own descriptor, whose position must stay; 0 if the file can be opened,
 * until ckpt_leased_end, which is called in either case.
 */
int ckpt_leased_begin(
	struct ckpt_leased_reading *r, const struct ckpt_file *f, struct err *e);
/* Nobody has the file open any more: takes the lease again.  That somebody was quicker is told in
 * the log only. */
void ckpt_leased_end(const struct ckpt_leased_reading *r);

#endif
