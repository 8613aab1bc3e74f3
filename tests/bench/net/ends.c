// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Both ends of a measured network path: a server, and a client that does what it is told on stdin.
 *
 *     ends serve ADDRESS PORT          until it is killed; says "ready"
 *     ends drive ADDRESS PORT          answers each of these lines with one line of JSON:
 *         up SIZE MS                   the client sends, SIZE bytes a call, for so long
 *         down SIZE MS                 the server sends
 *         rate SIZE MS MBIT            the server sends so many Mbit/s and no more
 *         rr SIZE MS                   SIZE bytes there and back, one at a time
 *         conn MS                      connections, each for one byte there and back
 *         paced MS PER_SECOND          such connections at a rate: how long each takes to be set up
 *         crowd N MS                   128 bytes there and back on N connections at a time; half of
 *                                      them always have bytes on their way; times of rounds
 *     ends once ADDRESS PORT LINE      does one of them, and ends
 *
 * A connection begins with a struct ask. What is sent behind it is a pattern whose period is a
 * prime, so that bytes lost, repeated or swapped by any unit of a network are seen: the end that
 * receives compares all of them, and whatever is wrong ends the client with an error. A stream's
 * time is over when the other end has read all of it, not when the last byte is in a buffer.
 *
 * The senders' congestion control is reno, the one that every kernel lets everybody choose; what
 * is the default differs between hosts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAGIC	0x70656e64
#define PERIOD	131071
#define MOST	(256 << 10) /* bytes of one call */
#define SAMPLES (1 << 20)

struct ask {
	uint32_t magic, what, size, ms, mbit;
};

/* Of a stream that was received. */
struct answer {
	int64_t count; /* bytes, or -1 */
	double gap;    /* seconds */
};

enum { UP = 1, DOWN, ECHO, CONN };

static uint8_t pattern[PERIOD + MOST];

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "ends: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec ts;

	/* Not the one that stands still for a session that is suspended. */
	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void nap(double until)
{
	double left = until - now();
	struct timespec ts = {
		.tv_sec = (time_t)left, .tv_nsec = (long)((left - (time_t)left) * 1e9)};

	if (left > 0)
		nanosleep(&ts, NULL);
}

static void make_pattern(void)
{
	uint32_t x = 2463534242;

	for (size_t i = 0; i < PERIOD; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		pattern[i] = (uint8_t)(x >> 11);
	}
	for (size_t i = PERIOD; i < sizeof(pattern); i++)
		pattern[i] = pattern[i - PERIOD];
}

