// SPDX-License-Identifier: GPL-2.0-or-later
/* What waits in a pseudo terminal, taken out and put back: nobody must be able to tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <asm/termbits.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/kinds/pty.h"

struct pair {
	int master, slave;
};

static struct pair open_pair(void)
{
	struct pair p;
	int off = 0;

	p.master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	assert_true(p.master >= 0);
	assert_int_equal(ioctl(p.master, TIOCSPTLCK, &off), 0);
	p.slave = ioctl(p.master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	assert_true(p.slave >= 0);
	return p;
}

static void close_pair(struct pair p)
{
	close(p.slave);
	close(p.master);
}

static void set(struct pair p, tcflag_t on, tcflag_t off)
{
	struct termios2 t;

	assert_int_equal(ioctl(p.slave, TCGETS2, &t), 0);
	t.c_lflag = (t.c_lflag | on) & ~off;
	assert_int_equal(ioctl(p.slave, TCSETS2, &t), 0);
}

static void raw_output(struct pair p)
{
	struct termios2 t;

	assert_int_equal(ioctl(p.slave, TCGETS2, &t), 0);
	t.c_oflag &= ~(tcflag_t)OPOST;
	t.c_iflag = 0;
	assert_int_equal(ioctl(p.slave, TCSETS2, &t), 0);
}

static void type(struct pair p, const char *s)
{
	struct pollfd q = {.fd = p.slave, .events = POLLIN};

	assert_int_equal(write(p.master, s, strlen(s)), strlen(s));
	usleep(5000);
	poll(&q, 1, 0);
}

static void expect(int fd, const char *s)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char got[256] = {0};
	ssize_t n;

	poll(&p, 1, 1000);
	n = read(fd, got, sizeof(got) - 1);
	if (n >= 0)
		got[n] = '\0';
	assert_string_equal(got, s);
	assert_int_equal(n, strlen(s));
}

static void expect_nothing(int fd)
{
	char c;

	assert_int_equal(read(fd, &c, 1), -1);
	assert_int_equal(errno, EAGAIN);
}

/* Out of @from and back, and into @to as well. */
static void move(struct pair from, struct pair to)
{
	struct pty_bytes b = {0};
	struct termios2 t, after;
	struct err e = {0};

	assert_int_equal(ioctl(from.master, TCGETS2, &t), 0);
	assert_int_equal(pty_bytes_take(from.master, from.slave, true, &t, &b, &e), 0);
	assert_int_equal(pty_bytes_put(from.master, from.slave, &t, &b, &e), 0);
	assert_int_equal(ioctl(from.master, TCGETS2, &after), 0);
	assert_memory_equal(&t, &after, sizeof(t));
	assert_int_equal(pty_bytes_put(to.master, to.slave, &t, &b, &e), 0);
	assert_int_equal(ioctl(to.master, TCGETS2, &after), 0);
	assert_memory_equal(&t, &after, sizeof(t));
	pty_bytes_fini(&b);
}

static void lines_and_the_rest(void **state)
{
	struct pair p[2] = {open_pair(), open_pair()};

	type(p[0], "first\rsecond\nby eof\004\004half");
	move(p[0], p[1]);
	for (int i = 0; i < 2; i++) {
		char c;

		expect(p[i].slave, "first\n");
		expect(p[i].slave, "second\n");
		expect(p[i].slave, "by eof");
		assert_int_equal(read(p[i].slave, &c, 1), 0);
		/* Not a line yet, and it can still be edited. */
		expect_nothing(p[i].slave);
		type(p[i], "\177\177\177ot\n");
		expect(p[i].slave, "hot\n");
		expect_nothing(p[i].slave);
		/* What was echoed: nothing twice. */
		expect(p[i].master, "first\r\nsecond\r\nby eofhalf\b \b\b \b\b \bot\r\n");
		close_pair(p[i]);
	}
}

static void raw_bytes(void **state)
{
	struct pair p[2] = {open_pair(), open_pair()};

	set(p[0], 0, ICANON | ECHO | ISIG);
	type(p[0], "\003\004\177raw\n");
	assert_int_equal(write(p[0].slave, "out\nput", 7), 7);
	move(p[0], p[1]);
	for (int i = 0; i < 2; i++) {
		expect(p[i].slave, "\003\004\177raw\n");
		expect_nothing(p[i].slave);
		expect(p[i].master, "out\r\nput");
		expect_nothing(p[i].master);
		close_pair(p[i]);
	}
}

