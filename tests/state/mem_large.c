// SPDX-License-Identifier: GPL-2.0-or-later
/* A mapping of more than the host's memory, mapped in parts that the kernel has made one of. */
#include <sys/sysinfo.h>

#include "tests/state/maps.h"

#define PART (1UL << 30)

int main(int argc, char **argv)
{
	struct sysinfo info;
	size_t n, left = 0;
	char *first, *p;

	STATE_CHECK(sysinfo(&info) == 0);
	n = (info.totalram + info.totalswap) * info.mem_unit / PART + 2;
	/* room for all of it, of which the parts take theirs */
	first = mmap(NULL, n * PART, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	STATE_CHECK(first != MAP_FAILED && munmap(first, n * PART) == 0);
	for (size_t i = 0; i < n; i++) {
		p = mmap(first + i * PART, PART, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
		left += p == MAP_FAILED; /* a host that promises no more than it has */
		if (p != MAP_FAILED)
			p[i] = (char)(i + 1);
	}
	state_ready(argc, argv);
	for (size_t i = 0; i < n - left; i++)
		STATE_CHECK(first[i * PART + i] == (char)(i + 1) && first[i * PART + 5000] == 0);
	STATE_CHECK(left || state_mapping(first + n * PART - 1)[0]);
	if (!left) {
		unsigned long start = strtoul(state_mapping(first), NULL, 16);

		STATE_CHECK(start == strtoul(state_mapping(first + n * PART - 1), NULL, 16));
	}
	return state_ok();
}