static int all_of(int s, void *data, size_t len, bool out)
{
	for (size_t done = 0; done < len;) {
		char *at = (char *)data + done;
		ssize_t n =
			out ? send(s, at, len - done, MSG_NOSIGNAL) : recv(s, at, len - done, 0);

		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

static void set_up(int s)
{
	int on = 1;

	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(s, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

/* Sends the pattern until the time is over, and no faster than `mbit` where that is not 0. */
static int64_t send_stream(int s, const struct ask *ask)
{
	double begin = now(), end = begin + ask->ms / 1e3;
	uint64_t sent = 0;

	while (now() < end) {
		if (all_of(s, pattern + sent % PERIOD, ask->size, true) < 0)
			return -1;
		sent += ask->size;
		if (ask->mbit)
			nap(begin + (double)sent * 8 / (ask->mbit * 1e6));
	}
	return shutdown(s, SHUT_WR) < 0 ? -1 : (int64_t)sent;
}

/* All until the end of the stream, and the longest wait; count -1 if it is not the pattern. */
static struct answer receive_stream(int s)
{
	static __thread uint8_t buf[MOST];
	struct answer a = {.count = -1};
	double last = now(), then;
	uint64_t got = 0;

	for (;;) {
		ssize_t n = recv(s, buf, sizeof(buf), 0);

		then = now();
		if (got && then - last > a.gap)
			a.gap = then - last;
		last = then;

		if (n == 0)
			a.count = (int64_t)got;
		if (n <= 0)
			return a;
		if (memcmp(buf, pattern + got % PERIOD, (size_t)n) != 0) {
			errno = EBADMSG;
			return a;
		}
		got += (size_t)n;
	}
}

static void echo(int s, size_t size)
{
	static __thread uint8_t buf[MOST];

	while (all_of(s, buf, size, false) == 0 && all_of(s, buf, size, true) == 0)
		;
}

static void *serve_one(void *arg)
{
	int s = (int)(intptr_t)arg;
	struct ask ask;
	struct answer a;

	set_up(s);
	if (all_of(s, &ask, sizeof(ask), false) < 0 || ask.magic != MAGIC || ask.size > MOST) {
		close(s);
		return NULL;
	}
	if (ask.what == UP) {
		a = receive_stream(s);
		all_of(s, &a, sizeof(a), true);
	} else if (ask.what == DOWN) {
		if (send_stream(s, &ask) >= 0)
			all_of(s, &a, sizeof(a), false); /* until the client has gone */
	} else if (ask.what == ECHO) {
		echo(s, ask.size);
	}
	close(s);
	return NULL;
}

/* Connections of one byte are answered here: no thread of their own. */
static void *serve_bytes(void *arg)
{
	int l = (int)(intptr_t)arg;

	for (;;) {
		int s = accept4(l, NULL, NULL, SOCK_CLOEXEC);
		char c;

		if (s < 0)
			continue;
		if (recv(s, &c, 1, 0) == 1)
			send(s, &c, 1, MSG_NOSIGNAL);
		close(s);
	}
	return NULL;
}

static struct addrinfo *resolve(const char *address, int port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	char service[16];

	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(address, service, &hints, &found) != 0) {
		fprintf(stderr, "ends: no address: %s\n", address);
		exit(2);
	}
	return found;
}

static int listen_at(const char *address, int port)
{
	struct addrinfo *a = resolve(address, port);
	int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (s < 0 || bind(s, a->ai_addr, a->ai_addrlen) < 0 || listen(s, 4096) < 0)
		die("listen");
	freeaddrinfo(a);
	return s;
}

static _Noreturn void serve(const char *address, int port)
{
	int l = listen_at(address, port), bytes = listen_at(address, port + 1);
	pthread_t t;

	if (pthread_create(&t, NULL, serve_bytes, (void *)(intptr_t)bytes) != 0)
		die("thread");
	puts("ready");
	fflush(stdout);
	for (;;) {
		int s = accept4(l, NULL, NULL, SOCK_CLOEXEC);

		if (s < 0)
			continue;
		if (pthread_create(&t, NULL, serve_one, (void *)(intptr_t)s) == 0)
			pthread_detach(t);
		else
			close(s);
	}
}

static int connect_to(const struct addrinfo *a)
{
	int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (s < 0)
		die("socket");
	set_up(s);
	if (connect(s, a->ai_addr, a->ai_addrlen) < 0)
		die("connect");
	return s;
}

static int begin(const struct addrinfo *a, uint32_t what, uint32_t size, uint32_t ms, uint32_t mbit)
{
	struct ask ask = {.magic = MAGIC, .what = what, .size = size, .ms = ms, .mbit = mbit};
	int s = connect_to(a);

	if (size == 0 || size > MOST) {
		errno = EINVAL;
		die("size");
	}
	if (all_of(s, &ask, sizeof(ask), true) < 0)
		die("send");
	return s;
}

static void stream(
	const struct addrinfo *a, uint32_t what, uint32_t size, uint32_t ms, uint32_t mbit)
{
	struct ask ask = {.size = size, .ms = ms, .mbit = mbit};
	int s = begin(a, what, size, ms, mbit);
	double since = now();
	struct answer got;
	int64_t sent;

	if (what == UP) {
		sent = send_stream(s, &ask);
		if (sent < 0 || all_of(s, &got, sizeof(got), false) < 0)
			die("sending");
		if (got.count != sent) {
			errno = EBADMSG;
			die("what the server received");
		}
	} else {
		got = receive_stream(s);
		if (got.count < 0)
			die("receiving");
	}
	printf("{\"bytes\": %lld, \"seconds\": %.6f, \"gap_ms\": %.3f}\n", (long long)got.count,
		now() - since, got.gap * 1e3);
	close(s);
}

static int by_size(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return a < b ? -1 : a > b;
}

static void print_samples(double *samples, size_t n, double seconds)
{
	if (n == 0)
		die("no sample");
	qsort(samples, n, sizeof(*samples), by_size);
	printf("{\"count\": %zu, \"seconds\": %.6f, \"min_us\": %.2f, \"p50_us\": %.2f, \"p99_us\": %.2f, "
	       "\"max_us\": %.2f}\n",
		n, seconds, samples[0] * 1e6, samples[n / 2] * 1e6, samples[n * 99 / 100] * 1e6,
		samples[n - 1] * 1e6);
}

static double samples[SAMPLES];

static void round_trips(const struct addrinfo *a, uint32_t size, uint32_t ms)
{
	int s = begin(a, ECHO, size, ms, 0);
	double since = now(), last = since, end = since + ms / 1e3;
	static uint8_t back[MOST];
	size_t n = 0;

	while (last < end && n < SAMPLES) {
		const uint8_t *out = pattern + n % PERIOD;
		double then;

		if (all_of(s, (void *)out, size, true) < 0 || all_of(s, back, size, false) < 0)
			die("round trip");
		if (memcmp(out, back, size) != 0) {
			errno = EBADMSG;
			die("round trip");
		}
		then = now();
		samples[n++] = then - last;
		last = then;
	}
	print_samples(samples, n, last - since);
	close(s);
}

/* One after the other, or `per_second` of them where that is not 0. */
static void connections(const struct addrinfo *a, uint32_t ms, uint32_t per_second)
{
	double since = now(), last = since, end = since + ms / 1e3;
	size_t n = 0;
	char c = 'x';

	while (last < end && n < SAMPLES) {
		int s = connect_to(a);

		samples[n++] = now() - last;
		if (all_of(s, &c, 1, true) < 0 || all_of(s, &c, 1, false) < 0)
			die("connection");
		if (recv(s, &c, 1, 0) != 0) { /* the server closes first, and keeps the TIME_WAIT */
			errno = EBADMSG;
			die("end of connection");
		}
		close(s);
		if (per_second)
			nap(since + (double)n / per_second);
		last = now();
	}
	print_samples(samples, n, last - since);
}

/* Sends on all, then reads on all; those with odd numbers are one round behind. */
#define CROWD_BYTES 128

/* Each of @n has bytes sent, and gets as many back. */
static void crowd_round(const int *s, uint32_t n)
{
	uint8_t back[CROWD_BYTES];

	for (uint32_t i = 0; i < n; i++)
		if (all_of(s[i], pattern + i, sizeof(back), true) < 0)
			die("crowd");
	for (uint32_t i = 0; i < n; i++) {
		if (all_of(s[i], back, sizeof(back), false) < 0)
			die("crowd");
		if (memcmp(back, pattern + i, sizeof(back)) != 0) {
			errno = EBADMSG;
			die("crowd");
		}
	}
}

/*
 * The first round is not counted: what so many who have just been opened say at once gets lost on
 * the way, on a pair of interfaces alone as well (.3 to .9 s there).
 */
static void crowd(const struct addrinfo *a, uint32_t n, uint32_t ms)
{
	int *s = calloc(n, sizeof(*s));
	double since, last, end;
	size_t rounds = 0;

	if (!s || n == 0)
		die("crowd");
	for (uint32_t i = 0; i < n; i++) {
		s[i] = begin(a, ECHO, CROWD_BYTES, ms, 0);
		if (i % 2 && all_of(s[i], pattern + i, CROWD_BYTES, true) < 0)
			die("crowd");
	}
	crowd_round(s, n);
	for (since = last = now(), end = last + ms / 1e3; last < end && rounds < SAMPLES; rounds++) {
		double then;

		crowd_round(s, n);
		then = now();
		samples[rounds] = then - last;
		last = then;
	}
	print_samples(samples, rounds, last - since);
	for (uint32_t i = 0; i < n; i++)
		close(s[i]);
	free(s);
}

static int obey(const char *line, const struct addrinfo *a, const struct addrinfo *bytes)
{
	uint32_t x, y, z;

	if (sscanf(line, "up %u %u", &x, &y) == 2)
		stream(a, UP, x, y, 0);
	else if (sscanf(line, "down %u %u", &x, &y) == 2)
		stream(a, DOWN, x, y, 0);
	else if (sscanf(line, "rate %u %u %u", &x, &y, &z) == 3)
		stream(a, DOWN, x, y, z);
	else if (sscanf(line, "rr %u %u", &x, &y) == 2)
		round_trips(a, x, y);
	else if (sscanf(line, "conn %u", &x) == 1)
		connections(bytes, x, 0);
	else if (sscanf(line, "paced %u %u", &x, &y) == 2)
		connections(bytes, x, y);
	else if (sscanf(line, "crowd %u %u", &x, &y) == 2)
		crowd(a, x, y);
	else
		return 2;
	fflush(stdout);
	return 0;
}

static int drive(const char *address, int port, const char *once)
{
	struct addrinfo *a = resolve(address, port), *bytes = resolve(address, port + 1);
	char line[128];
	int code = 0;

	puts("ready");
	fflush(stdout);
	if (once)
		code = obey(once, a, bytes);
	else
		while (code == 0 && fgets(line, sizeof(line), stdin))
			code = obey(line, a, bytes);
	freeaddrinfo(a);
	freeaddrinfo(bytes);
	return code;
}

int main(int argc, char **argv)
{
	make_pattern();
	if (argc == 4 && strcmp(argv[1], "serve") == 0)
		serve(argv[2], atoi(argv[3]));
	if (argc == 4 && strcmp(argv[1], "drive") == 0)
		return drive(argv[2], atoi(argv[3]), NULL);
	if (argc == 5 && strcmp(argv[1], "once") == 0)
		return drive(argv[2], atoi(argv[3]), argv[4]);
	fputs("usage: ends serve|drive|once ADDRESS PORT [LINE]\n", stderr);
	return 2;
}
