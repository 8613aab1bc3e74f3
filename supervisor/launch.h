/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * launch - the beginning of a session: its name, its world, its command.
 */
#ifndef SUPERVISOR_LAUNCH_H
#define SUPERVISOR_LAUNCH_H

#include <stdbool.h>

struct client;
struct err;
struct session;
struct Pb__Config;
struct Pb__RunRequest;

/* Makes the session that @run asks for and starts its command.  @c is answered, perhaps later. */
void session_start(struct session *s, struct client *c, const struct Pb__RunRequest *run);
/*
 * Makes the world from the config, watches it, and calls @then, at once or later; with the story in
 * @e (err_is) if that failed.
 */
void session_make_world(struct session *s, void (*then)(struct session *s, struct err *e));
/*
 * The same before there is a record, and the session's files: for @c, which the session keeps, and
 * without its filter and connections (world_config.early).  0, or as world_create.
 */
int session_make_early_world(struct session *s, const struct Pb__Config *c, struct err *e);
/*
 * The rest of it, when record, offsets of the clocks, files and what is mapped are there: 0, and @then is called as above;
 * or a negative errno, and it is not.
 */
int session_use_early_world(
	struct session *s, void (*then)(struct session *s, struct err *e), struct err *e);
/* Takes note of everybody whose end pid 1 has told; that of the last one closes the session. */
void session_hear_exits(struct session *s);
/* How many processes it has, without pid 1 and who is there for the display only; 0: who knows. */
int session_left(const struct session *s);
/*
 * While a session is rebuilt: has its pid 1, our child, ended unasked?  All its processes go with it,
 * and what a step of the rebuilding says then comes of that.
 */
bool session_lost_init(struct session *s);
/* Once a rebuilt session runs: of those who had ended before. */
void session_tell_early(struct session *s);

#endif
