// SPDX-License-Identifier: GPL-2.0-or-later
/* Unit tests of the pages of a memory space: a forked copy tells the same as the task itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "base/base.h"
#include "ckpt/memory/aside.h"
#include "ckpt/memory/memory.h"
#include "ckpt/remote/remote.h"
#include "ckpt/remote/testtask.h"
#include "ckpt/survey/survey.h"

#define PAGES  1024
#define SHARED (33UL << 20)
#define NR(n) ((n)*PAGE_SIZE)

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

static uint8_t *area, *file, *wipe, *shared; /* at the same addresses in the child */
static bool guarded;

/* Before the child is born: where its mappings are. */
static void make_mappings(void)
{
	const int rw = PROT_READ | PROT_WRITE;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	area = mmap(NULL, NR(PAGES), rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	wipe = mmap(NULL, NR(4), rw, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	file = mmap(NULL, NR(4), rw, MAP_PRIVATE, fd, 0);
	shared = mmap(NULL, SHARED, rw, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(area != MAP_FAILED && wipe != MAP_FAILED && file != MAP_FAILED);
	assert_true(shared != MAP_FAILED);
	close(fd);
	guarded = madvise(area + NR(900), NR(2), MADV_GUARD_INSTALL) == 0;
}

static int body(void *arg)
{
	memset(area + NR(3), 1, NR(700));
	memset(area + NR(800), 0, PAGE_SIZE);
	memset(file + NR(1), 2, PAGE_SIZE);
	memset(wipe, 3, NR(2));
	memset(shared, 4, SHARED);
	/* read, not written: the zero page, and one of the file */
	*(volatile uint8_t *)wipe = area[NR(1)] + file[NR(2)];
	madvise(wipe, NR(4), MADV_WIPEONFORK);
	pause();
	return 1;
}

struct scene {
	struct fixture f;
	pid_t child;
	struct ckpt_world world;
	struct ckpt_dump d;
	struct ckpt_proc p, *procs[1];
	struct ckpt_thread t, *threads[1];
};

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));

	make_mappings();
	s->child = testtask_start(body, NULL);
	s->d.host_proc = s->f.proc = proc_open(&s->f.e);
	testtask_await_sleep(s->f.proc, s->child);
	assert_int_equal(testtask_freeze(s->f.proc, s->child), 0);
	s->world.init_pid = getpid();
	s->world.root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	s->d.world = &s->world;
	s->d.procs = s->procs;
	s->d.n_procs = 1;
	s->procs[0] = &s->p;
	s->threads[0] = &s->t;
	s->t = (struct ckpt_thread){.proc = &s->p, .tid = s->child, .vtid = 2};
	s->p = (struct ckpt_proc){.dump = &s->d,
		.pid = s->child,
		.look = s->child,
		.vpid = 2,
		.mm = 2,
		.threads = s->threads,
		.n_threads = 1};
	assert_int_equal(ptrace(PTRACE_GETREGS, s->child, 0, &s->t.regs), 0);
	ok(&s->f, proc_read_maps(s->f.proc, s->child, true, &s->p.maps, &s->f.e));
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	ckpt_fork_end(&s->d);
	remote_forget(s->t.remote);
	kill(s->child, SIGKILL);
	testtask_end(s->child);
	proc_maps_fini(&s->p.maps);
	buf_fini(&s->p.memory_pages);
	buf_fini(&s->p.memory_guards);
	close_fd(s->f.proc);
	close_fd(s->world.root_fd);
	munmap(area, NR(PAGES));
	munmap(wipe, NR(4));
	munmap(file, NR(4));
	munmap(shared, SHARED);
	free(s);
	return 0;
}