static void nothing_waits(void **state)
{
	struct pair p[2] = {open_pair(), open_pair()};

	move(p[0], p[1]);
	for (int i = 0; i < 2; i++) {
		expect_nothing(p[i].slave);
		expect_nothing(p[i].master);
		type(p[i], "line\n");
		expect(p[i].slave, "line\n");
		expect(p[i].master, "line\r\n");
		close_pair(p[i]);
	}
}

static bool runs(struct pair p)
{
	struct pollfd q = {.fd = p.slave, .events = POLLOUT};

	return poll(&q, 1, 0) == 1;
}

static void stopped_output(void **state)
{
	for (int by_char = 0; by_char < 2; by_char++) {
		struct pair p[2] = {open_pair(), open_pair()};

		set(p[0], 0, ECHO);
		assert_int_equal(write(p[0].slave, "before", 6), 6);
		if (by_char)
			type(p[0], "\023");
		else
			assert_int_equal(ioctl(p[0].slave, TCXONC, TCOOFF), 0);
		assert_false(runs(p[0]));
		move(p[0], p[1]);
		for (int i = 0; i < 2; i++) {
			assert_false(runs(p[i]));
			expect(p[i].master, "before");
			if (by_char)
				type(p[i], "\021");
			else
				assert_int_equal(ioctl(p[i].slave, TCXONC, TCOON), 0);
			assert_true(runs(p[i]));
			close_pair(p[i]);
		}
	}
}

static void much_input(void **state)
{
	struct pair p[2] = {open_pair(), open_pair()};
	char sent[3001], got[4000];

	set(p[0], 0, ICANON | ECHO);
	for (size_t i = 0; i < sizeof(sent) - 1; i++)
		sent[i] = (char)('a' + i % 26);
	sent[sizeof(sent) - 1] = '\0';
	type(p[0], sent);
	move(p[0], p[1]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(read(p[i].slave, got, sizeof(got)), sizeof(sent) - 1);
		assert_memory_equal(got, sent, sizeof(sent) - 1);
		close_pair(p[i]);
	}
}

static uint8_t byte_at(size_t i)
{
	return (uint8_t)('a' + i % 26 + (i / 26) % 5);
}

/* As much as there is room for by writes of these sizes, the last one again and again. */
static size_t fill(int fd, const size_t *sizes, size_t n)
{
	uint8_t bytes[4096];
	size_t done = 0;

	for (unsigned naps = 0, k = 0; naps < 20;) {
		size_t size = sizes[MIN((size_t)k, n - 1)];
		ssize_t r;

		for (size_t i = 0; i < size; i++)
			bytes[i] = byte_at(done + i);
		r = write(fd, bytes, size);
		if (r > 0) {
			done += (size_t)r;
			naps = 0;
			k++;
		} else {
			assert_int_equal(errno, EAGAIN);
			usleep(1000);
			naps++;
		}
	}
	return done;
}

static size_t count(int fd)
{
	static uint8_t got[1 << 16];
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t n = 0;
	ssize_t r;

	while (poll(&p, 1, 100) > 0 && (r = read(fd, got, sizeof(got))) > 0)
		for (ssize_t i = 0; i < r; i++)
			assert_int_equal(got[i], byte_at(n++));
	return n;
}

/*
 * Whoever has written as much as the kernel takes, in whatever pieces, finds all of it: in one way
 * more by half again goes in than in another.
 */
static void full(void **state)
{
	enum { MOST = 82 };
	size_t ways[][MOST] = {{1}, {100}, {256}, {777}, {1000}, {1792}, {2048}, {4000}, {0}};
	size_t *most = ways[ARRAY_SIZE(ways) - 1];

	for (size_t i = 0; i < MOST; i++)
		most[i] = i == 0 ? 255 : i < MOST - 2 ? 256 : 4096;
	for (size_t w = 0; w < 2 * ARRAY_SIZE(ways); w++) {
		struct pair p[2] = {open_pair(), open_pair()};
		bool output = w % 2;
		size_t n, *way = ways[w / 2];

		set(p[0], 0, ICANON | ECHO);
		raw_output(p[0]);
		n = fill(output ? p[0].slave : p[0].master, way, way == most ? MOST : 1);
		move(p[0], p[1]);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(count(output ? p[i].master : p[i].slave), n);
			close_pair(p[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_and_the_rest),
		cmocka_unit_test(raw_bytes),
		cmocka_unit_test(nothing_waits),
		cmocka_unit_test(stopped_output),
		cmocka_unit_test(much_input),
		cmocka_unit_test(full),
	};

	return cmocka_run_group_tests_name("pty", tests, NULL, NULL);
}
