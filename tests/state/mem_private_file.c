// SPDX-License-Identifier: GPL-2.0-or-later
/* A file mapped privately: pages that were written are the task's own, others are the file's. */
#include "tests/state/maps.h"

int main(int argc, char **argv)
{
	char name[] = "/tmp/mem_private_file.XXXXXX";
	uint8_t page[PAGE], *p, *ro;
	int fd = mkstemp(name);

	STATE_CHECK(fd >= 0);
	for (int i = 0; i < 32; i++) {
		memset(page, i + 1, PAGE);
		STATE_CHECK(write(fd, page, PAGE) == (ssize_t)PAGE);
	}
	p = mmap(NULL, 32 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	ro = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 8 * PAGE);
	STATE_CHECK(p != MAP_FAILED && ro != MAP_FAILED);
	close(fd);
	p[3 * PAGE] = 200;
	memset(p + 4 * PAGE, 0, PAGE); /* zero, but not the file's */
	ro[2 * PAGE] = 201;
	STATE_CHECK(mprotect(ro, 8 * PAGE, PROT_READ) == 0);
	state_ready(argc, argv);
	for (int i = 0; i < 32; i++)
		STATE_CHECK(i == 3 || i == 4 || state_all(p + i * PAGE, i + 1, 1));
	STATE_CHECK(p[3 * PAGE] == 200 && p[3 * PAGE + 1] == 4);
	STATE_CHECK(state_all(p + 4 * PAGE, 0, 1));
	STATE_CHECK(ro[2 * PAGE] == 201 && ro[0] == 9 && ro[2 * PAGE + 1] == 11);
	STATE_CHECK(madvise(p + 3 * PAGE, PAGE, MADV_DONTNEED) == 0 && p[3 * PAGE] == 4);
	STATE_CHECK(strstr(state_mapping(p), name));
	unlink(name);
	return state_ok();
}
