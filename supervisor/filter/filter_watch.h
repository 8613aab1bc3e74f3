/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter_watch - the part of a session's filter that is made when memory is mapped from its image.
 *
 * It notifies the calls for which a private mapping of a file is not the same as anonymous memory,
 * where they touch what is mapped (supervisor/mapped.h).
 */
#ifndef SUPERVISOR_FILTER_FILTER_WATCH_H
#define SUPERVISOR_FILTER_FILTER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct ckpt_mapped;
struct seccomp_data;

/* Appends the instructions that go in front of another program, for @m's ranges and cookie. */
void filter_watch(struct buf *b, const struct ckpt_mapped *m);
/* The numbers of all calls that it may notify, at most @max; is @nr one of them? */
size_t filter_watched_calls(long *ret, size_t max);
bool filter_watches(int nr);
/* The memory that a notified call is about; false: all of its process, or anybody's. */
bool filter_watched_range(const struct seccomp_data *d, uint64_t *ret_start, uint64_t *ret_end);

#endif
