/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * walks - whether somebody in a frozen session is on the way through directories, or about to read
 * events.  Private to ckpt.
 */
#ifndef CKPT_SURVEY_WALKS_H
#define CKPT_SURVEY_WALKS_H

#include <stdbool.h>

struct ckpt_dump;

/* True, and logged, if a process holds a directory open of which it has read something. */
bool ckpt_walks(const struct ckpt_dump *d);

/* True, and logged, if a process that is not stopped has an inotify with events
 * that nobody has read. */
bool ckpt_unread(const struct ckpt_dump *d);

#endif
