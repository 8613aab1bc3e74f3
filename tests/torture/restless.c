// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in restless.h. */
#include "tests/torture/restless.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const char *self, *directory;
struct board *board;
static uint32_t state;

static const struct worker *const workers[N_WORKERS] = {&worker_memory, &worker_births,
	&worker_executes, &worker_threads, &worker_signals, &worker_files, &worker_streams,
	&worker_connections, &worker_queues, &worker_beat};

void broken(const char *file, int line, const char *what)
{
	int error = errno, fd;
	char text[256];

	snprintf(text, sizeof(text), "FAIL %s:%d: %s (%s), process %d\n", strrchr(file, '/') + 1,
		line, what, strerror(error), getpid());
	fd = openat(AT_FDCWD, "failed", O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (write(STDOUT_FILENO, text, strlen(text)) < 0 || write(fd, text, strlen(text)) < 0)
		errno = error;
	board->failed = 1;
	for (;;)
		pause();
}

unsigned any(unsigned n)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % n;
}

void seed_any(unsigned seed)
{
	state = seed * 2654435761U + 1;
}

uint8_t byte_of(unsigned which, uint64_t at)
{
	uint64_t x = (at / 8 + 1) * 0x9e3779b97f4a7c15u + which;

	x ^= x >> 31;
	return (uint8_t)((x * 0xbf58476d1ce4e5b9u) >> (at % 8 * 8));
}

pid_t fork_child(void)
{
	unsigned seed = any(1u << 20);
	pid_t parent = getpid(), pid = fork();

	HOLDS(pid >= 0);
	if (pid == 0) {
		seed_any(seed);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
	}
	return pid;
}

int reap(pid_t pid)
{
	int status;
	pid_t r;

	HOLDS(pid > 0);
	do
		r = waitpid(pid, &status, 0);
	while (r < 0 && errno == EINTR);
	HOLDS(r == pid);
	return status;
}

static void nap_us(unsigned us)
{
	struct timespec t = {.tv_nsec = us * 1000L};

	nanosleep(&t, NULL);
}

void answer(unsigned which, const struct worker *w)
{
	uint32_t ask = board->ask;

	if (board->said[which] != ask) {
		w->look();
		board->said[which] = ask;
		if (ask == ASK_END)
			exit(0);
	}
	nap_us(any(4) ? any(3000) : 0);
}

void work(unsigned which)
{
	const struct worker *w = workers[which];

	w->begin();
	for (;;) {
		w->step();
		answer(which, w);
	}
}

static void open_board(void)
{
	int fd;

	if (mkdir(directory, 0700) < 0 && errno != EEXIST)
		perror(directory);
	if (chdir(directory) < 0)
		perror(directory);
	fd = open("board", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*board)) < 0)
		perror("board");
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (board == MAP_FAILED) {
		perror("board");
		exit(1);
	}
	close(fd);
}

/* Until all have answered; false if something is broken or has ended. */
static bool ask(uint32_t number)
{
	board->ask = number;
	for (unsigned i = 0; i < N_WORKERS; i++)
		while (board->said[i] != number) {
			if (board->failed || board->end)
				return false;
			nap_us(1000);
		}
	return !board->failed;
}

static int ask_all(bool end)
{
	char text[512];
	ssize_t n;
	int fd;

	if (ask(end ? ASK_END : board->ask + 1))
		return 0;
	fd = open("failed", O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text));
	fprintf(stderr, "%.*s\n", n > 0 ? (int)n : 15, n > 0 ? text : "somebody ended?");
	return 1;
}

static int run_all(unsigned seed)
{
	pid_t pids[N_WORKERS];
	bool right = true;
	int status;

	seed_any(seed);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		pids[i] = fork_child();
		if (pids[i] == 0)
			work(i);
	}
	printf("%-15s\n", "ready");
	fflush(stdout);
	for (unsigned i = 0; i < N_WORKERS; i++) {
		status = reap(pids[i]);
		if (status == 0 && board->ask == ASK_END)
			continue;
		printf("FAIL %s ended with %#x\n", workers[i]->name, status);
		right = false;
		board->end = 1;
	}
	if (right && !board->failed)
		puts("ok");
	return !right || board->failed;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "nothing") == 0)
		return 0;
	if (argc < 3)
		return 2;
	self = argv[0];
	directory = argv[1];
	open_board();
	if (strcmp(argv[2], "ask") == 0 || strcmp(argv[2], "end") == 0)
		return ask_all(strcmp(argv[2], "end") == 0);
	if (argc == 4)
		work((unsigned)atoi(argv[3])); /* by exec */
	return run_all((unsigned)atoi(argv[2]));
}
