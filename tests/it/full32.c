// SPDX-License-Identifier: GPL-2.0-or-later
/* A 32-bit program that leaves no 4 MiB of addresses free, and says so for ever. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	for (size_t size = 64 << 20; size >= 2 << 20; size /= 2)
		while (mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
			MAP_FAILED)
			;
	for (;;) {
		write(1, "tick\n", 5);
		usleep(10000);
	}
}