/* How many of @n pages at @start are in @runs. */
static size_t count(const struct buf *runs, const uint8_t *start, size_t n)
{
	const struct ckpt_run *run = (const struct ckpt_run *)runs->data;
	uint64_t from = (uint64_t)(uintptr_t)start, to = from + NR(n), bytes = 0;

	for (size_t i = 0; i < runs->len / sizeof(*run); i++)
		if (run[i].start < to && run[i].end > from)
			bytes += MIN(run[i].end, to) - MAX(run[i].start, from);
	return bytes / PAGE_SIZE;
}

static void check_equal(const struct buf *a, const struct buf *b)
{
	assert_int_equal(a->len, b->len);
	assert_true(!a->len || !memcmp(a->data, b->data, a->len));
}

static void check_pages(const struct buf *runs)
{
	assert_int_equal(count(runs, area, 3), 0);
	assert_int_equal(count(runs, area + NR(3), 700), 700);
	assert_int_equal(count(runs, area + NR(703), 97), 0);
	assert_int_equal(count(runs, area + NR(800), 1), 1);
	assert_int_equal(count(runs, area + NR(801), 99), 0);
	assert_int_equal(count(runs, file, 1), 0);
	assert_int_equal(count(runs, file + NR(1), 1), 1);
	assert_int_equal(count(runs, file + NR(2), 2), 0);
}

/* Is @at in @runs?  What is true of it is true up to *@until, which is never moved up. */
static bool covered(const struct buf *runs, uint64_t at, uint64_t *until)
{
	const struct ckpt_run *run = (const struct ckpt_run *)runs->data;
	bool is = false;

	for (size_t i = 0; i < runs->len / sizeof(*run); i++) {
		if (run[i].start > at)
			*until = MIN(*until, run[i].start);
		else if (run[i].end > at)
			*until = MIN(*until, run[i].end);
		is = is || (run[i].start <= at && run[i].end > at);
	}
	return is;
}

/*
 * All private mappings but those that a fork leaves out, and the kernel's own.  Not page by page:
 * the address sanitizer has mappings of terabytes.
 */
static void check_same(const struct scene *s, const struct buf *a, const struct buf *b)
{
	for (size_t i = 0; i < s->p.maps.n; i++) {
		const struct proc_vma *v = &s->p.maps.vmas[i];

		if (v->shared || v->end > CKPT_TASK_SIZE || proc_vma_has(v, "wf") ||
			!strncmp(v->path, "[v", 2))
			continue;
		for (uint64_t at = v->start, next; at < v->end; at = next) {
			next = v->end;
			if (covered(a, at, &next) != covered(b, at, &next))
				fail_msg("page %#" PRIx64 " of %s", at, v->path);
		}
	}
}

static void a_copy_tells_the_same(void **state)
{
	_cleanup_buf_ struct buf pages = BUF_INIT, guards = BUF_INIT;
	struct scene *s = *state;
	struct ckpt_proc *p = &s->p;

	ok(&s->f, ckpt_space_scan(&s->d, p, &s->f.e));
	assert_true(p->memory_scanned && !p->memory_waits);
	check_pages(&p->memory_pages);
	assert_int_equal(count(&p->memory_pages, wipe, 4), 2);
	buf_put(&pages, p->memory_pages.data, p->memory_pages.len);
	buf_put(&guards, p->memory_guards.data, p->memory_guards.len);

	s->d.options.snapshot = true;
	ok(&s->f, ckpt_space_scan(&s->d, p, &s->f.e));
	assert_true(p->memory_scanned);
	if (!ckpt_pages_scanned(p))
		skip();
	assert_true(p->memory_waits);
	assert_int_equal(p->memory_pages.len, 0);
	check_equal(&p->memory_guards, &guards);

	ok(&s->f, ckpt_fork_space(p, &s->f.e));
	ok(&s->f, ckpt_space_scan_copies(&s->d, &s->f.e));
	assert_false(p->memory_waits);
	check_pages(&p->memory_pages);
	check_same(s, &pages, &p->memory_pages);
	check_equal(&p->memory_guards, &guards);
}

