// SPDX-License-Identifier: GPL-2.0-or-later
/* Anonymous private memory: touched, untouched, touched with zeros, given back. */
#include "tests/state/maps.h"

int main(int argc, char **argv)
{
	uint8_t *p = state_map(4096);

	for (size_t i = 0; i < 1000; i++)
		memset(p + i * 3 * PAGE, (int)i, PAGE);
	memset(p + 3500 * PAGE, 7, 100 * PAGE);
	STATE_CHECK(madvise(p + 3520 * PAGE, 10 * PAGE, MADV_DONTNEED) == 0);
	memset(p + 3800 * PAGE, 0, 100 * PAGE);
	state_ready(argc, argv);
	for (size_t i = 0; i < 1000; i++) {
		STATE_CHECK(state_all(p + i * 3 * PAGE, (int)i, 1));
		STATE_CHECK(state_all(p + (i * 3 + 1) * PAGE, 0, 2));
	}
	STATE_CHECK(state_all(p + 3500 * PAGE, 7, 20));
	STATE_CHECK(state_all(p + 3520 * PAGE, 0, 10));
	STATE_CHECK(state_all(p + 3530 * PAGE, 7, 70));
	STATE_CHECK(state_all(p + 3800 * PAGE, 0, 100));
	/* true anonymous memory: what is given back is zero, and it may grow and move */
	STATE_CHECK(madvise(p, PAGE, MADV_DONTNEED) == 0 && state_all(p, 0, 1));
	p = mremap(p, 4096 * PAGE, 8192 * PAGE, MREMAP_MAYMOVE);
	STATE_CHECK(p != MAP_FAILED && state_all(p + 3 * PAGE, 1, 1));
	p[8191 * PAGE] = 1;
	return state_ok();
}
