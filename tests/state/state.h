/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * state - the few words every state program says.
 *
 *      int main(int argc, char **argv)
 *      {
 *              ... set the state up ...
 *              state_ready(argc, argv);	// says "ready", waits for the file argv[1]
 *              ... check it with STATE_CHECK(...) ...
 *              return state_ok();
 *      }
 *
 * While it waits it may be suspended, moved and resumed any number of times (tests/state/run.py).
 */
#ifndef TESTS_STATE_STATE_H
#define TESTS_STATE_STATE_H

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define STATE_CHECK(cond)                                                                          \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			printf("FAIL: %s:%d: %s (errno %s)\n", __FILE__, __LINE__, #cond,          \
				strerror(errno));                                                  \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Sleeps 10 ms, through signals. */
static inline void state_nap(void)
{
	struct timespec ts = {.tv_nsec = 10000000};

	nanosleep(&ts, NULL);
}

static inline void state_ready(int argc, char **argv)
{
	STATE_CHECK(argc >= 2);
	printf("ready\n");
	fflush(stdout);
	while (access(argv[1], F_OK) != 0)
		state_nap();
}

static inline int state_remove_entry(
	const char *path, const struct stat *st, int type, struct FTW *where)
{
	return remove(path);
}

/* Removes a directory with all that is in it: natively it is the host's. */
static inline void state_remove(const char *dir)
{
	STATE_CHECK(nftw(dir, state_remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

static inline int state_ok(void)
{
	printf("ok\n");
	fflush(stdout);
	return 0;
}

#endif
