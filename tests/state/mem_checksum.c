// SPDX-License-Identifier: GPL-2.0-or-later
/* A hundred megabytes that nothing compresses, changed while it waits. */
#include "tests/state/maps.h"

#define WORDS ((100UL << 20) / 8)

static uint64_t next(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	return *s ^= *s << 17;
}

int main(int argc, char **argv)
{
	uint64_t *p = (uint64_t *)state_map(WORDS * 8 / PAGE), s = 88172645463325252ULL, steps = 0;

	STATE_CHECK(argc >= 2);
	for (size_t i = 0; i < WORDS; i++)
		p[i] = next(&s);
	printf("ready\n");
	fflush(stdout);
	/* a walk that leaves its mark on every page it meets */
	while (access(argv[1], F_OK) != 0) {
		for (int i = 0; i < 64; i++, steps++)
			p[(steps * 513) % WORDS] ^= steps + 1;
		state_nap();
	}
	for (uint64_t i = 0; i < steps; i++)
		p[(i * 513) % WORDS] ^= i + 1;
	s = 88172645463325252ULL;
	for (size_t i = 0; i < WORDS; i++)
		STATE_CHECK(p[i] == next(&s));
	return state_ok();
}
