// SPDX-License-Identifier: GPL-2.0-or-later
/* Shared anonymous memory between parent and child; they go on writing to each other. */
#include <signal.h>
#include <sys/wait.h>

#include "tests/state/maps.h"

int main(int argc, char **argv)
{
	volatile uint32_t *p =
		mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t seen;
	pid_t child;

	STATE_CHECK(p != MAP_FAILED);
	memset((void *)(p + 1024 * 100), 5, 100 * PAGE);
	child = fork();
	if (child == 0) {
		/* its window is smaller */
		munmap((void *)(p + 1024 * 500), 524 * PAGE);
		for (;;) {
			p[0]++;
			p[1024 * 499] = p[1]; /* what the parent says */
			state_nap();
		}
	}
	p[1024 * 800] = 77;
	state_ready(argc, argv);
	STATE_CHECK(state_all((void *)(p + 1024 * 100), 5, 100));
	STATE_CHECK(p[1024 * 800] == 77 && state_all((void *)(p + 1024 * 900), 0, 100));
	seen = p[0];
	for (int i = 0; i < 500 && (p[0] == seen || p[1024 * 499] != 4711); i++) {
		p[1] = 4711;
		state_nap();
	}
	STATE_CHECK(p[0] != seen && p[1024 * 499] == 4711);
	kill(child, 9);
	waitpid(child, NULL, 0);
	return state_ok();
}
