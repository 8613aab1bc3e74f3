// SPDX-License-Identifier: GPL-2.0-or-later
/* An epoll is rebuilt while another thread goes by the numbers that its entries once had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/kinds.h"
#include "proto/files.pb-c.h"

#define NUMBER 60
#define ROUNDS 1000
#define LOOKS  100000 /* meanwhile, at least */

struct watch {
	ino_t ino; /* of what is NUMBER */
	atomic_uint looks, strangers;
	atomic_bool over;
};

static void *watch(void *arg)
{
	struct watch *w = arg;
	struct stat st;

	while (!w->over) {
		if (fstat(NUMBER, &st) < 0 || st.st_ino != w->ino)
			w->strangers++;
		w->looks++;
	}
	return NULL;
}

/* File 1 is an epoll that has file 2 under NUMBER, and under NUMBER + 1 once more. */
static size_t record_of(uint8_t *body, size_t size)
{
	Pb__EpollTarget entries[] = {PB__EPOLL_TARGET__INIT, PB__EPOLL_TARGET__INIT};
	Pb__EpollTarget *targets[] = {&entries[0], &entries[1]};
	Pb__Epoll m = PB__EPOLL__INIT;

	for (int i = 0; i < 2; i++) {
		entries[i].fd = NUMBER + i;
		entries[i].file = 2;
		entries[i].events = EPOLLIN;
		entries[i].data = (uint64_t)(NUMBER + i);
	}
	m.targets = targets;
	m.n_targets = 2;
	assert_true(pb__epoll__get_packed_size(&m) <= size);
	return pb__epoll__pack(&m, body);
}

static void check_epoll(int epoll)
{
	struct epoll_event got[4] = {0};

	assert_int_equal(epoll_wait(epoll, got, 4, 0), 2);
	assert_int_equal(got[0].data.u64 + got[1].data.u64, 2 * NUMBER + 1);
}

static void numbers_stay(void **state)
{
	uint8_t body[256];
	struct ckpt_record records[] = {
		{.kind = &ckpt_kind_epoll, .subject = 1, .body = body},
		{.kind = &ckpt_kind_eventfd, .subject = 2},
	};
	struct ckpt_build_file files[] = {
		{.id = 1, .fd = -1, .record = &records[0]},
		{.id = 2, .fd = eventfd(1, EFD_CLOEXEC), .record = &records[1]},
	};
	const struct ckpt_names names = {0};
	const struct ckpt_world world = {.names = &names};
	struct ckpt_build b = {.world = &world, .files = files, .n_files = ARRAY_SIZE(files)};
	struct watch w = {0};
	struct err e = {0};
	pthread_t thread;
	struct stat st;
	int p[2];

	records[0].len = record_of(body, sizeof(body));
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(dup3(p[0], NUMBER, O_CLOEXEC), NUMBER);
	assert_int_equal(fstat(NUMBER, &st), 0);
	w.ino = st.st_ino;
	assert_int_equal(pthread_create(&thread, NULL, watch, &w), 0);
	while (!w.looks)
		sched_yield();
	for (int i = 0; (i < ROUNDS || w.looks < LOOKS) && !w.strangers; i++) {
		files[0].fd = epoll_create1(EPOLL_CLOEXEC);
		assert_int_equal(ckpt_kind_epoll.link(&b, &records[0], &e), 0);
		check_epoll(files[0].fd);
		close(files[0].fd);
	}
	w.over = true;
	pthread_join(thread, NULL);
	assert_int_equal(w.strangers, 0);
	assert_int_equal(fcntl(NUMBER + 1, F_GETFD), -1);
}

/* What can't be added is said, by its number. */
static void refused(void **state)
{
	uint8_t body[256];
	struct ckpt_record records[] = {
		{.kind = &ckpt_kind_epoll, .subject = 1, .body = body},
		{.kind = &ckpt_kind_eventfd, .subject = 2},
	};
	struct ckpt_build_file files[] = {
		{.id = 1, .fd = epoll_create1(EPOLL_CLOEXEC), .record = &records[0]},
		{.id = 2, .fd = open("/", O_RDONLY | O_CLOEXEC), .record = &records[1]},
	};
	const struct ckpt_names names = {0};
	const struct ckpt_world world = {.names = &names};
	struct ckpt_build b = {.world = &world, .files = files, .n_files = ARRAY_SIZE(files)};
	struct err e = {0};

	records[0].len = record_of(body, sizeof(body));
	assert_int_equal(ckpt_kind_epoll.link(&b, &records[0], &e), -EPERM);
	assert_non_null(strstr(e.msg, "cannot add descriptor 60 to epoll"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_stay),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests_name("epoll", tests, NULL, NULL);
}
