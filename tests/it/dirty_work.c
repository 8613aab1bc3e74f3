// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * dirty_work MIB RATE - a program that knows what its memory must hold, for tests of copies made
 * while it runs.
 *
 * It has MIB of pages, and apart from them how often each was written to, from which its contents
 * follow.  It writes to RATE pages in a second (0: as fast as it can), here and there: new
 * contents, zeros, given back to the kernel, moved to another address and back, mapped anew.  Three
 * threads do that, and children look at what they have inherited.  When /tmp/go is there it looks
 * at all of it and says "ok", and for how long it did not run at most.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE	  4096UL
#define MOVE	  16 /* pages that go together */
#define N_THREADS 3

static uint8_t *memory;
static size_t pages;
static uint32_t *times; /* how often page i was written to; 0: it is zero */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int stop;
static double rate;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint64_t word(size_t page, uint32_t n, size_t i)
{
	uint64_t x = page * 0x9e3779b97f4a7c15u + n * 0xbf58476d1ce4e5b9u + i;

	x ^= x >> 29;
	return x * 0x94d049bb133111ebu | 1;
}

/* The first, the last and one in between: others are left as they were. */
static void write_page(size_t page)
{
	uint64_t *at = (uint64_t *)(memory + page * PAGE);
	uint32_t n = ++times[page];

	if (n == 1)
		for (size_t i = 0; i < PAGE / 8; i++)
			at[i] = word(page, 0, i);
	at[0] = at[511] = word(page, n, 0);
	at[1 + page % 510] = word(page, n, 1);
}

static int is_right(size_t page)
{
	const uint64_t *at = (const uint64_t *)(memory + page * PAGE);
	uint32_t n = times[page];

	for (size_t i = 0; i < PAGE / 8; i++) {
		uint64_t want = !n		      ? 0
				: i == 0 || i == 511  ? word(page, n, 0)
				: i == 1 + page % 510 ? word(page, n, 1)
						      : word(page, 0, i);

		if (at[i] != want) {
			printf("FAIL page %zu word %zu: %lx, not %lx (%u)\n", page, i, (long)at[i],
				(long)want, n);
			return 0;
		}
	}
	return 1;
}

static void die(const char *what)
{
	perror(what);
	_exit(9);
}

static void special(unsigned what, size_t page)
{
	size_t len = MOVE * PAGE;
	uint8_t *at = memory + page * PAGE, *aside;

	if (what == 0) {
		if (madvise(at, len, MADV_DONTNEED) < 0)
			die("madvise");
	} else if (what == 1) {
		memset(at, 0, len);
	} else if (what == 2) {
		if (mmap(at, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
			    -1, 0) != at)
			die("mmap");
	} else {
		/* page by page: a part of it may be another mapping by now */
		for (size_t i = 0; i < MOVE; i++, at += PAGE) {
			aside = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			if (mremap(at, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, aside) != aside ||
				mremap(aside, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
				die("mremap");
		}
		return;
	}
	memset(times + page, 0, MOVE * sizeof(*times));
}

static void have_child_look(unsigned seed)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		for (unsigned i = 0; i < 200; i++)
			if (!is_right((seed + i * 7919u) % pages))
				_exit(1);
		memset(memory, 0x77, MOVE * PAGE);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		die("child");
}

static void *work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	double began = now();
	uint64_t done = 0;

	while (!stop) {
		unsigned r = (unsigned)rand_r(&seed) << 8 ^ (unsigned)rand_r(&seed);

		pthread_mutex_lock(&lock);
		if (r % 4096 == 1)
			have_child_look(r);
		else if (r % 64 == 0)
			special(r >> 6 & 3, r / 256 % (pages - MOVE));
		else
			write_page(r / 4 % pages);
		pthread_mutex_unlock(&lock);
		if (rate > 0 && (double)++done * N_THREADS > (now() - began) * rate)
			usleep(1000);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[N_THREADS];
	double last, longest = 0;

	pages = (size_t)atol(argv[1]) * 256;
	rate = atof(argv[2]);
	memory = mmap(
		NULL, pages * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	times = calloc(pages, sizeof(*times));
	if (memory == MAP_FAILED || !times)
		return 1;
	for (size_t i = 0; i < pages; i++)
		if (i % 16)
			write_page(i);
	for (size_t i = 0; i < N_THREADS; i++)
		pthread_create(&t[i], NULL, work, (void *)(i * 77 + 1));
	printf("ready\n");
	fflush(stdout);
	for (last = now(); access("/tmp/go", F_OK) < 0;) {
		double at;

		usleep(1000);
		at = now();
		longest = at - last > longest ? at - last : longest;
		last = at;
	}
	stop = 1;
	for (size_t i = 0; i < N_THREADS; i++)
		pthread_join(t[i], NULL);
	for (size_t i = 0; i < pages; i++)
		if (!is_right(i))
			return 2;
	printf("longest %.0f\nok\n", longest * 1000);
	return 0;
}
