/* SPDX-License-Identifier: GPL-2.0-or-later */
/* view_record - podrun view --record and --replay: a display in a file, and out of it. */
#ifndef SUPERVISOR_CLI_VIEW_RECORD_H
#define SUPERVISOR_CLI_VIEW_RECORD_H

struct err;

/*
 * What the display at @sock shows goes to @path, a new file, until the stream ends or SIGINT,
 * SIGTERM or SIGHUP comes: 0.  The file is made when there is a display; ERR_STATE without one.
 */
int view_record(int sock, const char *path, struct err *e);

/* ERR_USAGE or ERR_NOT_FOUND if @path can't be replayed. */
int view_replay_check(const char *path, struct err *e);
/*
 * A stream socket, the caller's, at whose other end a process plays the recording as it was, and
 * stays until the socket is closed.  The caller does not wait for it (SIGCHLD is ignored).
 */
int view_replay(const char *path, struct err *e);

#endif
