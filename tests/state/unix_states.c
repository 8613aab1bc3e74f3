// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unix sockets in states that the other programs leave out: not connected, shut, bound in a
 * directory that is gone, with a name that somebody else has by now, descriptors within descriptors
 * in flight, listening ones in flight, packets with descriptors, a connection whose listener has
 * gone, more that wait than the listener lets in by now.
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "tests/state/state.h"

static char dir[] = "/tmp/state-unix-XXXXXX";

static struct sockaddr_un named(const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", dir, name);
	return a;
}

static int bound(int type, const char *name)
{
	struct sockaddr_un a = named(name);
	int fd = socket(AF_UNIX, type, 0);

	STATE_CHECK(fd >= 0 && bind(fd, (void *)&a, sizeof(a)) == 0);
	return fd;
}

static int listening(int type, const char *name)
{
	int fd = bound(type, name);

	STATE_CHECK(listen(fd, 4) == 0);
	return fd;
}

static int client(int type, const char *name)
{
	struct sockaddr_un a = named(name);
	int fd = socket(AF_UNIX, type, 0);

	STATE_CHECK(fd >= 0 && connect(fd, (void *)&a, sizeof(a)) == 0);
	return fd;
}

static void delete (const char *name)
{
	struct sockaddr_un a = named(name);

	STATE_CHECK(remove(a.sun_path) == 0);
}

static int called(int fd, const char *name)
{
	struct sockaddr_un a = {0}, is = named(name);
	socklen_t len = sizeof(a);

	return getsockname(fd, (void *)&a, &len) == 0 && !strcmp(a.sun_path, is.sun_path);
}

static void say(int from, int to, const char *word)
{
	char buf[32];
	ssize_t n = (ssize_t)strlen(word);

	STATE_CHECK(send(from, word, (size_t)n, MSG_NOSIGNAL) == n);
	STATE_CHECK(recv(to, buf, sizeof(buf), MSG_DONTWAIT) == n && !memcmp(buf, word, (size_t)n));
}

/* ---- without a peer -------------------------------------------------------------------------- */

static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
static int bare[3], only_bound[3], shut[2];

static void make_alone(void)
{
	static const char *const names[] = {"stream", "dgram", "packet"};

	for (int i = 0; i < 3; i++) {
		bare[i] = socket(AF_UNIX, types[i], 0);
		only_bound[i] = bound(types[i], names[i]);
	}
	STATE_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, shut) == 0);
	STATE_CHECK(send(shut[0], "before", 6, 0) == 6 && shutdown(shut[0], SHUT_WR) == 0);
	STATE_CHECK(send(shut[1], "answer", 6, 0) == 6 && shutdown(shut[0], SHUT_RD) == 0);
}

