// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process with argv[1] MiB of dirty, incompressible memory, and argv[3] (none) of shared, that says when
 * it runs: it writes CLOCK_REALTIME in ns to the file argv[2] every millisecond, so that the time of its
 * first instruction after a resume can be read.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static int fill(size_t len, int flags)
{
	uint64_t *m = mmap(NULL, len, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
	uint64_t x = 88172645463325252u;

	if (m == MAP_FAILED)
		return -1;
	for (size_t i = 0; i < len / 8; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		m[i] = x;
	}
	return 0;
}

int main(int argc, char **argv)
{
	size_t len = (size_t)(argc > 1 ? atol(argv[1]) : 1024) << 20;
	size_t shared = (size_t)(argc > 3 ? atol(argv[3]) : 0) << 20;
	int fd = open(argc > 2 ? argv[2] : "/tmp/beat", O_RDWR | O_CREAT, 0644);
	struct timespec nap = {.tv_nsec = 1000000}, t;

	if (fd < 0 || fill(len, MAP_PRIVATE) < 0 || (shared && fill(shared, MAP_SHARED) < 0))
		return 1;
	printf("ready\n");
	fflush(stdout);
	for (;;) {
		char line[32];
		int n;

		clock_gettime(CLOCK_REALTIME, &t);
		n = snprintf(line, sizeof(line), "%020llu\n",
			(unsigned long long)t.tv_sec * 1000000000u + (unsigned long long)t.tv_nsec);
		if (pwrite(fd, line, (size_t)n, 0) != n)
			return 1;
		nanosleep(&nap, NULL);
	}
}
