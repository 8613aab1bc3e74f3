/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * starter - a program of a few bytes that executes what pid 1 was asked to start, where paths are
 * rewritten.
 *
 * A child of pid 1 is a copy of it, which nobody may read; but who rewrites what it says has to
 * (rewrite/view/view.h). So the child executes an ELF file made in a memfd, as a seed does
 * (start.c), that holds nothing but arguments, environment and paths, and goes on as any other
 * program of the session.
 */
#ifndef SUPERVISOR_WORLD_STARTER_H
#define SUPERVISOR_WORLD_STARTER_H

#include <stddef.h>

struct init_reply;

struct starter {
	char *const *argv, *const *envp;
	const char *cwd;    /* where to go first; NULL: nowhere */
	char *const *paths; /* tried one after another, as execvp(3) does */
	int status; /* gets a struct init_reply if nothing could be executed, else is closed */
};

/* Does not return but with a negative errno. */
int starter_exec(const struct starter *s);

#endif
