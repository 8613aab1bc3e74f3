// SPDX-License-Identifier: GPL-2.0-or-later
/* Contents that are copied while all stand still: they come into an image as they were then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/stash.h"
#include "ckpt/survey/survey.h"
#include "proto/proto.h"

#define NR(n)	((size_t)(n)*PAGE_SIZE)
#define PAGES	1024u
#define SUBJECT 5
#define SHIFT	NR(7)

/* A session of which one process, we ourselves, has memory; a file; and an image. */
struct scene {
	char dir[40];
	struct proto_key *key;
	struct proto_writer *out;
	int image, file;
	uint8_t *memory;
	struct ckpt_dump d;
	struct ckpt_proc p;
	struct err e;
};

#define ok(s, call)                                            \
	do {                                                   \
		if ((call) < 0)                                \
			fail_msg("%s: %s", #call, (s)->e.msg); \
	} while (0)

static int set_up(void **state)
{
	struct scene *s = calloc(1, sizeof(*s));
	struct proto_write_options o = {.threads = PROTO_NO_THREADS};

	strcpy(s->dir, "/tmp/podrun-stash-XXXXXX");
	assert_non_null(mkdtemp(s->dir));
	ok(s, proto_key_open(&s->key, s->dir, &s->e));
	s->image = memfd_create("image", MFD_CLOEXEC);
	s->file = memfd_create("file", MFD_CLOEXEC);
	o.key = s->key;
	ok(s, proto_writer_open(&s->out, s->image, &o, &s->e));
	s->memory = mmap(
		NULL, NR(PAGES), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(s->memory != MAP_FAILED);
	s->d.host_proc = proc_open(&s->e);
	s->d.options.snapshot = true;
	s->d.out = s->out;
	s->p = (struct ckpt_proc){.dump = &s->d, .pid = getpid(), .look = getpid(), .vpid = 2};
	*state = s;
	return 0;
}

static int tear_down(void **state)
{
	struct scene *s = *state;

	ckpt_stash_free(&s->d);
	ckpt_reserve_fini(&s->d.reserve);
	proto_writer_close(s->out);
	proto_key_close(s->key);
	close_fd(s->d.host_proc);
	close_fd(s->image);
	close_fd(s->file);
	munmap(s->memory, NR(PAGES));
	io_rm_rf(AT_FDCWD, s->dir);
	free(s);
	return 0;
}

static uint64_t address(const uint8_t *p)
{
	return (uint64_t)(uintptr_t)p;
}

static struct ckpt_run run_of(const struct scene *s, size_t page, size_t n)
{
	return (struct ckpt_run){address(s->memory) + NR(page), address(s->memory) + NR(page + n)};
}

/* Ends the image; what DATA it has of SUBJECT goes to @ret, of @len bytes, which were @fill before. */
static void read_back(struct scene *s, uint8_t *ret, size_t len, int fill)
{
	struct proto_reader *in;
	struct proto_frame f;

	memset(ret, fill, len);
	ok(s, proto_writer_finish(s->out, NULL, &s->e));
	assert_int_equal(lseek(s->image, 0, SEEK_SET), 0);
	ok(s, proto_reader_open(&in, s->image, &(struct proto_read_options){.threads = 1}, &s->e));
	do {
		ok(s, proto_read(in, &f, &s->e));
		if (f.type != PROTO_DATA)
			continue;
		assert_int_equal(f.kind, PROTO_KIND_SHARED_MEM);
		assert_int_equal(f.subject, SUBJECT);
		assert_true(f.offset <= len && f.len <= len - f.offset);
		memcpy(ret + f.offset, f.data, f.len);
	} while (f.type != PROTO_END);
	proto_reader_close(in);
}

static void number_pages(uint8_t *p)
{
	for (uint32_t i = 0; i < PAGES; i++)
		memcpy(p + NR(i), &(uint32_t){i + 1}, 4);
}

static struct ckpt_stash_place place_of(const struct scene *s, bool sparse)
{
	return (struct ckpt_stash_place){
		PROTO_KIND_SHARED_MEM, SUBJECT, SHIFT - address(s->memory), sparse};
}

/* Four mebibytes, so by several threads. */
static void as_it_was_then(void **state)
{
	struct scene *s = *state;
	const struct ckpt_stash_place place = place_of(s, true);
	_cleanup_free_ uint8_t *found = malloc(SHIFT + NR(PAGES));

	number_pages(s->memory);
	memset(s->memory + NR(100), 0, NR(50));
	ckpt_reserve_make(&s->d.reserve, NR(PAGES));
	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 0, 600)), NR(600));
	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 600, 1)), NR(1));
	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 601, 423)), NR(423));
	ok(s, ckpt_stash_fill(&s->d, &s->e));
	memset(s->memory, 0xee, NR(PAGES));
	ok(s, ckpt_stash_write(&s->d, &s->e));
	assert_null(s->d.stash);
	assert_int_equal(s->d.report.pages, PAGES - 50);

	read_back(s, found, SHIFT + NR(PAGES), 0);
	for (uint32_t i = 0; i < PAGES; i++) {
		uint32_t number;

		memcpy(&number, found + SHIFT + NR(i), 4);
		assert_int_equal(number, i >= 100 && i < 150 ? 0 : i + 1);
	}
}

