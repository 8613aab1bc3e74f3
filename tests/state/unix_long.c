// SPDX-License-Identifier: GPL-2.0-or-later
/* Names of sockets that have hardly any room left in an address: nothing may make them longer. */
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/state/state.h"

#define LONG 90	 /* bytes of a name */
#define DEEP 107 /* of one in a directory below; all that there is room for */

static char dir[] = "/tmp/state-long-XXXXXX";

static struct sockaddr_un named(char what)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	/* A capital is deep. */
	memset(a.sun_path, what, what < 'a' ? DEEP : LONG);
	memcpy(a.sun_path, dir, strlen(dir));
	a.sun_path[strlen(dir)] = '/';
	if (what < 'a')
		a.sun_path[LONG - 10] = '/';
	return a;
}

static int bound(int type, char what)
{
	struct sockaddr_un a = named(what);
	int fd = socket(AF_UNIX, type, 0);

	STATE_CHECK(fd >= 0 && bind(fd, (void *)&a, sizeof(a)) == 0);
	return fd;
}

static void make_deep(char what)
{
	struct sockaddr_un a = named(what);

	*strrchr(a.sun_path, '/') = '\0';
	STATE_CHECK(mkdir(a.sun_path, 0700) == 0);
}

static void reach(int fd, char what)
{
	struct sockaddr_un a = named(what);

	STATE_CHECK(connect(fd, (void *)&a, sizeof(a)) == 0);
}

static void check_name(int fd, int peer, char what)
{
	struct sockaddr_un a, is = named(what);
	socklen_t n = sizeof(a);

	STATE_CHECK((peer ? getpeername : getsockname)(fd, (void *)&a, &n) == 0);
	STATE_CHECK(n == offsetof(struct sockaddr_un, sun_path) + strlen(is.sun_path) + 1);
	STATE_CHECK(!strcmp(a.sun_path, is.sun_path));
}

static void say(int fd, int to, const char *word)
{
	char buf[16] = "";

	STATE_CHECK(write(fd, word, strlen(word)) == (ssize_t)strlen(word));
	STATE_CHECK(read(to, buf, sizeof(buf)) == (ssize_t)strlen(word) && !strcmp(buf, word));
}

/* What has come is answered by the address that came with it. */
static void answer(int server, int client, const char *word)
{
	struct sockaddr_un from;
	socklen_t len = sizeof(from);
	char buf[16] = "";

	STATE_CHECK(recvfrom(server, buf, sizeof(buf), MSG_DONTWAIT, (void *)&from, &len) ==
		    (ssize_t)strlen(word));
	STATE_CHECK(!strcmp(buf, word));
	STATE_CHECK(sendto(server, "answer", 6, 0, (void *)&from, len) == 6);
	STATE_CHECK(recv(client, buf, sizeof(buf), MSG_DONTWAIT) == 6 && !memcmp(buf, "answer", 6));
}

int main(int argc, char **argv)
{
	struct sockaddr_un to;
	int listener, client, accepted, early, late, left, server, sender, other, deep, below;

	STATE_CHECK(mkdtemp(dir));
	listener = bound(SOCK_STREAM, 's');
	STATE_CHECK(listen(listener, 5) == 0);
	client = bound(SOCK_STREAM, 'c');
	reach(client, 's');
	accepted = accept(listener, NULL, NULL);
	left = socket(AF_UNIX, SOCK_STREAM, 0);
	reach(left, 's');
	other = accept(listener, NULL, NULL);
	STATE_CHECK(accepted >= 0 && other >= 0 && close(other) == 0);
	early = socket(AF_UNIX, SOCK_STREAM, 0);
	reach(early, 's');
	server = bound(SOCK_DGRAM, 'd');
	sender = bound(SOCK_DGRAM, 'e');
	other = socket(AF_UNIX, SOCK_DGRAM, 0);
	reach(other, 'd');
	to = named('d');
	STATE_CHECK(sendto(sender, "early", 5, 0, (void *)&to, sizeof(to)) == 5);
	make_deep('D');
	deep = bound(SOCK_STREAM, 'D');
	STATE_CHECK(listen(deep, 5) == 0);
	make_deep('C');
	below = bound(SOCK_STREAM, 'C');
	reach(below, 'D');

	state_ready(argc, argv);

	check_name(deep, 0, 'D');
	check_name(below, 0, 'C');
	check_name(below, 1, 'D');
	say(below, accept(deep, NULL, NULL), "deep");
	reach(socket(AF_UNIX, SOCK_STREAM, 0), 'D');
	STATE_CHECK(accept(deep, NULL, NULL) >= 0);

	check_name(listener, 0, 's');
	check_name(client, 0, 'c');
	check_name(client, 1, 's');
	check_name(accepted, 0, 's');
	check_name(left, 1, 's');
	check_name(server, 0, 'd');
	check_name(other, 1, 'd');
	say(client, accepted, "ping");
	say(accepted, client, "pong");
	late = socket(AF_UNIX, SOCK_STREAM, 0);
	reach(late, 's');
	accepted = accept(listener, NULL, NULL);
	say(early, accepted, "early");
	accepted = accept(listener, NULL, NULL);
	say(late, accepted, "late");
	answer(server, sender, "early");
	STATE_CHECK(sendto(sender, "late", 4, 0, (void *)&to, sizeof(to)) == 4);
	answer(server, sender, "late");
	say(other, server, "other");
	to = named('s');
	STATE_CHECK(unlink(to.sun_path) == 0);
	listener = bound(SOCK_STREAM, 's');
	check_name(listener, 0, 's');
	state_remove(dir);
	return state_ok();
}