/* What could not be copied is looked for in the task itself, and so is what is small. */
static void without_a_copy(void **state)
{
	struct scene *s = *state;

	s->d.options.snapshot = true;
	for (size_t i = 0; i < s->p.maps.n; i++)
		s->p.maps.vmas[i].anonymous_kb = 0;
	ok(&s->f, ckpt_space_scan(&s->d, &s->p, &s->f.e));
	assert_false(s->p.memory_waits);
	check_pages(&s->p.memory_pages);
	ok(&s->f, ckpt_space_scan_copies(&s->d, &s->f.e));
	check_pages(&s->p.memory_pages);
}

static void check_page(struct ckpt_pages *pages, const uint8_t *page, int what)
{
	uint8_t found[PAGE_SIZE];

	ckpt_pages_read(pages, (uint64_t)(uintptr_t)page, found, sizeof(found));
	assert_int_equal(found[0], what);
	assert_int_equal(found[PAGE_SIZE - 1], what);
}

/* What was put aside is as it was, whatever is written to the memory afterwards. */
static void put_aside(struct scene *s, size_t reserved)
{
	struct ckpt_proc *p = &s->p;
	struct ckpt_pages pages = CKPT_PAGES_INIT;
	uint8_t nines[PAGE_SIZE];
	struct iovec local = {nines, sizeof(nines)}, there = {area + NR(3), sizeof(nines)};

	s->d.options.snapshot = true;
	ok(&s->f, ckpt_proc_remote(p, &(struct remote *){NULL}, &s->f.e));
	for (size_t i = 0; i < p->maps.n; i++)
		p->maps.vmas[i].anonymous_kb = 0;
	ok(&s->f, ckpt_space_scan(&s->d, p, &s->f.e));
	s->d.reserve.more = NR(2);
	ok(&s->f, ckpt_aside_take(&s->d, &s->f.e));
	assert_null(p->memory_aside);
	assert_int_equal(s->d.report.n_stages, 0);
	ckpt_reserve_make(&s->d.reserve, NR(reserved));
	ok(&s->f, ckpt_aside_take(&s->d, &s->f.e));
	assert_non_null(p->memory_aside);
	assert_int_equal(s->d.report.n_stages, 1);

	memset(nines, 9, sizeof(nines));
	assert_int_equal(process_vm_writev(s->child, &local, 1, &there, 1, 0), sizeof(nines));
	pages.aside = p->memory_aside;
	for (size_t i = 3; i < 703; i++)
		check_page(&pages, area + NR(i), 1);
	check_page(&pages, file + NR(1), 2);
	check_page(&pages, wipe + NR(1), 3);
	ckpt_fork_end(&s->d);
	assert_null(p->memory_aside);
	assert_null(s->d.reserve.data);
}

static void without_a_fork(void **state)
{
	put_aside(*state, 0);
}

static void without_a_fork_into_a_reserve(void **state)
{
	put_aside(*state, PAGES);
}

/* It may have died of it: another is made where one is needed. */
static void a_copy_without_an_outline_is_none(void **state)
{
	struct scene *s = *state;
	struct ckpt_proc *p = &s->p;

	s->d.options.snapshot = true;
	ok(&s->f, ckpt_outline_take(&s->d, p, &s->f.e));
	assert_non_null(p->memory_copy);
	ckpt_fork_drop(p);
	p->maps.vmas[0].start -= PAGE_SIZE;
	p->maps.vmas[0].end = p->maps.vmas[0].start + PAGE_SIZE;
	assert_int_equal(ckpt_outline_take(&s->d, p, &s->f.e), -ENOENT);
	assert_null(p->memory_copy);
	assert_true(ckpt_fork_pays(p));
	ckpt_fork_make(&s->d);
	assert_non_null(p->memory_copy);
}

