// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Who reads an image may go into a session's root once it is open, and what is loaded from then on
 * would be the session's: so reading loads no library that was not there when it was opened.  It is
 * a program of its own, for a library that was loaded once stays.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/proto.h"
#include "proto/test_items.h"

#define LEN (3 * MIB)

/* In another process, so that this one has not loaded what a writer does. */
static void write_image(struct fixture *fx, int fd)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		struct proto_write_options o = {.key = fx->key};
		uint8_t *data = calloc(1, LEN);
		struct proto_writer *w;

		_exit(!data || proto_writer_open(&w, fd, &o, NULL) < 0 ||
			proto_write_record(w, PROTO_KIND_MM, 1, "mm", 2, NULL) < 0 ||
			proto_write_data(w, PROTO_KIND_MM, 1, 0, data, LEN, NULL) < 0 ||
			proto_writer_finish(w, NULL, NULL) < 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	lseek(fd, 0, SEEK_SET);
}

/* How many mappings are of libraries. */
static unsigned libraries(void)
{
	_cleanup_buf_ struct buf maps = BUF_INIT;
	unsigned n = 0;

	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/maps", 1 << 20, &maps), 0);
	for (const char *p = buf_cstr(&maps); (p = strstr(p, ".so")); p++)
		n++;
	return n;
}

static void reading_loads_nothing(void **state)
{
	struct fixture *fx = *state;
	_cleanup_close_ int fd = memfd_create("image", MFD_CLOEXEC);
	struct proto_read_options o = {.config_dir = fx->dir};
	struct proto_reader *r;
	struct proto_frame f;
	struct err e = {0};
	unsigned before;
	size_t len = 0;

	write_image(fx, fd);
	assert_int_equal(proto_reader_open(&r, fd, &o, &e), 0);
	before = libraries();
	assert_true(before > 0);
	do {
		assert_int_equal(proto_read(r, &f, &e), 0);
		len += f.len;
	} while (f.type != PROTO_END);
	assert_true(len >= LEN);
	assert_int_equal(libraries(), before);
	proto_reader_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_loads_nothing),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
