// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Guard pages (MADV_GUARD_INSTALL, Linux 6.13) in the middle of a mapping.  There is so much memory
 * that a snapshot copies it by a fork, and looks for its pages there (ckpt/memory/space.c).
 */
#include "tests/state/maps.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

#define MUCH 1024

int main(int argc, char **argv)
{
	uint8_t *p = state_map(64), *much = state_map(MUCH);
	int have;

	memset(p, 1, 64 * PAGE);
	memset(much, 2, MUCH * PAGE);
	have = madvise(p + 10 * PAGE, 3 * PAGE, MADV_GUARD_INSTALL) == 0;
	if (have)
		STATE_CHECK(madvise(much + 500 * PAGE, PAGE, MADV_GUARD_INSTALL) == 0);
	state_ready(argc, argv);
	STATE_CHECK(state_all(p, 1, 10) && state_all(p + 13 * PAGE, 1, 51));
	STATE_CHECK(state_all(much, 2, 500) && state_all(much + 501 * PAGE, 2, MUCH - 501));
	if (!have)
		return state_ok();
	STATE_CHECK(!state_readable(p + 10 * PAGE) && !state_readable(p + 12 * PAGE));
	STATE_CHECK(!state_readable(much + 500 * PAGE));
	if (madvise(p + 10 * PAGE, 3 * PAGE, MADV_GUARD_REMOVE) < 0)
		return errno == EINVAL ? state_ok() : 1; /* moved to an older kernel */
	STATE_CHECK(state_all(p + 10 * PAGE, 0, 3));
	return state_ok();
}
