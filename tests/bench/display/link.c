// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * bench link - a line between a viewer and a server: delay and a limit of bandwidth.
 *
 *     link TARGET RTT_MS MBIT       TARGET is a port of this host's, or unix:PATH
 *
 * Prints the port it listens at, on the loopback, and relays one connection after the other.  Each
 * direction is a line of its own: bytes are taken from the sender as fast as the line is, and
 * arrive half the round trip after the last of their piece has been.  What the line has no room for
 * stays with the sender, as with TCP whose window is as large as the line needs: nothing is lost
 * and no window grows slowly, for no system and none of its peers.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PIECE  4096
#define PIECES 4096	   /* on the way, each direction */
#define AHEAD  500000ULL   /* ns that are taken before the line has room */
#define WINDOW (64 * 1024) /* bytes that a server's socket may hold for us */

struct piece {
	unsigned long long due; /* ns */
	size_t len, done;
	char data[PIECE];
};

struct way {
	int from, to;
	unsigned long long free_at; /* the line is */
	unsigned head, tail;	    /* of pieces, counted on */
	struct piece pieces[PIECES];
};

static unsigned long long delay; /* ns, one way */
static double ns_per_byte;

static unsigned long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long long)t.tv_sec * 1000000000ULL + (unsigned long long)t.tv_nsec;
}

static int takes(const struct way *w, unsigned long long now)
{
	return w->tail - w->head < PIECES && w->free_at <= now + AHEAD;
}

/* -1 at the end of the connection. */
static int take(struct way *w, unsigned long long now)
{
	struct piece *p = &w->pieces[w->tail % PIECES];
	ssize_t n = recv(w->from, p->data, PIECE, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	w->free_at = (w->free_at > now ? w->free_at : now) +
		     (unsigned long long)((double)n * ns_per_byte);
	p->due = w->free_at + delay;
	p->len = (size_t)n;
	p->done = 0;
	w->tail++;
	return 0;
}

/* 1 if the receiver has no room, -1 if there is none. */
static int give(struct way *w, unsigned long long now)
{
	while (w->head != w->tail) {
		struct piece *p = &w->pieces[w->head % PIECES];
		ssize_t n;

		if (p->due > now)
			return 0;
		n = send(w->to, p->data + p->done, p->len - p->done, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 1 : -1;
		p->done += (size_t)n;
		if (p->done < p->len)
			return 1;
		w->head++;
	}
	return 0;
}

static void sooner(unsigned long long *at, unsigned long long other)
{
	if (other < *at)
		*at = other;
}

static void relay(int a, int b)
{
	static struct way ways[2];

	for (int i = 0; i < 2; i++) {
		ways[i].head = ways[i].tail = 0;
		ways[i].free_at = 0;
		ways[i].from = i ? b : a;
		ways[i].to = i ? a : b;
	}
	for (;;) {
		struct pollfd polls[2] = {{.fd = a}, {.fd = b}}; /* [i] is ways[i].from */
		unsigned long long now = now_ns(), next = now + 1000000000ULL;
		struct timespec wait;

		for (int i = 0; i < 2; i++) {
			struct way *w = &ways[i];
			int blocked = give(w, now);

			if (blocked < 0)
				return;
			if (blocked)
				polls[!i].events |= POLLOUT;
			else if (w->head != w->tail)
				sooner(&next, w->pieces[w->head % PIECES].due);
			if (takes(w, now))
				polls[i].events |= POLLIN;
			else if (w->tail - w->head < PIECES)
				sooner(&next, w->free_at - AHEAD);
		}
		now = now_ns();
		next = next > now ? next - now : 0;
		wait.tv_sec = (time_t)(next / 1000000000ULL);
		wait.tv_nsec = (long)(next % 1000000000ULL);
		ppoll(polls, 2, &wait, NULL);
		now = now_ns();
		for (int i = 0; i < 2; i++)
			if (polls[i].revents & (POLLIN | POLLHUP | POLLERR) &&
				takes(&ways[i], now) && take(&ways[i], now) < 0)
				return;
	}
}

static int reach(const char *target)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int local = strncmp(target, "unix:", 5) == 0, one = 1, window = WINDOW;
	int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof(window));
	if (local) {
		snprintf(un.sun_path, sizeof(un.sun_path), "%s", target + 5);
		return connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0 ? -1 : fd;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	in.sin_port = htons((uint16_t)atoi(target));
	return connect(fd, (struct sockaddr *)&in, sizeof(in)) < 0 ? -1 : fd;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int listener, one = 1;

	if (argc != 4) {
		fprintf(stderr, "usage: link TARGET RTT_MS MBIT\n");
		return 2;
	}
	delay = (unsigned long long)(atof(argv[2]) * 1e6 / 2);
	ns_per_byte = 8e3 / atof(argv[3]);
	prctl(PR_SET_TIMERSLACK, 1UL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listener, (struct sockaddr *)&a, sizeof(a)) < 0 || listen(listener, 1) < 0 ||
		getsockname(listener, (struct sockaddr *)&a, &len) < 0) {
		perror("link");
		return 1;
	}
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	for (;;) {
		int viewer = accept4(listener, NULL, NULL, SOCK_CLOEXEC), server = reach(argv[1]);

		if (viewer < 0 || server < 0) {
			perror(argv[1]);
			return 1;
		}
		setsockopt(viewer, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		relay(viewer, server);
		close(viewer);
		close(server);
	}
}
