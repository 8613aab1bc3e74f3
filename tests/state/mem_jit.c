// SPDX-License-Identifier: GPL-2.0-or-later
/* Code made at run time: written, then made executable and no longer writable. */
#include "tests/state/maps.h"

static const uint8_t code[] = {0xb8, 42, 0, 0, 0, 0xc3}; /* mov $42, %eax; ret */

int main(int argc, char **argv)
{
	uint8_t *p = state_map(300);
	int (*f)(void);

	for (size_t i = 0; i < 300; i++) {
		memcpy(p + i * PAGE, code, sizeof(code));
		p[i * PAGE + 1] = (uint8_t)i;
	}
	STATE_CHECK(mprotect(p, 300 * PAGE, PROT_READ | PROT_EXEC) == 0);
	state_ready(argc, argv);
	STATE_CHECK(strstr(state_mapping(p), "r-xp"));
	for (size_t i = 0; i < 300; i++) {
		uint8_t *at = p + i * PAGE;

		memcpy(&f, &at, sizeof(f));
		STATE_CHECK(f() == (int)(i & 255));
	}
	return state_ok();
}
