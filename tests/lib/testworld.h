/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * testworld - a world without a supervisor, for tests that freeze and rebuild with ckpt alone.
 */
#ifndef TESTS_LIB_TESTWORLD_H
#define TESTS_LIB_TESTWORLD_H

#include <sys/types.h>

#include "supervisor/world/world.h"

struct err;

struct testworld {
	struct world world;
	pid_t answerer; /* lets every notified call go on, 0 if there is no world */
};

/* @files: a directory, for the session's own files.  ERR_HOST where hosts forbid worlds. */
int testworld_make(struct testworld *ret, const char *name, const char *files, struct err *e);
/* Kills all that is in it.  One that was not made is fine. */
void testworld_end(struct testworld *w);

#endif