static void check_alone(void)
{
	char buf[8];
	int c, s;

	STATE_CHECK(recv(bare[0], buf, 1, MSG_DONTWAIT) == -1 && errno == EINVAL);
	STATE_CHECK(recv(bare[1], buf, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	STATE_CHECK(recv(bare[2], buf, 1, MSG_DONTWAIT) == -1 && errno == ENOTCONN);
	STATE_CHECK(listen(only_bound[0], 1) == 0 && listen(only_bound[2], 1) == 0);
	STATE_CHECK(called(only_bound[2], "packet"));
	c = client(SOCK_STREAM, "stream");
	s = accept(only_bound[0], NULL, NULL);
	say(c, s, "first");
	say(client(SOCK_DGRAM, "dgram"), only_bound[1], "second");
	c = client(SOCK_SEQPACKET, "packet");
	s = accept(only_bound[2], NULL, NULL);
	say(s, c, "third");

	STATE_CHECK(send(shut[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
	STATE_CHECK(recv(shut[1], buf, sizeof(buf), 0) == 6 && !memcmp(buf, "before", 6));
	STATE_CHECK(recv(shut[0], buf, sizeof(buf), 0) == 6 && !memcmp(buf, "answer", 6));
	STATE_CHECK(recv(shut[0], buf, sizeof(buf), 0) == 0);
	STATE_CHECK(send(shut[1], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int old_one, new_one, under_fifo, lost_dir, was_dir, unlinked, ghost, to_ghost;

static void make_named(void)
{
	struct sockaddr_un a = named("under");

	old_one = listening(SOCK_STREAM, "twice");
	delete ("twice");
	new_one = listening(SOCK_STREAM, "twice");
	under_fifo = listening(SOCK_SEQPACKET, "under");
	delete ("under");
	STATE_CHECK(mkfifo(a.sun_path, 0600) == 0);
	a = named("sub");
	STATE_CHECK(mkdir(a.sun_path, 0700) == 0);
	lost_dir = listening(SOCK_STREAM, "sub/lost");
	delete ("sub/lost");
	delete ("sub");
	was_dir = bound(SOCK_STREAM, "sub");
	delete ("sub");
	unlinked = listening(SOCK_STREAM, "unlinked");
	delete ("unlinked");
	ghost = bound(SOCK_DGRAM, "ghost");
	to_ghost = client(SOCK_DGRAM, "ghost");
	STATE_CHECK(send(to_ghost, "kept", 4, 0) == 4);
	delete ("ghost");
}

static void check_named(void)
{
	struct sockaddr_un a = named("under");
	struct stat st;
	char buf[8];

	STATE_CHECK(called(old_one, "twice") && called(new_one, "twice"));
	STATE_CHECK(client(SOCK_STREAM, "twice") >= 0 && accept(new_one, NULL, NULL) >= 0);
	STATE_CHECK(fcntl(old_one, F_SETFL, O_NONBLOCK) == 0);
	STATE_CHECK(accept(old_one, NULL, NULL) == -1 && errno == EAGAIN);
	STATE_CHECK(called(under_fifo, "under") && stat(a.sun_path, &st) == 0);
	STATE_CHECK(S_ISFIFO(st.st_mode));
	STATE_CHECK(called(lost_dir, "sub/lost") && called(unlinked, "unlinked"));
	STATE_CHECK(called(was_dir, "sub"));
	a = named("unlinked");
	STATE_CHECK(access(a.sun_path, F_OK) == -1);
	STATE_CHECK(recv(ghost, buf, sizeof(buf), 0) == 4 && called(ghost, "ghost"));
	say(to_ghost, ghost, "still");
}

/* ---- connections ----------------------------------------------------------------------------- */

static int packets, waits, orphaned, fewer, waiting[3];

static void make_connections(void)
{
	int l = listening(SOCK_STREAM, "leaves");

	orphaned = client(SOCK_STREAM, "leaves");
	close(l);
	packets = listening(SOCK_SEQPACKET, "packets");
	waits = client(SOCK_SEQPACKET, "packets");
	fewer = listening(SOCK_STREAM, "fewer");
	for (int i = 0; i < 3; i++)
		waiting[i] = client(SOCK_STREAM, "fewer");
	STATE_CHECK(listen(fewer, 0) == 0 && fcntl(fewer, F_SETFL, O_NONBLOCK) == 0);
}

static void check_fewer(void)
{
	struct sockaddr_un a = named("fewer");
	int c = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	STATE_CHECK(connect(c, (void *)&a, sizeof(a)) == -1 && errno == EAGAIN);
	for (int i = 0; i < 3; i++) {
		STATE_CHECK(!(fcntl(waiting[i], F_GETFL) & O_NONBLOCK));
		say(waiting[i], accept(fewer, NULL, NULL), "fewer");
	}
	STATE_CHECK(accept(fewer, NULL, NULL) == -1 && errno == EAGAIN);
	/* Room for one. */
	client(SOCK_STREAM, "fewer");
	STATE_CHECK(connect(c, (void *)&a, sizeof(a)) == -1 && errno == EAGAIN);
}

static void check_connections(void)
{
	char c;
	int s = accept(packets, NULL, NULL);

	STATE_CHECK(s >= 0);
	say(waits, s, "packet");
	STATE_CHECK(recv(waits, &c, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	STATE_CHECK(recv(orphaned, &c, 1, 0) == -1 && errno == ECONNRESET);
}

/* ---- descriptors in flight ------------------------------------------------------------------- */

static void send_fds(int sock, const int *fds, int n)
{
	char space[CMSG_SPACE(8 * sizeof(int))] = {0};
	struct iovec iov = {"x", 1};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = space};
	struct cmsghdr *c;

	msg.msg_controllen = CMSG_SPACE((size_t)n * sizeof(int));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN((size_t)n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, (size_t)n * sizeof(int));
	STATE_CHECK(sendmsg(sock, &msg, 0) == 1);
}

static void take_fds(int sock, int *fds, int n)
{
	char space[CMSG_SPACE(8 * sizeof(int))], byte;
	struct iovec iov = {&byte, 1};
	struct msghdr msg = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space)};
	struct cmsghdr *c;

	STATE_CHECK(recvmsg(sock, &msg, MSG_DONTWAIT) == 1);
	c = CMSG_FIRSTHDR(&msg);
	STATE_CHECK(c && c->cmsg_len == CMSG_LEN((size_t)n * sizeof(int)));
	memcpy(fds, CMSG_DATA(c), (size_t)n * sizeof(int));
}

static int outer[2], datagrams[2], seq[2], own[2];

static void make_flight(void)
{
	int inner[2], p[2], l, ep;
	struct epoll_event ev = {.events = EPOLLOUT, .data.u32 = 7};

	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, outer) == 0);
	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, inner) == 0);
	STATE_CHECK(pipe(p) == 0 && write(p[1], "deep", 4) == 4);
	/*
	 * A pipe in the queue of a socket in the queue of a socket, whose other end only that has,
	 * too.
	 */
	send_fds(inner[0], p, 1);
	send_fds(outer[0], inner, 2);
	close(inner[0]);
	close(inner[1]);
	close(p[0]);

	STATE_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, datagrams) == 0);
	l = listening(SOCK_STREAM, "flies");
	ep = epoll_create1(0);
	STATE_CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, p[1], &ev) == 0);
	send_fds(datagrams[0], (int[]){l, ep, p[1]}, 3);
	close(l);
	close(ep);
	close(p[1]);

	STATE_CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, seq) == 0);
	send_fds(seq[0], (int[]){seq[0], seq[0]}, 2);
	STATE_CHECK(send(seq[0], "plain", 5, 0) == 5);
	/* One that only its own queue keeps. */
	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, own) == 0);
	send_fds(own[0], &own[1], 1);
}

