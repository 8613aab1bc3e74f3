// SPDX-License-Identifier: GPL-2.0-or-later
/* Bytes that never stop, over every sort of connection, while the session moves: none is lost. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "tests/state/state.h"

static volatile bool stop;

struct flow {
	const char *name;
	int out, in;
	bool packets;
	uint64_t sent, got;
	pthread_t writer, reader;
};

static unsigned char pattern(uint64_t at)
{
	return (unsigned char)((at * 0x9e3779b97f4a7c15ull) >> 56);
}

static void *write_on(void *arg)
{
	struct flow *f = arg;
	unsigned char block[30000];
	unsigned seed = 1;

	while (!stop) {
		size_t len = 1 + rand_r(&seed) % sizeof(block);
		ssize_t n;

		if (f->packets)
			len = 1 + len % 2000;
		for (size_t i = 0; i < len; i++)
			block[i] = pattern(f->sent + i);
		n = send(f->out, block, len, MSG_NOSIGNAL);
		if (n < 0)
			printf("FAIL: %s: send %s\n", f->name, strerror(errno));
		STATE_CHECK(n > 0);
		f->sent += n;
	}
	STATE_CHECK(f->packets || shutdown(f->out, SHUT_WR) == 0);
	if (f->packets)
		STATE_CHECK(send(f->out, "", 0, 0) == 0);
	return NULL;
}

static void *read_on(void *arg)
{
	struct flow *f = arg;
	unsigned char block[50000];
	unsigned seed = 2;

	for (;;) {
		size_t len = f->packets ? sizeof(block) : 1 + rand_r(&seed) % sizeof(block);
		ssize_t n = recv(f->in, block, len, 0);

		if (n < 0)
			printf("FAIL: %s: recv %s\n", f->name, strerror(errno));
		STATE_CHECK(n >= 0);
		if (n == 0)
			return NULL;
		for (ssize_t i = 0; i < n; i++)
			STATE_CHECK(block[i] == pattern(f->got + i));
		f->got += n;
		if (rand_r(&seed) % 8 == 0)
			usleep(rand_r(&seed) % 3000);
	}
}

static void tcp(int domain, int sv[2])
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} a = {.any.sa_family = domain};
	socklen_t len = domain == AF_INET ? sizeof(a.in) : sizeof(a.in6);
	int l = socket(domain, SOCK_STREAM, 0);

	if (domain == AF_INET)
		a.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		a.in6.sin6_addr = in6addr_loopback;
	STATE_CHECK(l >= 0 && bind(l, &a.any, len) == 0 && listen(l, 1) == 0);
	STATE_CHECK(getsockname(l, &a.any, &len) == 0);
	sv[0] = socket(domain, SOCK_STREAM, 0);
	STATE_CHECK(sv[0] >= 0 && connect(sv[0], &a.any, len) == 0);
	sv[1] = accept(l, NULL, NULL);
	STATE_CHECK(sv[1] >= 0 && close(l) == 0);
}

int main(int argc, char **argv)
{
	struct flow flows[6] = {{.name = "tcp"}, {.name = "tcp back"}, {.name = "tcp6"},
		{.name = "unix"}, {.name = "seqpacket", .packets = true},
		{.name = "dgram", .packets = true}};
	int sv[2];

	tcp(AF_INET, sv);
	flows[0].out = flows[1].in = sv[0];
	flows[0].in = flows[1].out = sv[1];
	tcp(AF_INET6, sv);
	flows[2].out = sv[0];
	flows[2].in = sv[1];
	for (int i = 3; i < 6; i++) {
		static const int types[] = {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM};

		STATE_CHECK(socketpair(AF_UNIX, types[i - 3], 0, sv) == 0);
		flows[i].out = sv[0];
		flows[i].in = sv[1];
	}
	for (int i = 0; i < 6; i++) {
		STATE_CHECK(pthread_create(&flows[i].reader, NULL, read_on, &flows[i]) == 0);
		STATE_CHECK(pthread_create(&flows[i].writer, NULL, write_on, &flows[i]) == 0);
	}
	usleep(50000);

	state_ready(argc, argv);

	stop = true;
	for (int i = 0; i < 6; i++) {
		pthread_join(flows[i].writer, NULL);
		pthread_join(flows[i].reader, NULL);
		STATE_CHECK(flows[i].sent == flows[i].got && flows[i].got > 10000);
	}
	return state_ok();
}
