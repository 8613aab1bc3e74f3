/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * screen/place - what a session's own files, its environment and its processes have for its
 * display.
 *
 * The session may put there what it likes: whatever is opened is opened within, and bounded.
 */
#ifndef SUPERVISOR_SCREEN_PLACE_H
#define SUPERVISOR_SCREEN_PLACE_H

#include <stddef.h>
#include <sys/types.h>

struct err;
struct session;
struct Pb__Config;

#define SCREEN_PLACE "podrun-display" /* below the session's /run: its display's directory */

/* The session's own files, with tmp/ and run/; O_PATH.  A descriptor or a negative errno. */
int screen_place_files(const struct session *s);
/* Opens @path below @dir; nothing in there leads out (openat2(2)).  -1 and errno if it fails. */
int screen_place_open(int dir, const char *path, int flags);
/* The last line of SCREEN_PLACE/@log, printable, for people; "" if there is none. */
void screen_place_words(const struct session *s, const char *log, char *ret, size_t size);
/* @text, "NAME=VALUE", is owned from the call on; NULL and no memory: -ENOMEM. */
int screen_place_set(struct Pb__Config *c, const char *name, char *text);
/*
 * Starts @argv inside with the session's environment; what it makes is for its user only. Its virtual
 * number to @ret. A negative errno if it does not start.
 */
int screen_place_spawn(struct session *s, char *const argv[], pid_t *ret, struct err *e);

#endif
