// SPDX-License-Identifier: GPL-2.0-or-later
/* The program break: where it stood to the byte, and growing further. */
#include "tests/state/maps.h"

int main(int argc, char **argv)
{
	static char buffer[4096];
	char *start, *end;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer)); /* or it moves the break itself */
	start = sbrk(100001);
	end = sbrk(0);
	STATE_CHECK(start != (void *)-1);
	memset(start, 0x5a, 100001);
	state_ready(argc, argv);
	STATE_CHECK(sbrk(0) == end);
	for (size_t i = 0; i < 100001; i++)
		STATE_CHECK(start[i] == 0x5a);
	STATE_CHECK(sbrk(1 << 20) == end);
	memset(end, 1, 1 << 20);
	STATE_CHECK(strstr(state_mapping(start), "[heap]"));
	return state_ok();
}
