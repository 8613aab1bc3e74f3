/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lookup - the files that the calls of a session are about.  Private to the handlers.
 *
 * All return O_PATH descriptors to close, or a negative errno: then the kernel shall say what is
 * wrong.
 */
#ifndef SUPERVISOR_NAMES_LOOKUP_H
#define SUPERVISOR_NAMES_LOOKUP_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct notify_call;

/* What the task calls @link of its /proc directory ("cwd", "fd/7"). */
int lookup_link(const struct notify_call *c, const char *link);
/* The path at @addr of the task's memory; @empty: an empty one means @dirfd itself. */
int lookup_path(const struct notify_call *c, int dirfd, uint64_t addr, bool follow, bool empty);
/* The directory that the file @fd was found in, and its name there. */
int lookup_name(const struct notify_call *c, int fd, char ret_name[NAME_MAX + 1]);

#endif
