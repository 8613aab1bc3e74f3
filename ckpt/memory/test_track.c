// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The tracker against a program that does all kinds of things to its memory: what is copied when it
 * is said to have been written to, and is clean in the end, must be what the memory holds then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "ckpt/freeze/visit.h"
#include "ckpt/memory/ahead.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/track.h"
#include "ckpt/remote/testtask.h"
#include "ckpt/survey/survey.h"

#define NO_NAMESPACES                                                                        \
	.ns_user = -1, .ns_pid = -1, .ns_mnt = -1, .ns_net = -1, .ns_ipc = -1, .ns_uts = -1, \
	.ns_time = -1

/* Where the program's memory is; beside it are other mappings of its own. */
#define PLACE	 0x200000000000UL
#define PAGES	 4096UL
#define ASIDE	 (PLACE + 2 * PAGES * PAGE_SIZE)
#define AT(page) ((uint8_t *)(PLACE + (page)*PAGE_SIZE))
#define ROUNDS	 40

static struct shared {
	_Atomic unsigned steps; /* done so far */
	_Atomic bool stop, stopped;
	_Atomic int child; /* it has, or -1 */
	_Atomic bool exec; /* becomes another program */
} * shared;

static uint32_t seed;
static uint32_t next(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 17;
	return seed ^= seed << 5;
}

