// SPDX-License-Identifier: GPL-2.0-or-later
/* Who makes which record, in which order they are written, and what becomes of a failure. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "ckpt/dump/recording.h"
#include "ckpt/survey/openfiles.h"
#include "ckpt/survey/same.h"
#include "ckpt/survey/survey.h"

#define ITEMS 6 /* those of tasks and of files take turns */

/* ---- kinds that note who asked ---------------------------------------------------------------- */

static struct seen {
	pthread_t by[ITEMS];
	pid_t tid;
	_Atomic size_t n; /* the rest is there before */
} tasks, files;

/* What the first record of each does. */
static int (*first_task)(struct err *e), (*first_file)(struct err *e);

static int note(
	struct seen *s, int (*first)(struct err *e), uint64_t id, struct buf *body, struct err *e)
{
	int r;

	s->tid = gettid();
	s->by[s->n] = pthread_self();
	r = s->n++ == 0 && first ? first(e) : 0;
	buf_put_u64(body, id);
	return r;
}

static int dump_task(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	return note(&tasks, first_task, (uint64_t)s.proc->vpid, body, e);
}

static int dump_file(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	return note(&files, first_file, s.file->id, body, e);
}

static const struct ckpt_kind task_kind = {
	.number = PROTO_KIND_CREDS, .name = "task", .scope = CKPT_PROC, .dump = dump_task};
static const struct ckpt_kind file_kind = {
	.number = PROTO_KIND_EVENTFD, .name = "file", .scope = CKPT_FILE, .dump = dump_file};

/* ---- a session that is nothing but items ------------------------------------------------------ */

struct fixture {
	char dir[32];
	struct proto_key *key;
	int image;
	struct ckpt_world world;
	struct ckpt_dump d;
	struct ckpt_proc procs[ITEMS];
	struct ckpt_file files[ITEMS];
	struct ckpt_item items[ITEMS];
	struct err e;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct proto_write_options o = {0};

	tasks.n = files.n = 0;
	first_task = first_file = NULL;
	strcpy(f->dir, "/tmp/podrun-test-XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(proto_key_open(&f->key, f->dir, &f->e), 0);
	f->image = memfd_create("image", MFD_CLOEXEC);
	o.key = f->key;
	assert_int_equal(proto_writer_open(&f->d.out, f->image, &o, &f->e), 0);
	f->d.world = &f->world;
	for (size_t i = 0; i < ITEMS; i++) {
		struct ckpt_item *item = &f->items[i];

		item->id = 100 + i;
		item->kind = i % 2 ? &file_kind : &task_kind;
		f->procs[i].vpid = (pid_t)item->id;
		f->files[i].id = (uint32_t)item->id;
		if (i % 2)
			item->s.file = &f->files[i];
		else
			item->s.proc = &f->procs[i];
	}
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ITEMS; i++)
		buf_fini(&f->items[i].body);
	proto_writer_close(f->d.out);
	proto_key_close(f->key);
	close(f->image);
	io_rm_rf(AT_FDCWD, f->dir);
	free(f);
	return 0;
}

static int record(struct fixture *f)
{
	return ckpt_record_all(&f->d, f->items, ITEMS, &f->e);
}

static void all_are_written_in_order(struct fixture *f)
{
	struct proto_read_options o = {0};
	struct proto_frame frame;
	struct proto_reader *in;
	uint64_t bytes;

	assert_int_equal(proto_writer_finish(f->d.out, &bytes, &f->e), 0);
	lseek(f->image, 0, SEEK_SET);
	assert_int_equal(proto_reader_open(&in, f->image, &o, &f->e), 0);
	for (size_t i = 0; i < ITEMS; i++) {
		struct cursor c;

		assert_true(proto_read(in, &frame, &f->e) >= 0);
		assert_int_equal(frame.type, PROTO_RECORD);
		assert_int_equal(frame.kind, f->items[i].kind->number);
		assert_int_equal(frame.subject, f->items[i].id);
		c = cursor_of(frame.data, frame.len);
		assert_int_equal(cursor_u64(&c), f->items[i].id);
	}
	proto_reader_close(in);
	assert_int_equal(tasks.n, ITEMS / 2);
	assert_int_equal(files.n, ITEMS / 2);
}

