// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Much memory, so that a resume maps it from the image at first and converts it while this runs:
 * everything that memory can do is done to it all the time, and nothing may show what it is.
 *
 *      still     a pattern that nobody writes to
 *      counted   every page is written to by threads that know what must be in it: a lost write shows
 *      pool      chunks of a pattern, to which system calls are made, one chunk after the other
 *
 * Behind the name of the file to wait for, "calm" keeps it from calls for which all of its memory
 * must be converted at once, and "alone" from having children.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tests/state/maps.h"

#define MIB	(1UL << 20)
#define STILL	(32 * MIB)
#define COUNTED (16 * MIB)
#define CHUNK	(2 * MIB)
#define POOL	(24 * MIB)
#define WRITERS 2
#ifndef PR_SET_VMA
#define PR_SET_VMA	     0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static uint64_t *still, *pool;
static char *counted;
static atomic_bool over;
static bool calm, alone;

static uint64_t *get(size_t len)
{
	void *m = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	STATE_CHECK(m != MAP_FAILED);
	return m;
}

static uint64_t word(uint64_t i)
{
	return (i + 1) * 0x9e3779b97f4a7c15u;
}

static void fill(uint64_t *p, uint64_t from, size_t len)
{
	for (size_t i = 0; i < len / 8; i++)
		p[i] = word(from / 8 + i);
}

static bool holds(const uint64_t *p, uint64_t from, size_t len)
{
	for (size_t i = 0; i < len / 8; i++)
		if (p[i] != word(from / 8 + i))
			return false;
	return true;
}

static bool is_zero(const uint64_t *p, size_t len)
{
	for (size_t i = 0; i < len / 8; i++)
		if (p[i])
			return false;
	return true;
}

/* ---- threads that write --------------------------------------------------------------------- */

static void *write_all(void *arg)
{
	size_t mine = (size_t)(uintptr_t)arg * 64 + 512;

	for (uint64_t round = 0; !over; round++)
		for (size_t at = mine; at < COUNTED; at += PAGE) {
			_Atomic uint64_t *cell = (_Atomic uint64_t *)(counted + at);

			STATE_CHECK(*cell == round);
			*cell = round + 1;
		}
	return NULL;
}

/* ---- system calls --------------------------------------------------------------------------- */

static void forget(uint64_t *p, uint64_t from)
{
	size_t a = 300 * 1024, b = 900 * 1024;

	a -= a % PAGE;
	b -= b % PAGE;
	STATE_CHECK(madvise((char *)p + a, b - a, MADV_DONTNEED) == 0);
	STATE_CHECK(is_zero(p + a / 8, b - a));
	STATE_CHECK(holds(p, from, a));
	STATE_CHECK(holds(p + b / 8, from + b, CHUNK - b));
	fill(p + a / 8, from + a, b - a);
}

static void give_back(uint64_t *p, uint64_t from)
{
	STATE_CHECK(madvise(p, MIB, MADV_FREE) == 0);
	for (size_t at = 0; at < MIB; at += PAGE)
		STATE_CHECK(p[at / 8 + 1] == 0 || p[at / 8 + 1] == word((from + at) / 8 + 1));
	fill(p, from, MIB);
	STATE_CHECK(holds(p, from, CHUNK));
}

