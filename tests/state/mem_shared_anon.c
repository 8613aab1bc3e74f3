// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Shared anonymous memory between parent and child, also by /dev/zero; they go on writing to each
 * other.  Of another that several share none sees all, and some of it nobody.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/state/maps.h"

/* Pages that are seen by each: apart, overlapping, within another's, bridging two. */
static const struct {
	uint32_t from, to;
} windows[] = {{600, 700}, {0, 200}, {100, 300}, {150, 250}, {720, 1024}, {290, 620}};

#define N_WINDOWS (sizeof(windows) / sizeof(*windows))
#define WIDE	  1024

/* Counts in *@says as long as its window shows what it has to. */
static pid_t look_through(volatile uint32_t *wide, uint32_t from, uint32_t to, volatile uint32_t *says)
{
	pid_t child = fork();

	if (child)
		return child;
	if ((from && munmap((void *)wide, from * PAGE) < 0) ||
		(to < WIDE && munmap((void *)(wide + 1024 * to), (WIDE - to) * PAGE) < 0))
		_exit(1);
	for (;;) {
		/* every third page was never touched by anybody */
		for (uint32_t i = from; i < to; i++)
			if (i % 3 && wide[1024 * i] != i + 1)
				_exit(1);
		++*says;
		state_nap();
	}
}

static void make_windows(volatile uint32_t *says, pid_t *ret)
{
	volatile uint32_t *wide = mmap(
		NULL, WIDE * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	STATE_CHECK(wide != MAP_FAILED);
	for (uint32_t i = 0; i < WIDE; i++)
		if (i % 3)
			wide[1024 * i] = i + 1;
	for (size_t k = 0; k < N_WINDOWS; k++)
		ret[k] = look_through(wide, windows[k].from, windows[k].to, &says[k]);
	STATE_CHECK(munmap((void *)wide, WIDE * PAGE) == 0);
}

static void check_windows(volatile uint32_t *says, const pid_t *children)
{
	for (size_t k = 0; k < N_WINDOWS; k++) {
		uint32_t before = says[k];

		while (says[k] == before) {
			STATE_CHECK(waitpid(children[k], NULL, WNOHANG) == 0);
			state_nap();
		}
		kill(children[k], 9);
		waitpid(children[k], NULL, 0);
	}
}

int main(int argc, char **argv)
{
	volatile uint32_t *p =
		mmap(NULL, 1024 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	volatile uint32_t *zero = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pid_t child, children[N_WINDOWS];
	uint32_t seen;

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
	make_windows(p + 8, children);
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
	check_windows(p + 8, children);
	kill(child, 9);
	waitpid(child, NULL, 0);
	return state_ok();
}
