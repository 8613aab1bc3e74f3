// SPDX-License-Identifier: GPL-2.0-or-later
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/proto.h"

struct pair {
	struct proto_conn *a, *b;
	int raw; /* a's socket, for nonsense */
	int fds_before;
};

static int count_fds(void)
{
	_cleanup_closedir_ DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	return n;
}

static int setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	int sv[2];
	struct err e;

	p->fds_before = count_fds();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sv), 0);
	assert_int_equal(proto_conn_new(&p->a, sv[0], &e), 0);
	assert_int_equal(proto_conn_new(&p->b, sv[1], &e), 0);
	p->raw = sv[0];
	*state = p;
	return 0;
}

/* No descriptor is left behind, whatever happened. */
static int teardown(void **state)
{
	struct pair *p = *state;
	int left;

	proto_conn_free(p->a);
	proto_conn_free(p->b);
	left = count_fds() - p->fds_before;
	free(p);
	return left;
}

/* Receives what must be there. */
static void expect(struct proto_conn *c, const void *body, size_t len)
{
	const void *got;
	size_t n, n_fds;
	struct err e = {0};

	assert_int_equal(proto_conn_recv(c, &got, &n, NULL, 0, &n_fds, &e), 1);
	assert_int_equal(n, len);
	assert_memory_equal(got, body, len);
	assert_int_equal(n_fds, 0);
}

/* Receives what must not be, and that it stays so. */
static void expect_error(struct proto_conn *c, int error)
{
	const void *got;
	size_t n, n_fds;
	int fds[4];
	struct err e = {0};

	assert_int_equal(proto_conn_recv(c, &got, &n, fds, 4, &n_fds, &e), error);
	if (error < 0) {
		assert_int_equal(e.error, error);
		assert_int_equal(proto_conn_recv(c, &got, &n, fds, 4, &n_fds, &e), error);
		assert_int_equal(proto_conn_send(c, "x", 1, NULL, 0, &e), error);
		assert_int_equal(proto_conn_flush(c, &e), error);
	}
}

static void messages_arrive_in_order(void **state)
{
	struct pair *p = *state;
	struct err e = {0};

	assert_int_equal(proto_conn_send(p->a, "one", 3, NULL, 0, &e), 0);
	assert_int_equal(proto_conn_send(p->a, "", 0, NULL, 0, &e), 0);
	assert_int_equal(proto_conn_send(p->a, "three", 5, NULL, 0, &e), 0);
	expect(p->b, "one", 3);
	expect(p->b, "", 0);
	expect(p->b, "three", 5);
	expect_error(p->b, 0);
}

/* The last words of a peer that has closed are heard, also by who still had something to say. */
static void last_words_are_received(void **state)
{
	struct pair *p = *state;
	struct err e = {0};

	assert_int_equal(proto_conn_send(p->b, "bye", 3, NULL, 0, &e), 0);
	proto_conn_free(take_ptr(p->b));
	assert_int_equal(proto_conn_send(p->a, "wait", 4, NULL, 0, &e), -EPIPE);
	assert_int_equal(proto_conn_send(p->a, "wait", 4, NULL, 0, &e), -EPIPE);
	expect(p->a, "bye", 3);
	expect_error(p->a, -ECONNRESET);
}

static bool same_file(int a, int b)
{
	struct stat x, y;

	return fstat(a, &x) == 0 && fstat(b, &y) == 0 && x.st_ino == y.st_ino &&
	       x.st_dev == y.st_dev;
}

