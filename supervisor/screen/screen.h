/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * display - a session's display (run --display): the X server inside, and outside the process that
 * shows it to viewers.
 *
 * Both are started and looked after here; docs/display.md has the whole way.
 */
#ifndef SUPERVISOR_SCREEN_SCREEN_H
#define SUPERVISOR_SCREEN_SCREEN_H

#include <stdbool.h>
#include <sys/types.h>

#include "supervisor/disk/record.h"

struct err;
struct session;
struct Pb__Config;

/* Of an image's configuration; -EBADMSG if it is none that --display could have made. */
int screen_check(const struct Pb__Config *c, struct err *e);

/* Before the configuration is recorded: chooses the display's number, and sets DISPLAY and
 * XAUTHORITY.  A session without a display is left alone, here as in all that follows. */
int screen_prepare(struct session *s, struct err *e);

/*
 * The world is made, and nothing runs in it: starts the X server, and calls @then when it is ready
 * for clients, or with what went wrong.  Returns 1 when @then will be called, 0 for a session
 * without a display, a negative errno.
 */
int screen_begin(struct session *s, void (*then)(struct session *s, struct err *e), struct err *e);
/* Resumed: the X server is there again, and runs. */
void screen_resume(struct session *s);

/*
 * Before a freeze.  Nothing of ours may lead into the session then: calls @then once that is so,
 * and returns 1; or 0 if it is so already.  Not called while an earlier one is unanswered.
 */
int screen_let_go(struct session *s, void (*then)(struct session *s));
/* The session runs; whether it was let go or not. */
void screen_take_up(struct session *s);
/* Where the X server listens, as the session calls it; "" without a display. */
void screen_visited(const struct session *s, char *ret, size_t size);
/* It has another name. */
void screen_renamed(struct session *s);
/* It stands still, and stays so for a while. */
void screen_paused(struct session *s);

/* Pid 1 has told that @vpid has ended: if it was the X server, another one takes its place. */
void screen_exited(struct session *s, pid_t vpid);
/* How many of the session's processes are there for the display only. */
int screen_processes(const struct session *s);

/* The session ends, and @state is what is recorded of it: viewers are told. */
void screen_end(struct session *s, enum record_state state);
/* Waits for the end of the display server. */
void screen_free(struct session *s);

#endif