static void *map_at(void *at, size_t pages)
{
	return mmap(at, pages * PAGE_SIZE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Of several mappings a part may have been moved when it fails (Linux 6.17). */
static bool move_aside(void *at, size_t pages)
{
	size_t len = pages * PAGE_SIZE;

	if (mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, ASIDE) == (void *)ASIDE)
		return true;
	map_at(at, pages);
	return false;
}

/* One thing that programs do to @n pages at @page. */
static void step(size_t page, size_t n)
{
	uint8_t *at = AT(page), *aside = (uint8_t *)ASIDE, *to;
	size_t len = n * PAGE_SIZE;

	switch (next() % 12) {
	case 0:
		madvise(at, len, MADV_DONTNEED);
		break;
	case 1:
		madvise(at, len, MADV_FREE);
		break;
	case 2: /* another memory in the same place */
		map_at(at, n);
		if (next() % 2)
			memset(at, (int)next(), PAGE_SIZE);
		break;
	case 3: /* away and back */
		if (!move_aside(at, n))
			break;
		if (next() % 2)
			aside[next() % len] = (uint8_t)next();
		if (mremap(aside, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
			map_at(at, n);
		break;
	case 4: /* and back to another place */
		if (!move_aside(at, n))
			break;
		map_at(at, n);
		to = AT(next() % (PAGES - n));
		if (mremap(aside, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, to) != to)
			map_at(to, n);
		break;
	case 5: /* zeros are contents, too */
		memset(at, 0, len);
		break;
	case 6: /* read only, and back: nothing may be lost by it */
		mprotect(at, len, PROT_READ);
		mprotect(at, len, PROT_READ | PROT_WRITE);
		break;
	case 7: { /* a child that writes to what it has inherited */
		pid_t pid = fork();

		if (pid == 0) {
			memset(AT(0), 0xee, 64 * PAGE_SIZE);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		break;
	}
	case 8: { /* the kernel writes */
		int fd = open("/dev/urandom", O_RDONLY);

		if (read(fd, at, MIN(len, (size_t)30000)) < 0)
			_exit(14);
		close(fd);
		break;
	}
	default:
		for (size_t i = 0; i < n; i++)
			at[i * PAGE_SIZE + next() % PAGE_SIZE] = (uint8_t)next();
	}
}

static int work(void)
{
	if (map_at(AT(0), PAGES) == MAP_FAILED ||
		prctl(PR_SET_THP_DISABLE, seed >> 1 & 1, 0, 0, 0) < 0)
		return 1;
	for (size_t i = 0; i < PAGES; i++)
		*AT(i) = (uint8_t)next();
	while (!shared->stop) {
		step(next() % (PAGES - 64), 1 + next() % 64);
		shared->steps++;
	}
	shared->stopped = true;
	for (;;)
		pause();
}

/* As in test_dump.c: a pid 1 of sorts with one child. */
static pid_t start(int (*body)(void))
{
	pid_t init = fork();

	if (init == 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			close_range(3, ~0U, 0);
			testtask_filter();
			_exit(body());
		}
		while (wait(NULL) > 0 || errno == EINTR)
			continue;
		_exit(0);
	}
	return init;
}

struct look {
	struct ckpt_track *t;
	pid_t pid;     /* of the first process; its children are of no interest */
	uint8_t *copy; /* of its memory, as it was said to have been written to */
	size_t clean, dirty;
};

static int arm(void *ctx, struct ckpt_dump *d, struct err *e)
{
	return ckpt_track_arm(((struct look *)ctx)->t, d, e);
}

static void copy_runs(struct look *l, pid_t pid, const struct buf *runs)
{
	const struct ckpt_run *v = (const struct ckpt_run *)runs->data;

	for (size_t i = 0; i < runs->len / sizeof(*v); i++) {
		uint64_t from = MAX(v[i].start, PLACE),
			 to = MIN(v[i].end, PLACE + PAGES * PAGE_SIZE);

		for (uint64_t at = from; at < to; at += PAGE_SIZE) {
			struct iovec local = {l->copy + (at - PLACE), PAGE_SIZE},
				     remote = {(void *)at, PAGE_SIZE};

			/* it may be gone by now: then it is not clean in the end */
			if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != PAGE_SIZE)
				memset(local.iov_base, 0x55, PAGE_SIZE);
		}
	}
}

static void take_all(struct look *l)
{
	for (size_t i = 0; i < ckpt_track_count(l->t); i++) {
		_cleanup_buf_ struct buf runs = BUF_INIT;
		struct ckpt_space *s = ckpt_track_at(l->t, i);
		struct err e = {0};

		if (ckpt_track_take(l->t, s, &runs, &e) < 0)
			fail_msg("%s", e.msg);
		l->pid = l->pid ? l->pid : s->pid;
		if (s->pid == l->pid)
			copy_runs(l, s->pid, &runs);
	}
}

static int arm_and_take(void *ctx, struct ckpt_dump *d, struct err *e)
{
	int r = arm(ctx, d, e);

	if (r == 0)
		take_all(ctx);
	return r;
}

static void check_clean(struct look *l, pid_t pid, const struct buf *clean)
{
	const struct ckpt_run *v = (const struct ckpt_run *)clean->data;

	for (size_t i = 0; i < clean->len / sizeof(*v); i++)
		for (uint64_t at = v[i].start; at < v[i].end; at += PAGE_SIZE) {
			uint8_t page[PAGE_SIZE];
			struct iovec local = {page, PAGE_SIZE}, remote = {(void *)at, PAGE_SIZE};

			if (at < PLACE || at >= PLACE + PAGES * PAGE_SIZE)
				continue;
			assert_int_equal(
				process_vm_readv(pid, &local, 1, &remote, 1, 0), PAGE_SIZE);
			if (memcmp(page, l->copy + (at - PLACE), PAGE_SIZE))
				fail_msg("page %lx is said to be clean and is not", at);
			l->clean++;
		}
}

/* All stand still: what is said to be clean is what was copied. */
static int check(void *ctx, struct ckpt_dump *d, struct err *e)
{
	struct look *l = ctx;

	l->clean = l->dirty = 0;
	for (size_t i = 0; i < d->n_procs; i++) {
		struct ckpt_proc *p = d->procs[i];
		struct ckpt_space *s = ckpt_track_of(l->t, p);
		_cleanup_buf_ struct buf dirty = BUF_INIT, clean = BUF_INIT;
		_cleanup_close_ int pagemap = -1;
		struct proc_maps maps;

		if (!s || s->pid != l->pid)
			continue;
		pagemap = proc_open_file(d->host_proc, p->look, "pagemap", O_RDONLY, e);
		assert_int_equal(proc_read_maps(d->host_proc, p->look, true, &maps, e), 0);
		for (size_t k = 0; k < maps.n; k++)
			if (ckpt_track_watches(l->t, &maps.vmas[k]))
				assert_int_equal(ckpt_track_look(l->t, pagemap, &maps.vmas[k],
							 &dirty, &clean, NULL, e),
					0);
		proc_maps_fini(&maps);
		check_clean(l, p->look, &clean);
		for (size_t k = 0; k < dirty.len / sizeof(struct ckpt_run); k++) {
			const struct ckpt_run *run = (const struct ckpt_run *)dirty.data + k;

			l->dirty += (run->end - run->start) / PAGE_SIZE;
		}
	}
	return 0;
}

static void visit(const struct ckpt_world *w, int (*see)(void *, struct ckpt_dump *, struct err *),
	struct look *l)
{
	struct ckpt_dump_options o = {0};
	struct err e = {0};
	uint64_t ns;
	int r;

	do
		r = ckpt_visit(w, &o, see, l, &ns, &e);
	while (r == -EAGAIN);
	if (r < 0)
		fail_msg("%s", e.msg);
}

static void nap(pid_t init)
{
	assert_int_equal(waitpid(init, NULL, WNOHANG), 0);
	usleep(500);
}

static void await_steps(pid_t init, unsigned n)
{
	unsigned then = shared->steps;

	while (shared->steps < then + n)
		nap(init);
}

/*
 * Rounds while it works, a check each few; at last it does nothing, and a round later all is clean.
 */
static void try_way(const char *name)
{
	struct ckpt_world w = {.name = "t", .proc_fd = -1, .root_fd = -1, NO_NAMESPACES};
	struct look l = {.copy = calloc(PAGES, PAGE_SIZE)};
	struct err e = {0};
	pid_t init;

	if (ckpt_track_new(&l.t, name, &e) < 0) {
		print_message("%s: %s\n", name, e.msg);
		free(l.copy);
		skip();
	}
	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	seed = (uint32_t)io_now_ns() | 1;
	print_message("%s, seed %u\n", name, seed);
	init = w.init_pid = start(work);
	await_steps(init, 1);
	for (unsigned i = 0; i < ROUNDS; i++) {
		if (ckpt_track_way(l.t)->while_running) {
			visit(&w, arm, &l);
			await_steps(init, 1);
			take_all(&l);
		} else {
			visit(&w, arm_and_take, &l);
		}
		await_steps(init, 3);
		if (i % 4 == 3)
			visit(&w, check, &l);
	}
	assert_in_range(ckpt_track_count(l.t), 1, 2); /* a child may have been there */
	shared->stop = true;
	while (!shared->stopped)
		nap(init);
	visit(&w, arm_and_take, &l);
	visit(&w, check, &l);
	assert_true(l.clean > PAGES / 8);
	assert_true(l.dirty < 200); /* the stack, and what is not anonymous */
	ckpt_track_free(l.t);
	kill(init, SIGKILL);
	waitpid(init, NULL, 0);
	munmap(shared, sizeof(*shared));
	free(l.copy);
}

static void wp_async_tells_writes(void **state)
{
	try_way("wp_async");
}

static void soft_dirty_tells_writes(void **state)
{
	try_way("soft_dirty");
}

static void unknown_ways_are_refused(void **state)
{
	struct ckpt_track *t;
	struct err e = {0};

	assert_int_equal(ckpt_track_new(&t, "clairvoyance", &e), -EOPNOTSUPP);
}

/* What @n rounds find, up to the one after which it is given up; 0: it is not. */
static size_t given_up_at(const uint64_t *found, size_t n)
{
	struct ckpt_ahead_course c = {0};

	for (size_t i = 0; i < n; i++)
		if (ckpt_ahead_stuck(&c, found[i]))
			return i + 1;
	return 0;
}

static void who_writes_too_fast_is_given_up(void **state)
{
	const uint64_t same[] = {1000, 1000, 1000, 1000}, slowly[] = {1000, 950, 900, 850},
		       levels_off[] = {1000, 300, 100, 98, 99, 97}, there[] = {1000, 300, 100, 30};

	assert_int_equal(given_up_at(same, ARRAY_SIZE(same)), 3);
	assert_int_equal(given_up_at(slowly, ARRAY_SIZE(slowly)), 3);
	assert_int_equal(given_up_at(levels_off, ARRAY_SIZE(levels_off)), 5);
	assert_int_equal(given_up_at(there, ARRAY_SIZE(there)), 0);
}

/* The host is busy with something else: rounds take longer, so there is more to find. */
static void a_busy_moment_is_waited_for(void **state)
{
	const uint64_t passes[] = {1000, 100, 30, 200, 330, 310, 120, 31, 30, 30},
		       stays[] = {1000, 30, 300, 300, 300, 300, 300, 300, 300, 300};

	/* stopped with no more than there was left before */
	assert_int_equal(given_up_at(passes, ARRAY_SIZE(passes)), 10);
	assert_int_equal(given_up_at(passes, ARRAY_SIZE(passes) - 1), 0);
	assert_int_equal(given_up_at(stays, ARRAY_SIZE(stays)), 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_writes_too_fast_is_given_up),
		cmocka_unit_test(a_busy_moment_is_waited_for),
		cmocka_unit_test(wp_async_tells_writes),
		cmocka_unit_test(soft_dirty_tells_writes),
		cmocka_unit_test(unknown_ways_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