static void descriptors_belong_to_their_message(void **state)
{
	struct pair *p = *state;
	_cleanup_close_ int f = memfd_create("one", MFD_CLOEXEC);
	_cleanup_close_ int g = memfd_create("two", MFD_CLOEXEC);
	struct err e = {0};
	const void *body;
	size_t n, n_fds;
	int fds[4];

	assert_int_equal(proto_conn_send(p->a, "plain", 5, NULL, 0, &e), 0);
	assert_int_equal(proto_conn_send(p->a, "f", 1, &f, 1, &e), 0);
	assert_int_equal(proto_conn_send(p->a, "", 0, (int[]){g, f}, 2, &e), 0);
	assert_int_equal(proto_conn_send(p->a, "plain", 5, NULL, 0, &e), 0);
	expect(p->b, "plain", 5);
	assert_int_equal(proto_conn_recv(p->b, &body, &n, fds, 4, &n_fds, &e), 1);
	assert_int_equal(n_fds, 1);
	assert_true(same_file(fds[0], f));
	assert_true(fcntl(fds[0], F_GETFD) & FD_CLOEXEC);
	close(fds[0]);
	assert_int_equal(proto_conn_recv(p->b, &body, &n, fds, 4, &n_fds, &e), 1);
	assert_int_equal(n_fds, 2);
	assert_true(same_file(fds[0], g));
	assert_true(same_file(fds[1], f));
	close(fds[0]);
	close(fds[1]);
	expect(p->b, "plain", 5);
}

/* Nobody has them who could not be told of them, though the connection is still there. */
static void descriptors_nobody_takes_are_closed(void **state)
{
	struct pair *p = *state;
	struct err e = {0};
	int ends[2];
	char c;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	proto_conn_free(take_ptr(p->b));
	assert_int_equal(proto_conn_send(p->a, "pipe", 4, &ends[1], 1, &e), -EPIPE);
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	assert_int_equal(read(ends[0], &c, 1), 0);
	close(ends[0]);
}

static void byte_by_byte_is_enough(void **state)
{
	struct pair *p = *state;
	static const char bytes[] = "\3\0\0\0one\0\0\0\0\2\0\0\0ab";

	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		assert_int_equal(send(p->raw, bytes + i, 1, 0), 1);
		if (i == 6)
			expect(p->b, "one", 3);
		else if (i == 10)
			expect(p->b, "", 0);
		else if (i == 16)
			expect(p->b, "ab", 2);
		else
			expect_error(p->b, 0);
	}
}

