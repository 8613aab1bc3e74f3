// SPDX-License-Identifier: GPL-2.0-or-later
/* Guard pages (MADV_GUARD_INSTALL, Linux 6.13) in the middle of a mapping. */
#include "tests/state/maps.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

int main(int argc, char **argv)
{
	uint8_t *p = state_map(64);
	int have;

	memset(p, 1, 64 * PAGE);
	have = madvise(p + 10 * PAGE, 3 * PAGE, MADV_GUARD_INSTALL) == 0;
	state_ready(argc, argv);
	STATE_CHECK(state_all(p, 1, 10) && state_all(p + 13 * PAGE, 1, 51));
	if (!have)
		return state_ok();
	STATE_CHECK(!state_readable(p + 10 * PAGE) && !state_readable(p + 12 * PAGE));
	if (madvise(p + 10 * PAGE, 3 * PAGE, MADV_GUARD_REMOVE) < 0)
		return errno == EINVAL ? state_ok() : 1; /* moved to an older kernel */
	STATE_CHECK(state_all(p + 10 * PAGE, 0, 3));
	return state_ok();
}
