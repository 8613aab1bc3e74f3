// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What forks have in common: pages that neither has written to, and who writes one after a move has
 * it to himself.  And what madvise says about fork: DONTFORK and WIPEONFORK, with contents, after a
 * move.  It is large enough that a snapshot takes its mappings as they were before it was stopped
 * (ckpt/memory/before.c).
 */
#include <sys/wait.h>

#include "tests/state/maps.h"

#define COMMON 16
#define MUCH   1024

/* Ends with 0 if it has what it should, and what its parent writes meanwhile is not seen. */
static pid_t start_child(uint8_t *common, int from_child[2], int to_child[2])
{
	pid_t pid = fork();
	char c;

	if (pid)
		return pid;
	memset(common + 4 * PAGE, 6, 4 * PAGE);
	STATE_CHECK(write(from_child[1], "r", 1) == 1);
	STATE_CHECK(read(to_child[0], &c, 1) == 1);
	STATE_CHECK(state_all(common, 5, 4) && state_all(common + 4 * PAGE, 6, 4) &&
		    state_all(common + 8 * PAGE, 5, 8));
	memset(common + 12 * PAGE, 9, 2 * PAGE);
	STATE_CHECK(write(from_child[1], "r", 1) == 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	uint8_t *dont = state_map(4), *wipe = state_map(4), *plain = state_map(4);
	uint8_t *common = state_map(COMMON), *much = state_map(MUCH);
	int from_child[2], to_child[2], status;
	pid_t child, other;
	char c;

	memset(dont, 1, 4 * PAGE);
	memset(wipe, 2, 4 * PAGE);
	memset(plain, 3, 4 * PAGE);
	memset(much, 4, MUCH * PAGE);
	STATE_CHECK(madvise(dont, 4 * PAGE, MADV_DONTFORK) == 0);
	STATE_CHECK(madvise(wipe, 4 * PAGE, MADV_WIPEONFORK) == 0);
	memset(common, 5, COMMON * PAGE);
	STATE_CHECK(pipe(from_child) == 0 && pipe(to_child) == 0);
	other = start_child(common, from_child, to_child);
	STATE_CHECK(read(from_child[0], &c, 1) == 1);
	memset(common + 8 * PAGE, 7, 2 * PAGE);
	state_ready(argc, argv);
	STATE_CHECK(state_all(dont, 1, 4) && state_all(wipe, 2, 4) && state_all(plain, 3, 4));
	STATE_CHECK(state_all(much, 4, MUCH));
	STATE_CHECK(state_has_flag(dont, "dc") && state_has_flag(wipe, "wf"));
	memset(common, 8, PAGE);
	STATE_CHECK(write(to_child[1], "g", 1) == 1 && read(from_child[0], &c, 1) == 1);
	STATE_CHECK(state_all(common, 8, 1) && state_all(common + PAGE, 5, 7) &&
		    state_all(common + 8 * PAGE, 7, 2) && state_all(common + 10 * PAGE, 5, 6));
	STATE_CHECK(waitpid(other, &status, 0) == other && status == 0);
	child = fork();
	if (child == 0) {
		if (state_readable(dont))
			_exit(1);
		if (!state_all(wipe, 0, 4))
			_exit(2);
		_exit(state_all(plain, 3, 4) ? 0 : 3);
	}
	STATE_CHECK(waitpid(child, &status, 0) == child);
	STATE_CHECK(status == 0);
	return state_ok();
}
