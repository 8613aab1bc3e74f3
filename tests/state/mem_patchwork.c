// SPDX-License-Identifier: GPL-2.0-or-later
/* One mapping cut into many by mprotect, with contents behind every protection. */
#include "tests/state/maps.h"

static const int prots[] = {PROT_READ | PROT_WRITE, PROT_READ, PROT_NONE, PROT_READ | PROT_EXEC,
	PROT_READ | PROT_WRITE | PROT_EXEC, PROT_WRITE};
static const char *const shown[] = {"rw-p", "r--p", "---p", "r-xp", "rwxp", "-w-p"};

int main(int argc, char **argv)
{
	uint8_t *p = state_map(600);

	for (size_t i = 0; i < 600; i++)
		memset(p + i * PAGE, (int)i + 1, PAGE);
	for (size_t i = 0; i < 600; i++)
		STATE_CHECK(mprotect(p + i * PAGE, PAGE, prots[i % 6]) == 0);
	STATE_CHECK(munmap(p + 300 * PAGE, PAGE) == 0);
	state_ready(argc, argv);
	for (size_t i = 0; i < 12; i++)
		STATE_CHECK(strstr(state_mapping(p + i * PAGE), shown[i % 6]));
	STATE_CHECK(!state_readable(p + 300 * PAGE));
	for (size_t i = 0; i < 600; i++) {
		if (i == 300)
			continue;
		STATE_CHECK(mprotect(p + i * PAGE, PAGE, PROT_READ) == 0);
		STATE_CHECK(state_all(p + i * PAGE, (int)i + 1, 1));
	}
	return state_ok();
}