static void needs_two(void)
{
	if (!ckpt_same_by_kcmp())
		skip();
}

/* ---- tests ------------------------------------------------------------------------------------ */

static void two_threads_make_records_and_one_writes_them(void **state)
{
	struct fixture *f = *state;

	needs_two();
	assert_int_equal(record(f), 0);
	all_are_written_in_order(f);
	for (size_t i = 0; i < ITEMS / 2; i++) {
		assert_true(pthread_equal(tasks.by[i], pthread_self()));
		assert_false(pthread_equal(files.by[i], pthread_self()));
	}
}

static bool can_start_a_thread(void *(*body)(void *arg))
{
	pthread_t t;

	return pthread_create(&t, NULL, body, NULL) == 0 && pthread_join(t, NULL) == 0;
}

static void *nothing(void *arg)
{
	return NULL;
}

static void one_does_it_all_where_there_is_room_for_no_more(void **state)
{
	struct fixture *f = *state;
	struct rlimit before, none;
	bool could;
	int r;

	assert_int_equal(getrlimit(RLIMIT_NPROC, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NPROC, &none), 0);
	could = can_start_a_thread(nothing);
	r = could ? 0 : record(f);
	setrlimit(RLIMIT_NPROC, &before);
	if (could)
		skip(); /* root */
	assert_int_equal(r, 0);
	all_are_written_in_order(f);
	for (size_t i = 0; i < ITEMS / 2; i++)
		assert_true(pthread_equal(files.by[i], pthread_self()));
}

/* Until the thread @tid of ours waits for somebody. */
static void await_sleep(pid_t tid)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	while (state != 'S') {
		FILE *in = fopen(path, "re");

		assert_non_null(in);
		assert_int_equal(fscanf(in, "%*d (%*[^)]) %c", &state), 1);
		fclose(in);
	}
}

/* Once the other one is there. */
static int fails(const struct seen *other, struct err *e)
{
	while (!other->n)
		sched_yield();
	return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "it can't be recorded");
}

/* The other one has failed, and waits for us. */
static int awaits(const struct seen *other)
{
	while (!other->n)
		sched_yield();
	await_sleep(other->tid);
	return 0;
}

static int task_fails(struct err *e)
{
	return fails(&files, e);
}

static int file_fails(struct err *e)
{
	return fails(&tasks, e);
}

static int task_awaits(struct err *e)
{
	return awaits(&files);
}

static int file_awaits(struct err *e)
{
	return awaits(&tasks);
}

static void a_failure_beside_is_the_last_record(void **state)
{
	struct fixture *f = *state;

	needs_two();
	first_file = file_fails;
	first_task = task_awaits;
	assert_int_equal(record(f), -EOPNOTSUPP);
	assert_string_equal(f->e.msg, "a file in flight: it can't be recorded");
	assert_int_equal(f->e.class, ERR_UNFREEZABLE);
	assert_int_equal(files.n, 1);
	assert_int_equal(tasks.n, 1);
}

static void as_is_one_of_the_tracer(void **state)
{
	struct fixture *f = *state;

	needs_two();
	first_task = task_fails;
	first_file = file_awaits;
	assert_int_equal(record(f), -EOPNOTSUPP);
	assert_non_null(strstr(f->e.msg, "task 100 "));
	assert_int_equal(tasks.n, 1);
	assert_int_equal(files.n, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(two_threads_make_records_and_one_writes_them),
		T(one_does_it_all_where_there_is_room_for_no_more),
		T(a_failure_beside_is_the_last_record),
		T(as_is_one_of_the_tracer),
	};
#undef T
	return cmocka_run_group_tests(tests, NULL, NULL);
}