static const struct proc_vma *find_mapping(const struct ckpt_proc *p, const uint8_t *start)
{
	const uint64_t at = (uint64_t)(uintptr_t)start;

	for (size_t i = 0; i < p->maps.n; i++)
		if (p->maps.vmas[i].start <= at && p->maps.vmas[i].end > at)
			return &p->maps.vmas[i];
	return NULL;
}

/* Its pages would be counted as well, and are not: a fork has the mapping without them. */
static void shared_memory_is_worth_an_outline(void **state)
{
	struct scene *s = *state;
	struct ckpt_proc *p = &s->p;
	struct proc_vma told;

	ok(&s->f, proc_read_status(s->f.proc, s->child, &p->status, &s->f.e));
	assert_false(ckpt_outline_pays(p));
	s->d.options.snapshot = true;
	assert_true(p->status.rss_anon_kb < SHARED / 1024);
	assert_int_equal(ckpt_outline_pays(p), ckpt_pages_scanned(p));
	told = *find_mapping(p, shared);
	proc_maps_fini(&p->maps);
	ok(&s->f, proc_read_maps(s->f.proc, s->child, false, &p->maps, &s->f.e));
	assert_string_equal(find_mapping(p, shared)->vm_flags, "");
	ok(&s->f, ckpt_outline_take(&s->d, p, &s->f.e));
	assert_string_equal(find_mapping(p, shared)->vm_flags, told.vm_flags);
	assert_int_equal(find_mapping(p, shared)->swap_kb, told.swap_kb);
	assert_true(proc_vma_has(find_mapping(p, shared), "sh"));
}

static void guards_alone(void **state)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	_cleanup_buf_ struct buf all = BUF_INIT, alone = BUF_INIT;
	const uint64_t start = (uint64_t)(uintptr_t)area, end = start + NR(PAGES);
	struct scene *s = *state;

	ok(&s->f, ckpt_pages_open(&pages, s->f.proc, s->child, &s->f.e));
	ok(&s->f, ckpt_pages_find(&pages, start, end, NULL, &all, &s->f.e));
	ok(&s->f, ckpt_pages_find_guards(&pages, start, end, &alone, &s->f.e));
	check_equal(&alone, &all);
	assert_true(all.len == 0 || count(&alone, area + NR(900), 2) == 2);
	assert_true(guarded || all.len == 0);
}

static void room_is_touched_before_it_is_wanted(void **state)
{
	const size_t size = NR(64), touched = NR(40) - 1;
	uint8_t *room = ckpt_reserve_map(size, touched);
	unsigned char there[64];

	assert_non_null(room);
	assert_int_equal(mincore(room, size, there), 0);
	for (size_t i = 0; i < 40; i++)
		assert_true(there[i] & 1);
	munmap(room, size);
}

/* Its pages can't be told from zeros then. */
static void who_is_killed(void **state)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	struct scene *s = *state;
	uint8_t page[PAGE_SIZE];
	int status;

	ok(&s->f, ckpt_pages_open(&pages, s->f.proc, s->child, &s->f.e));
	ckpt_pages_read(&pages, (uint64_t)(uintptr_t)area + NR(3), page, sizeof(page));
	assert_int_equal(page[0], 1);
	ckpt_pages_read(&pages, (uint64_t)(uintptr_t)area - NR(1UL << 20), page, sizeof(page));
	assert_false(pages.gone);
	kill(s->child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)s->child, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	ckpt_pages_read(&pages, (uint64_t)(uintptr_t)area + NR(3), page, sizeof(page));
	assert_true(pages.gone);
	assert_false(waitpid(s->child, &status, WNOHANG) < 0);
	s->child = testtask_start(body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_copy_tells_the_same, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_copy, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_fork, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_fork_into_a_reserve, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_copy_without_an_outline_is_none, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			shared_memory_is_worth_an_outline, set_up, tear_down),
		cmocka_unit_test_setup_teardown(guards_alone, set_up, tear_down),
		cmocka_unit_test(room_is_touched_before_it_is_wanted),
		cmocka_unit_test_setup_teardown(who_is_killed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
