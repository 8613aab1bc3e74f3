// SPDX-License-Identifier: GPL-2.0-or-later
/* Datagram sockets with names: whom they are connected to, what waits, and from whom it came. */
#include <sys/socket.h>
#include <sys/un.h>

#include "tests/state/state.h"

static struct sockaddr_un named(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	return a;
}

static int bound(const char *path)
{
	struct sockaddr_un a = named(path);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	STATE_CHECK(fd >= 0 && bind(fd, (void *)&a, sizeof(a)) == 0);
	return fd;
}

static void expect(int fd, const char *data, const char *from)
{
	struct sockaddr_un a;
	socklen_t len = sizeof(a);
	char buf[64];
	ssize_t n = recvfrom(fd, buf, sizeof(buf), MSG_DONTWAIT, (void *)&a, &len);

	STATE_CHECK(n == (ssize_t)strlen(data) && !memcmp(buf, data, strlen(data)));
	if (from)
		STATE_CHECK(len > sizeof(sa_family_t) && !strcmp(a.sun_path, from));
	else
		STATE_CHECK(len <= sizeof(sa_family_t));
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/state-dgram-XXXXXX", s[64], c[64], d[64], l[64];
	struct sockaddr_un to;
	int server, client, connected, nameless, dead, left, bare;

	STATE_CHECK(mkdtemp(dir));
	snprintf(s, sizeof(s), "%s/server", dir);
	snprintf(c, sizeof(c), "%s/client", dir);
	snprintf(d, sizeof(d), "%s/dead", dir);
	server = bound(s);
	client = bound(c);
	dead = bound(d);
	connected = socket(AF_UNIX, SOCK_DGRAM, 0);
	nameless = socket(AF_UNIX, SOCK_DGRAM, 0);
	to = named(s);
	STATE_CHECK(connect(connected, (void *)&to, sizeof(to)) == 0);
	STATE_CHECK(sendto(client, "from client", 11, 0, (void *)&to, sizeof(to)) == 11);
	STATE_CHECK(sendto(dead, "from dead", 9, 0, (void *)&to, sizeof(to)) == 9);
	STATE_CHECK(sendto(nameless, "from nobody", 11, 0, (void *)&to, sizeof(to)) == 11);
	STATE_CHECK(send(connected, "connected", 9, 0) == 9);
	/* Connected to one that is gone, with and without a name of their own. */
	snprintf(l, sizeof(l), "%s/left", dir);
	left = bound(l);
	bare = socket(AF_UNIX, SOCK_DGRAM, 0);
	to = named(l);
	STATE_CHECK(sendto(dead, "before", 6, 0, (void *)&to, sizeof(to)) == 6);
	to = named(d);
	STATE_CHECK(connect(left, (void *)&to, sizeof(to)) == 0);
	STATE_CHECK(connect(bare, (void *)&to, sizeof(to)) == 0);
	close(dead);
	unlink(d);

	state_ready(argc, argv);

	expect(server, "from client", c);
	expect(server, "from dead", d);
	expect(server, "from nobody", NULL);
	expect(server, "connected", NULL);
	STATE_CHECK(send(connected, "again", 5, 0) == 5);
	expect(server, "again", NULL);
	to = named(c);
	STATE_CHECK(sendto(server, "answer", 6, 0, (void *)&to, sizeof(to)) == 6);
	expect(client, "answer", s);
	STATE_CHECK(access(d, F_OK) == -1);
	expect(left, "before", d);
	STATE_CHECK(send(left, "x", 1, 0) == -1 && errno == ECONNREFUSED);
	STATE_CHECK(send(bare, "x", 1, 0) == -1 && errno == ECONNREFUSED);
	state_remove(dir);
	return state_ok();
}
