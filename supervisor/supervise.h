/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * supervise - the process that stands behind one session.
 */
#ifndef SUPERVISOR_SUPERVISE_H
#define SUPERVISOR_SUPERVISE_H

struct err;

/*
 * `podrun supervise`: serves the client at descriptor SUPERVISE_FD, whose first request makes the
 * session, until the session is gone.  Returns the exit code.
 */
#define SUPERVISE_FD 3
int supervise_main(void);

/*
 * Starts a supervisor that outlives us: a process of its own session, without our terminal and
 * descriptors.  Returns our end of the first client's socket.
 */
int supervise_start(struct err *e);

#endif
