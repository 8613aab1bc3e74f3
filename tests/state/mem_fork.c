// SPDX-License-Identifier: GPL-2.0-or-later
/* What madvise says about fork: DONTFORK and WIPEONFORK, with contents, after a move. */
#include <sys/wait.h>

#include "tests/state/maps.h"

int main(int argc, char **argv)
{
	uint8_t *dont = state_map(4), *wipe = state_map(4), *plain = state_map(4);
	pid_t child;
	int status;

	memset(dont, 1, 4 * PAGE);
	memset(wipe, 2, 4 * PAGE);
	memset(plain, 3, 4 * PAGE);
	STATE_CHECK(madvise(dont, 4 * PAGE, MADV_DONTFORK) == 0);
	STATE_CHECK(madvise(wipe, 4 * PAGE, MADV_WIPEONFORK) == 0);
	state_ready(argc, argv);
	STATE_CHECK(state_all(dont, 1, 4) && state_all(wipe, 2, 4) && state_all(plain, 3, 4));
	STATE_CHECK(state_has_flag(dont, "dc") && state_has_flag(wipe, "wf"));
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
