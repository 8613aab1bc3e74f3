// SPDX-License-Identifier: GPL-2.0-or-later
/* The simplest session: one process with memory, that goes on where it stood. */
#include "tests/state/state.h"

int main(int argc, char **argv)
{
	pid_t pid = getpid();
	unsigned *heap = malloc(1u << 20);
	unsigned sum = 0, again = 0;

	for (unsigned i = 0; i < (1u << 18); i++)
		sum += heap[i] = i * 2654435761u;
	state_ready(argc, argv);
	for (unsigned i = 0; i < (1u << 18); i++)
		again += heap[i];
	STATE_CHECK(sum == again);
	STATE_CHECK(pid == getpid());
	return state_ok();
}
