// SPDX-License-Identifier: GPL-2.0-or-later
/* Droppable memory (Linux 6.11; vgetrandom keeps its state there) is back, empty or whole. */
#include "tests/state/maps.h"

#ifndef MAP_DROPPABLE
#define MAP_DROPPABLE 0x08
#endif

int main(int argc, char **argv)
{
	uint8_t *p =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS, -1, 0);
	uint8_t *after;

	if (p != MAP_FAILED)
		memset(p, 7, 8 * PAGE);
	state_ready(argc, argv);
	if (p == MAP_FAILED)
		return state_ok();
	for (size_t i = 0; i < 8; i++)
		STATE_CHECK(state_all(p + i * PAGE, 0, 1) || state_all(p + i * PAGE, 7, 1));
	memset(p, 8, 8 * PAGE);
	STATE_CHECK(state_has_flag(p, "wf"));
	after = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_DROPPABLE | MAP_ANONYMOUS, -1, 0);
	STATE_CHECK(state_has_flag(p, "dp") || after == MAP_FAILED); /* moved to an older kernel */
	return state_ok();
}
