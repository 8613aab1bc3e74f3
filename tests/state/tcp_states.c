// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * TCP in states that need more data than fits: an end of the stream behind what nobody has read
 * (FIN_WAIT1, CLOSING, LAST_ACK), full in both directions, shut for reading.
 */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/state/state.h"

static struct sockaddr_in at = {.sin_family = AF_INET};
static int listener;

/* [0] connected to [1]; there is room for more than is received, not for megabytes. */
static void pair(int sv[2])
{
	int size = 200000;

	sv[0] = socket(AF_INET, SOCK_STREAM, 0);
	STATE_CHECK(sv[0] >= 0 && connect(sv[0], (void *)&at, sizeof(at)) == 0);
	sv[1] = accept(listener, NULL, NULL);
	STATE_CHECK(sv[1] >= 0);
	for (int i = 0; i < 2; i++)
		STATE_CHECK(setsockopt(sv[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
}

static int state_of(int fd)
{
	struct tcp_info info;
	socklen_t len = sizeof(info);

	STATE_CHECK(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0);
	return info.tcpi_state;
}

/* What the other side has said arrives in its time. */
static void await(int fd, int state)
{
	while (state_of(fd) != state)
		state_nap();
}

static unsigned char byte_at(size_t place)
{
	return (unsigned char)(place * 2654435761u >> 24);
}

/* Writes until nothing more is taken; every byte tells its place. */
static size_t stuff(int fd)
{
	static unsigned char block[16384];
	size_t sent = 0;
	int dry = 0;

	STATE_CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	while (dry < 5) {
		ssize_t n;

		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = byte_at(sent + i);
		n = write(fd, block, sizeof(block));
		STATE_CHECK(n > 0 || errno == EAGAIN);
		if (n < 0) {
			dry++;
			state_nap();
			continue;
		}
		sent += (size_t)n;
		dry = 0;
	}
	return sent;
}

static void drain(int fd, size_t expected)
{
	static unsigned char block[16384];
	size_t got = 0;

	STATE_CHECK(fcntl(fd, F_SETFL, 0) == 0);
	while (got < expected) {
		ssize_t n = read(fd, block, sizeof(block));

		STATE_CHECK(n > 0);
		for (ssize_t i = 0; i < n; i++)
			STATE_CHECK(block[i] == byte_at(got + (size_t)i));
		got += (size_t)n;
	}
	STATE_CHECK(got == expected);
}

static void expect_end(int fd)
{
	char c;

	STATE_CHECK(recv(fd, &c, 1, 0) == 0);
}

static void expect_broken(int fd)
{
	STATE_CHECK(send(fd, "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
}

static void say(int from, int to, const char *word)
{
	char buf[16];

	STATE_CHECK(write(from, word, strlen(word)) == (ssize_t)strlen(word));
	STATE_CHECK(recv(to, buf, strlen(word), MSG_WAITALL) == (ssize_t)strlen(word));
	STATE_CHECK(!memcmp(buf, word, strlen(word)));
}

static int fin_wait1[2], closing[2], last_ack[2], full[2], deaf[2];
static size_t fin_wait1_sent, closing_sent, last_ack_sent, there, back;

static void make(void)
{
	pair(fin_wait1);
	fin_wait1_sent = stuff(fin_wait1[0]);
	STATE_CHECK(shutdown(fin_wait1[0], SHUT_WR) == 0);
	await(fin_wait1[0], TCP_FIN_WAIT1);

	pair(closing);
	closing_sent = stuff(closing[0]);
	STATE_CHECK(shutdown(closing[0], SHUT_WR) == 0 && shutdown(closing[1], SHUT_WR) == 0);
	await(closing[0], TCP_CLOSING);

	pair(last_ack);
	last_ack_sent = stuff(last_ack[0]);
	STATE_CHECK(shutdown(last_ack[1], SHUT_WR) == 0);
	await(last_ack[0], TCP_CLOSE_WAIT);
	STATE_CHECK(shutdown(last_ack[0], SHUT_WR) == 0);
	await(last_ack[0], TCP_LAST_ACK);

	pair(full);
	there = stuff(full[0]);
	back = stuff(full[1]);

	pair(deaf);
	STATE_CHECK(write(deaf[0], "unheard", 7) == 7);
	STATE_CHECK(shutdown(deaf[1], SHUT_RD) == 0);
}

static void check(void)
{
	char buf[16];

	expect_broken(fin_wait1[0]);
	drain(fin_wait1[1], fin_wait1_sent);
	expect_end(fin_wait1[1]);
	await(fin_wait1[0], TCP_FIN_WAIT2);
	STATE_CHECK(fcntl(fin_wait1[0], F_SETFL, 0) == 0);
	say(fin_wait1[1], fin_wait1[0], "still open");

	expect_broken(closing[0]);
	expect_end(closing[0]);
	drain(closing[1], closing_sent);
	expect_end(closing[1]);
	expect_broken(closing[1]);

	expect_broken(last_ack[0]);
	expect_end(last_ack[0]);
	drain(last_ack[1], last_ack_sent);
	expect_end(last_ack[1]);

	drain(full[1], there);
	drain(full[0], back);
	say(full[0], full[1], "on");
	say(full[1], full[0], "and back");

	/* What was there is still read; then it does not wait for more, but takes it. */
	STATE_CHECK(recv(deaf[1], buf, sizeof(buf), 0) == 7 && !memcmp(buf, "unheard", 7));
	expect_end(deaf[1]);
	say(deaf[1], deaf[0], "says");
	STATE_CHECK(write(deaf[0], "more", 4) == 4);
}

int main(int argc, char **argv)
{
	socklen_t len = sizeof(at);

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	STATE_CHECK(bind(listener, (void *)&at, len) == 0 && listen(listener, 5) == 0);
	STATE_CHECK(getsockname(listener, (void *)&at, &len) == 0);
	make();
	state_ready(argc, argv);
	check();
	return state_ok();
}
