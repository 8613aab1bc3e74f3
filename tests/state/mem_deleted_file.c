// SPDX-License-Identifier: GPL-2.0-or-later
/* Files that are mapped, deleted, and open nowhere: shared by two processes, and private. */
#include <sys/wait.h>

#include "tests/state/maps.h"

static uint8_t *map_deleted(int flags, int byte)
{
	char name[] = "/tmp/mem_deleted.XXXXXX";
	uint8_t page[PAGE];
	int fd = mkstemp(name);
	uint8_t *p;

	STATE_CHECK(fd >= 0);
	memset(page, byte, sizeof(page));
	for (int i = 0; i < 16; i++)
		STATE_CHECK(write(fd, page, PAGE) == (ssize_t)PAGE);
	p = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, flags, fd, 0);
	STATE_CHECK(p != MAP_FAILED && unlink(name) == 0);
	close(fd);
	return p;
}

int main(int argc, char **argv)
{
	uint8_t *shared = map_deleted(MAP_SHARED, 1);
	uint8_t *priv = map_deleted(MAP_PRIVATE, 2);
	pid_t child;
	int status;

	priv[PAGE] = 77;
	shared[2 * PAGE] = 78;
	child = fork();
	if (child == 0) {
		while (access(argv[1], F_OK) != 0)
			state_nap();
		while (shared[3 * PAGE] != 79) /* what the parent writes after it all */
			state_nap();
		shared[4 * PAGE] = 80;
		_exit(priv[PAGE] == 77 && shared[2 * PAGE] == 78 ? 0 : 1);
	}
	state_ready(argc, argv);
	STATE_CHECK(priv[0] == 2 && priv[PAGE] == 77 && priv[PAGE + 1] == 2);
	STATE_CHECK(state_all(priv + 2 * PAGE, 2, 14));
	STATE_CHECK(
		shared[0] == 1 && shared[2 * PAGE] == 78 && state_all(shared + 5 * PAGE, 1, 11));
	shared[3 * PAGE] = 79;
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	STATE_CHECK(shared[4 * PAGE] == 80);
	return state_ok();
}