static void long_messages_wait_for_the_reader(void **state)
{
	struct pair *p = *state;
	_cleanup_close_ int f = memfd_create("one", MFD_CLOEXEC);
	_cleanup_free_ uint8_t *body = malloc(PROTO_MAX_REQUEST);
	const void *got;
	size_t n, n_fds, received = 0;
	struct err e = {0};
	int fd, r;

	for (size_t i = 0; i < PROTO_MAX_REQUEST; i++)
		body[i] = (uint8_t)(i * 7 >> 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(proto_conn_send(p->a, body, PROTO_MAX_REQUEST, &f, 1, &e), 1);
	while (received < 3) {
		r = proto_conn_recv(p->b, &got, &n, &fd, 1, &n_fds, &e);
		assert_true(r >= 0);
		if (r == 1) {
			assert_int_equal(n, PROTO_MAX_REQUEST);
			assert_memory_equal(got, body, n);
			assert_int_equal(n_fds, 1);
			assert_true(same_file(fd, f));
			close(fd);
			received++;
		}
		r = proto_conn_flush(p->a, &e);
		assert_true(r >= 0);
	}
	assert_int_equal(r, 0);
}

static void longest_message_waits_alone(void **state)
{
	struct pair *p = *state;
	_cleanup_free_ uint8_t *body = calloc(1, PROTO_MAX_CONTROL);
	const void *got;
	size_t n, n_fds;
	struct err e = {0};
	int fd, r;

	assert_int_equal(proto_conn_send(p->a, body, PROTO_MAX_CONTROL, NULL, 0, &e), 1);
	assert_int_equal(proto_conn_send(p->a, "more", 4, NULL, 0, &e), -ENOBUFS);
	do {
		r = proto_conn_recv(p->b, &got, &n, &fd, 1, &n_fds, &e);
		assert_true(r >= 0 && proto_conn_flush(p->a, &e) >= 0);
	} while (r == 0);
	assert_int_equal(n, PROTO_MAX_CONTROL);
}

static void limit_is_kept(void **state)
{
	struct pair *p = *state;
	struct err e = {0};

	proto_conn_limit(p->b, 4);
	assert_int_equal(proto_conn_send(p->a, "four", 4, NULL, 0, &e), 0);
	expect(p->b, "four", 4);
	assert_int_equal(proto_conn_send(p->a, "fives", 5, NULL, 0, &e), 0);
	expect_error(p->b, -EBADMSG);
}

static void queue_is_bounded(void **state)
{
	struct pair *p = *state;
	_cleanup_close_ int f = memfd_create("one", MFD_CLOEXEC);
	_cleanup_free_ uint8_t *body = calloc(1, PROTO_MAX_CONTROL + 1);
	struct err e = {0};
	int r, n = 0;

	do
		r = proto_conn_send(p->a, body, PROTO_MAX_REQUEST, &f, 1, &e);
	while (r == 1 && n++ < 100);
	assert_int_equal(r, -ENOBUFS);
	assert_int_equal(proto_conn_flush(p->a, &e), 1);
	assert_int_equal(
		proto_conn_send(p->a, body, PROTO_MAX_CONTROL + 1, NULL, 0, &e), -EMSGSIZE);
}

static void blocking_sockets_wait(void **state)
{
	struct pair *p = *state;
	struct err e = {0};

	io_set_nonblock(proto_conn_fd(p->b), false);
	assert_int_equal(proto_conn_send(p->a, "one", 3, NULL, 0, &e), 0);
	expect(p->b, "one", 3);
	proto_conn_free(take_ptr(p->a));
	expect_error(p->b, -ECONNRESET);
}

static void hostile_length(void **state)
{
	struct pair *p = *state;

	assert_int_equal(send(p->raw, "\1\0\0\1", 4, 0), 4); /* one above the limit */
	expect_error(p->b, -EBADMSG);
}

static void end_within_a_message(void **state)
{
	struct pair *p = *state;

	assert_int_equal(send(p->raw, "\5\0\0\0ab", 6, 0), 6);
	expect_error(p->b, 0);
	proto_conn_free(take_ptr(p->a));
	expect_error(p->b, -ECONNRESET);
}

static void descriptors_within_a_message(void **state)
{
	struct pair *p = *state;

	assert_int_equal(send(p->raw, "\5\0\0\0a", 5, 0), 5);
	assert_int_equal(io_send_fds(p->raw, "bcde", 4, &p->raw, 1), 0);
	expect_error(p->b, -EBADMSG);
}

static void too_many_descriptors(void **state)
{
	struct pair *p = *state;
	int fds[IO_MAX_FDS];

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++)
		fds[i] = p->raw;
	assert_int_equal(io_send_fds(p->raw, "\0\0\0\0", 4, fds, 5), 0);
	expect_error(p->b, -EBADMSG); /* takes four */
}

static void unread_descriptors_are_closed(void **state)
{
	struct pair *p = *state;

	assert_int_equal(io_send_fds(p->raw, "\5\0\0\0ab", 6, &p->raw, 1), 0);
	expect_error(p->b, 0);
}

int main(void)
{
#define PAIR_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		PAIR_TEST(messages_arrive_in_order),
		PAIR_TEST(last_words_are_received),
		PAIR_TEST(descriptors_belong_to_their_message),
		PAIR_TEST(descriptors_nobody_takes_are_closed),
		PAIR_TEST(byte_by_byte_is_enough),
		PAIR_TEST(long_messages_wait_for_the_reader),
		PAIR_TEST(longest_message_waits_alone),
		PAIR_TEST(limit_is_kept),
		PAIR_TEST(queue_is_bounded),
		PAIR_TEST(blocking_sockets_wait),
		PAIR_TEST(hostile_length),
		PAIR_TEST(end_within_a_message),
		PAIR_TEST(descriptors_within_a_message),
		PAIR_TEST(too_many_descriptors),
		PAIR_TEST(unread_descriptors_are_closed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