/* What is zero is written, too, where it is not to be left out; and a file may end before its time. */
static void of_files(void **state)
{
	struct scene *s = *state;
	const struct ckpt_stash_place place = {PROTO_KIND_SHARED_MEM, SUBJECT, 10, false};
	uint8_t found[3 * PAGE_SIZE], page[PAGE_SIZE];
	uint64_t n;

	memset(page, 7, sizeof(page));
	assert_int_equal(pwrite(s->file, page, 300, 0), 300);
	assert_int_equal(ftruncate(s->file, 500), 0);
	ckpt_reserve_make(&s->d.reserve, NR(PAGES));
	ok(s, ckpt_stash_file(&s->d, &place, s->file, 0, 2 * PAGE_SIZE, &n, &s->e));
	assert_int_equal(n, 2 * PAGE_SIZE);
	assert_int_equal(pwrite(s->file, page, 500, 0), 500);
	ok(s, ckpt_stash_write(&s->d, &s->e));
	assert_int_equal(s->d.report.pages, 0);

	read_back(s, found, sizeof(found), 9);
	assert_int_equal(found[9], 9);
	assert_int_equal(found[10], 7);
	assert_int_equal(found[309], 7);
	assert_int_equal(found[310], 0);
	assert_int_equal(found[509], 0);
	assert_int_equal(found[510], 9);
	assert_true(ckpt_stash_file(&s->d, &place, -1, 0, 1, &n, &s->e) < 0);
}

static void as_far_as_there_is_room(void **state)
{
	struct scene *s = *state;
	const struct ckpt_stash_place place = place_of(s, true);

	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 0, PAGES)), 0);
	s->d.reserve.more = NR(600);
	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 0, PAGES)), NR(512));
	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 512, 40)), NR(40));
	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 552, 49)), 0);
	ok(s, ckpt_stash_fill(&s->d, &s->e));
	ok(s, ckpt_stash_write(&s->d, &s->e));
}

static void nothing_of_a_suspend(void **state)
{
	struct scene *s = *state;
	const struct ckpt_stash_place place = place_of(s, true);

	s->d.options.snapshot = false;
	ckpt_reserve_make(&s->d.reserve, NR(PAGES));
	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 0, PAGES)), 0);
	assert_null(s->d.stash);
	ok(s, ckpt_stash_fill(&s->d, &s->e));
	ok(s, ckpt_stash_write(&s->d, &s->e));
}

/* A page that can't be read by itself does not keep others from it; a dead process' can't be told. */
static void what_cannot_be_read(void **state)
{
	struct scene *s = *state;
	const struct ckpt_stash_place place = place_of(s, true);
	uint8_t found[SHIFT + NR(4)];

	number_pages(s->memory);
	mprotect(s->memory + NR(1), NR(1), PROT_NONE);
	ckpt_reserve_make(&s->d.reserve, NR(PAGES));
	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 0, 4)), NR(4));
	ok(s, ckpt_stash_fill(&s->d, &s->e));
	ok(s, ckpt_stash_write(&s->d, &s->e));
	read_back(s, found, sizeof(found), 0);
	for (uint8_t i = 0; i < 4; i++)
		assert_int_equal(found[SHIFT + NR(i)], i + 1);
}

static void of_who_is_killed(void **state)
{
	struct scene *s = *state;
	const struct ckpt_stash_place place = place_of(s, true);
	pid_t child = fork();

	if (child == 0)
		for (;;)
			pause();
	s->p.look = s->p.pid = child;
	ckpt_reserve_make(&s->d.reserve, NR(PAGES));
	assert_int_equal(ckpt_stash_pages(&s->d, &place, &s->p, run_of(s, 0, 4)), NR(4));
	kill(child, SIGKILL);
	assert_int_equal(waitid(P_PID, (id_t)child, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_true(ckpt_stash_fill(&s->d, &s->e) < 0);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_it_was_then, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_files, set_up, tear_down),
		cmocka_unit_test_setup_teardown(as_far_as_there_is_room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(nothing_of_a_suspend, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(of_who_is_killed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