/* Moved and made longer: what follows is zero.  Then back to where it was. */
static void move(uint64_t *p, uint64_t from)
{
	uint64_t *q = mremap(p, CHUNK, CHUNK + MIB, MREMAP_MAYMOVE);

	STATE_CHECK(q != MAP_FAILED);
	STATE_CHECK(holds(q, from, CHUNK));
	STATE_CHECK(is_zero(q + CHUNK / 8, MIB));
	STATE_CHECK(mremap(q, CHUNK + MIB, CHUNK, 0) == q);
	if (q != p)
		STATE_CHECK(mremap(q, CHUNK, CHUNK, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p);
	STATE_CHECK(holds(p, from, CHUNK));
}

static void protect(uint64_t *p, uint64_t from)
{
	STATE_CHECK(mprotect((char *)p + 5 * PAGE, 200 * PAGE, PROT_NONE) == 0);
	STATE_CHECK(mprotect((char *)p + 100 * PAGE, 50 * PAGE, PROT_READ | PROT_EXEC) == 0);
	STATE_CHECK(holds(p + 100 * PAGE / 8, from + 100 * PAGE, 50 * PAGE));
	STATE_CHECK(mprotect((char *)p + 5 * PAGE, 200 * PAGE, PROT_READ | PROT_WRITE) == 0);
	STATE_CHECK(holds(p, from, CHUNK));
	fill(p, from, 10 * PAGE);
}

static void in_child(uint64_t *p, uint64_t from)
{
	int status;
	pid_t pid;

	if (alone)
		return;
	STATE_CHECK(madvise(p, 64 * PAGE, MADV_WIPEONFORK) == 0);
	pid = fork();
	STATE_CHECK(pid >= 0);
	if (pid == 0) {
		if (!is_zero(p, 64 * PAGE) || !holds(p + 64 * PAGE / 8, from + 64 * PAGE, MIB))
			_exit(1);
		if (madvise((char *)p + 100 * PAGE, 9 * PAGE, MADV_DONTNEED) ||
			!is_zero(p + 100 * PAGE / 8, 9 * PAGE))
			_exit(2);
		still[5] = 0;
		_exit(holds(still + MIB / 8, MIB, MIB) ? 0 : 3);
	}
	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	STATE_CHECK(madvise(p, 64 * PAGE, MADV_KEEPONFORK) == 0);
	STATE_CHECK(holds(p, from, CHUNK));
}

static void look_from_outside(uint64_t *p, uint64_t from)
{
	static uint64_t copy[64 * PAGE / 8];
	struct iovec local = {copy, sizeof(copy)}, there = {p + 40 * PAGE / 8, sizeof(copy)};

	if (calm)
		return;
	STATE_CHECK(process_vm_readv(getpid(), &local, 1, &there, 1, 0) == sizeof(copy));
	STATE_CHECK(holds(copy, from + 40 * PAGE, sizeof(copy)));
	/* either may be beyond what this user, or this kernel, can do */
	if (mlock(p, 16 * PAGE) == 0)
		STATE_CHECK(munlock(p, 16 * PAGE) == 0);
	if (prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, CHUNK, "chunk") == 0)
		STATE_CHECK(prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, CHUNK, NULL) == 0);
	STATE_CHECK(holds(p, from, CHUNK));
}

static void *call_all(void *arg)
{
	static void (*const calls[])(uint64_t *, uint64_t) = {
		forget, in_child, give_back, move, look_from_outside, protect};
	size_t n = sizeof(calls) / sizeof(calls[0]);

	for (size_t i = 0; !over; i++) {
		uint64_t from = i * 7 % (POOL / CHUNK) * CHUNK;

		STATE_CHECK(holds(pool + from / 8, from, CHUNK));
		calls[i % n](pool + from / 8, from);
	}
	return NULL;
}

/* ---- the test ------------------------------------------------------------------------------- */

/* The break has much behind it, and moves on. */
static void check_break(uint64_t *start)
{
	char *end = sbrk(0);

	STATE_CHECK(holds(start, 0, 4 * MIB));
	STATE_CHECK(sbrk(3 * MIB) == end);
	STATE_CHECK(is_zero((uint64_t *)end, 3 * MIB));
	STATE_CHECK(sbrk(-3 * (long)MIB) == end + 3 * MIB && sbrk(0) == end);
	STATE_CHECK(holds(start, 0, 4 * MIB));
}

static void become_one(const uint64_t *p, size_t len)
{
	unsigned long start, end, ino;

	do { /* while it is converted it is many */
		state_nap();
		STATE_CHECK(sscanf(state_mapping(p), "%lx-%lx %*s %*s %*s %lu", &start, &end,
				    &ino) == 3);
	} while (ino || start > (uintptr_t)p || end < (uintptr_t)p + len);
}

int main(int argc, char **argv)
{
	static char buffer[4096];
	pthread_t threads[WRITERS + 1];
	uint64_t *low;

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	calm = argc > 2 && strcmp(argv[2], "calm") == 0;
	alone = argc > 2 && strcmp(argv[2], "alone") == 0;
	low = sbrk(4 * MIB);
	still = get(STILL);
	pool = get(POOL);
	counted = (char *)get(COUNTED);
	memset(counted, 0xa5, COUNTED);
	for (size_t at = 0; at < COUNTED; at += PAGE)
		memset(counted + at + 512, 0, 64 * WRITERS);
	fill(low, 0, 4 * MIB);
	fill(still, 0, STILL);
	fill(pool, 0, POOL);
	for (uintptr_t i = 0; i < WRITERS; i++)
		STATE_CHECK(pthread_create(&threads[i], NULL, write_all, (void *)i) == 0);
	STATE_CHECK(pthread_create(&threads[WRITERS], NULL, call_all, NULL) == 0);
	state_ready(argc, argv);
	over = true;
	for (int i = 0; i <= WRITERS; i++)
		STATE_CHECK(pthread_join(threads[i], NULL) == 0);
	STATE_CHECK(holds(still, 0, STILL) && holds(pool, 0, POOL));
	for (size_t at = 0; at < COUNTED; at++)
		if (at % PAGE < 512 || at % PAGE >= 512 + 64 * WRITERS)
			STATE_CHECK(counted[at] == (char)0xa5);
	check_break(low);
	become_one(still, STILL);
	return state_ok();
}
