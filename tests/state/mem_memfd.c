// SPDX-License-Identifier: GPL-2.0-or-later
/* memfds: mapped shared and private at once, in two processes; open, and closed everywhere. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/state/maps.h"

struct view {
	uint8_t *shared, *priv;
};

static struct view map_both(int fd)
{
	struct view v;

	STATE_CHECK(fd >= 0 && ftruncate(fd, 64 * PAGE) == 0);
	v.shared = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	v.priv = mmap(NULL, 64 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	STATE_CHECK(v.shared != MAP_FAILED && v.priv != MAP_FAILED);
	memset(v.shared, 1, 8 * PAGE);
	v.shared[40 * PAGE] = 2;
	v.priv[PAGE] = 3;
	return v;
}

static void check(struct view v)
{
	STATE_CHECK(state_all(v.shared, 1, 8) && v.shared[40 * PAGE] == 2);
	STATE_CHECK(state_all(v.shared + 50 * PAGE, 0, 14));
	STATE_CHECK(v.priv[PAGE] == 3 && v.priv[PAGE + 1] == 1 && v.priv[40 * PAGE] == 2);
	/* what is written to the file shows in private pages that were never written */
	v.shared[5 * PAGE] = 9;
	v.shared[PAGE] = 9;
	STATE_CHECK(v.priv[5 * PAGE] == 9 && v.priv[PAGE] == 3);
}

int main(int argc, char **argv)
{
	int open_fd = memfd_create("open", 0), closed_fd = memfd_create("closed", 0);
	struct view a = map_both(open_fd), b = map_both(closed_fd);
	struct stat st;
	pid_t child;
	int status;

	close(closed_fd);
	child = fork();
	if (child == 0) {
		close(open_fd);
		while (access(argv[1], F_OK) != 0)
			state_nap();
		while (a.shared[60 * PAGE] != 1 || b.shared[60 * PAGE] != 1)
			state_nap();
		a.shared[61 * PAGE] = b.shared[61 * PAGE] = 2;
		_exit(a.priv[PAGE] == 3 && b.priv[PAGE] == 3 ? 0 : 1);
	}
	state_ready(argc, argv);
	STATE_CHECK(fstat(open_fd, &st) == 0 && st.st_size == 64 * PAGE);
	check(a);
	check(b);
	STATE_CHECK(pwrite(open_fd, "x", 1, 7 * PAGE) == 1 && a.shared[7 * PAGE] == 'x');
	a.shared[60 * PAGE] = b.shared[60 * PAGE] = 1;
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	STATE_CHECK(a.shared[61 * PAGE] == 2 && b.shared[61 * PAGE] == 2);
	return state_ok();
}
