// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared anonymous memory between parent and child, also by /dev/zero; they go on writing to each
 * other.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/state/maps.h"

int main(int argc, char **argv)
{
	volatile uint32_t *p =
		mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	volatile uint32_t *zero = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	uint32_t seen;
	pid_t child;

	STATE_CHECK(p != MAP_FAILED && zero != MAP_FAILED && close(fd) == 0);
	memset((void *)(zero + 1024), 6, PAGE);
	memset((void *)(p + 1024 * 100), 5, 100 * PAGE);
	child = fork();
	if (child == 0) {
		/* its window is smaller */
		munmap((void *)(p + 1024 * 500), 524 * PAGE);
		for (;;) {
			p[0]++;
			p[1024 * 499] = p[1]; /* what the parent says */
			zero[1024 * 7] = zero[0];
			state_nap();
		}
	}
	p[1024 * 800] = 77;
	state_ready(argc, argv);
	STATE_CHECK(state_all((void *)(p + 1024 * 100), 5, 100));
	STATE_CHECK(p[1024 * 800] == 77 && state_all((void *)(p + 1024 * 900), 0, 100));
	seen = p[0];
	STATE_CHECK(state_all((void *)(zero + 1024), 6, 1) &&
		    state_all((void *)(zero + 2 * 1024), 0, 5));
	p[1] = zero[0] = 4711;
	while (p[0] == seen || p[1024 * 499] != 4711 || zero[1024 * 7] != 4711)
		state_nap();
	kill(child, 9);
	waitpid(child, NULL, 0);
	return state_ok();
}
