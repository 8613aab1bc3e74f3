/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * adopt - what root inside changes of the host's files becomes the session's.
 */
#ifndef SUPERVISOR_NAMES_ADOPT_H
#define SUPERVISOR_NAMES_ADOPT_H

#include <stdbool.h>

struct notify_call;

/*
 * If the file or symlink @fd (O_PATH) is one of the host's on an overlay, puts a copy in its place
 * that is the session's.  True if so: @fd is the old one then.
 */
bool adopt_file(const struct notify_call *c, int fd);

#endif
