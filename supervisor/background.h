/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * background - starts a supervisor that outlives whoever asks for it.
 */
#ifndef SUPERVISOR_BACKGROUND_H
#define SUPERVISOR_BACKGROUND_H

struct err;

/* Where a supervisor finds the socket of its first client. */
#define BACKGROUND_FD 3

/*
 * Starts `podrun supervise`: a process of its own session, without our terminal and descriptors.
 * Returns our end of the first client's socket (SOCK_STREAM, close-on-exec), or a negative errno.
 */
int background_start(struct err *e);

#endif