static void check_flight(void)
{
	int inner[2], p, three[3], two[2], mine, c;
	struct epoll_event ev;
	char buf[8];

	take_fds(outer[1], inner, 2);
	take_fds(inner[1], &p, 1);
	STATE_CHECK(read(p, buf, sizeof(buf)) == 4 && !memcmp(buf, "deep", 4));
	say(inner[0], inner[1], "inner");
	take_fds(datagrams[1], three, 3);
	c = client(SOCK_STREAM, "flies");
	say(c, accept(three[0], NULL, NULL), "flew");
	STATE_CHECK(epoll_wait(three[1], &ev, 1, 0) == 1 && ev.data.u32 == 7);
	STATE_CHECK(write(three[2], "on", 2) == 2 && read(p, buf, sizeof(buf)) == 2);
	take_fds(seq[1], two, 2);
	STATE_CHECK(recv(seq[1], buf, sizeof(buf), 0) == 5 && !memcmp(buf, "plain", 5));
	say(two[1], seq[1], "again");
	take_fds(own[1], &mine, 1);
	say(own[0], mine, "own");
}

int main(int argc, char **argv)
{
	STATE_CHECK(mkdtemp(dir));
	make_alone();
	make_named();
	make_connections();
	make_flight();
	state_ready(argc, argv);
	check_alone();
	check_named();
	check_connections();
	check_fewer();
	check_flight();
	state_remove(dir);
	return state_ok();
}
