/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * supervise - the process that stands behind one session.
 */
#ifndef SUPERVISOR_SUPERVISE_H
#define SUPERVISOR_SUPERVISE_H

/*
 * `podrun supervise`: serves the client at descriptor BACKGROUND_FD (supervisor/background.h),
 * whose first request makes the session, until the session is gone.  Returns the exit code.
 */
int supervise_main(void);

#endif
