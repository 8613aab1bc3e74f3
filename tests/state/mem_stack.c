// SPDX-License-Identifier: GPL-2.0-or-later
/* Stacks that grow: the first thread's goes on growing, and so does one made by MAP_GROWSDOWN. */
#include "tests/state/maps.h"

static int deep(int n)
{
	volatile char frame[8192];

	frame[0] = (char)n;
	frame[8191] = (char)n;
	return n ? deep(n - 1) + (frame[0] == (char)n) : 0;
}

int main(int argc, char **argv)
{
	uint8_t *room = mmap(NULL, 8192 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *p = room + 8000 * PAGE;

	STATE_CHECK(room != MAP_FAILED && munmap(room, 8192 * PAGE) == 0);
	p = mmap(p, 16 * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED, -1, 0);
	STATE_CHECK(p != MAP_FAILED);
	memset(p, 1, 16 * PAGE);
	STATE_CHECK(deep(20) == 20);
	state_ready(argc, argv);
	STATE_CHECK(state_has_flag(p, "gd"));
	for (int i = 0; i < 64; i++) /* page by page, as a stack does */
		p[-i * (long)PAGE - 1] = 2;
	STATE_CHECK(state_all(p, 1, 16) && p[-1] == 2);
	STATE_CHECK(strstr(state_mapping(&argc), "[stack]"));
	STATE_CHECK(deep(600) == 600); /* almost five megabytes */
	return state_ok();
}
