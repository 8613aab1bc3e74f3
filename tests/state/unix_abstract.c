// SPDX-License-Identifier: GPL-2.0-or-later
/* Sockets with abstract names: they can be reached as before, and what was connected stays so. */
#include <stddef.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/state/state.h"

struct address {
	struct sockaddr_un un;
	socklen_t len;
};

/* Where the network is the host's, these names are, too. */
static struct address named(const char *what)
{
	static unsigned int mine;
	struct address a = {.un.sun_family = AF_UNIX};

	if (!mine)
		STATE_CHECK(getrandom(&mine, sizeof(mine), 0) == sizeof(mine));
	a.len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			    snprintf(a.un.sun_path + 1, sizeof(a.un.sun_path) - 1, "state-%x-%s",
				    mine, what));
	return a;
}

static int bound(int type, const char *what)
{
	struct address a = named(what);
	int fd = socket(AF_UNIX, type, 0);

	STATE_CHECK(fd >= 0 && bind(fd, (void *)&a.un, a.len) == 0);
	if (type != SOCK_DGRAM)
		STATE_CHECK(listen(fd, 5) == 0);
	return fd;
}

static int client(int type, const char *what)
{
	struct address a = named(what);
	int fd = socket(AF_UNIX, type, 0);

	STATE_CHECK(fd >= 0 && connect(fd, (void *)&a.un, a.len) == 0);
	return fd;
}

static void talk(int from, int to, const char *word)
{
	char buf[32];
	ssize_t n = (ssize_t)strlen(word);

	STATE_CHECK(send(from, word, (size_t)n, 0) == n);
	STATE_CHECK(recv(to, buf, sizeof(buf), MSG_DONTWAIT) == n && !memcmp(buf, word, (size_t)n));
}

/* A new client reaches the listener @fd. */
static void reach(int type, const char *what, int fd)
{
	int c = client(type, what), s = accept(fd, NULL, NULL);

	STATE_CHECK(s >= 0);
	talk(c, s, "ping");
	talk(s, c, "pong");
	close(c);
	close(s);
}

int main(int argc, char **argv)
{
	int stream = bound(SOCK_STREAM, "stream"), packet = bound(SOCK_SEQPACKET, "packet");
	int dgram = bound(SOCK_DGRAM, "dgram"), other = bound(SOCK_DGRAM, "other");
	int c = client(SOCK_STREAM, "stream"), s = accept(stream, NULL, NULL);
	int waits = client(SOCK_STREAM, "stream"), d = client(SOCK_DGRAM, "dgram");
	struct address to = named("other"), from;

	STATE_CHECK(s >= 0);
	STATE_CHECK(sendto(dgram, "queued", 6, 0, (void *)&to.un, to.len) == 6);
	state_ready(argc, argv);
	talk(c, s, "to the server");
	talk(s, c, "to the client");
	talk(d, dgram, "to the datagrams");
	close(s);
	s = accept(stream, NULL, NULL);
	STATE_CHECK(s >= 0);
	talk(waits, s, "accepted at last");
	reach(SOCK_STREAM, "stream", stream);
	reach(SOCK_SEQPACKET, "packet", packet);
	from.len = sizeof(from.un);
	STATE_CHECK(recvfrom(other, (char[8]){0}, 8, 0, (void *)&from.un, &from.len) == 6);
	to = named("dgram");
	STATE_CHECK(from.len == to.len && !memcmp(&from.un, &to.un, to.len));
	STATE_CHECK(sendto(other, "back", 4, 0, (void *)&from.un, from.len) == 4);
	STATE_CHECK(recv(dgram, (char[8]){0}, 8, 0) == 4);
	return state_ok();
}
