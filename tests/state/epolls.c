// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * epoll: ready and idle entries, data, edges, one-shots that have fired, entries whose number was
 * closed or used again, one epoll in another, one shared by a fork, a thread that waits in it.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static void add(int ep, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = {.events = events, .data.u64 = data};

	STATE_CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == 0);
}

static struct epoll_event one(int ep)
{
	struct epoll_event ev[4];
	int n = epoll_wait(ep, ev, 4, 1000);

	STATE_CHECK(n == 1);
	return ev[0];
}

static void none(int ep)
{
	struct epoll_event ev;

	STATE_CHECK(epoll_wait(ep, &ev, 1, 0) == 0);
}

static void bump(int fd)
{
	uint64_t v = 1;

	STATE_CHECK(write(fd, &v, sizeof(v)) == sizeof(v));
}

static void drain(int fd)
{
	uint64_t v;

	STATE_CHECK(read(fd, &v, sizeof(v)) == sizeof(v));
}

static void *waiter(void *arg)
{
	struct epoll_event ev;
	int n;

	do
		n = epoll_wait(*(int *)arg, &ev, 1, -1);
	while (n < 0 && errno == EINTR);
	return n == 1 && ev.data.u64 == 0xabcdef ? arg : NULL;
}

int main(int argc, char **argv)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), fired_ep = epoll_create1(0),
	    moved_ep = epoll_create1(0);
	int outer = epoll_create1(0), wait_ep = epoll_create1(0), shared_ep = epoll_create1(0);
	int ready = eventfd(1, EFD_NONBLOCK), idle = eventfd(0, EFD_NONBLOCK);
	int fired = eventfd(1, EFD_NONBLOCK), p[2], kept, moved, wakes, status;
	pthread_t thread;
	void *result;
	pid_t child;

	add(ep, ready, EPOLLIN, 0x1122334455667788);
	add(ep, idle, EPOLLIN | EPOLLET, 2);
	add(outer, ep, EPOLLIN, 77);

	add(fired_ep, fired, EPOLLIN | EPOLLONESHOT, 3);
	STATE_CHECK(one(fired_ep).data.u64 == 3);
	none(fired_ep);

	/* Added as a number that now is something else, and the file lives on under another one. */
	STATE_CHECK(pipe(p) == 0);
	moved = p[0];
	add(moved_ep, moved, EPOLLIN, 4);
	kept = fcntl(moved, F_DUPFD, 300);
	STATE_CHECK(kept >= 300 && close(moved) == 0);
	STATE_CHECK(dup2(idle, moved) == moved);
	add(moved_ep, moved, EPOLLIN, 5);

	wakes = eventfd(0, EFD_NONBLOCK);
	add(wait_ep, wakes, EPOLLIN, 0xabcdef);
	STATE_CHECK(pthread_create(&thread, NULL, waiter, &wait_ep) == 0);

	add(shared_ep, ready, EPOLLIN, 9);
	child = fork();
	if (child == 0) {
		while (access(argv[1], F_OK) != 0)
			state_nap();
		STATE_CHECK(one(shared_ep).data.u64 == 9);
		_exit(0);
	}

	state_ready(argc, argv);

	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	STATE_CHECK(fcntl(ep, F_GETFD) == FD_CLOEXEC);
	STATE_CHECK(one(outer).data.u64 == 77);
	STATE_CHECK(one(ep).data.u64 == 0x1122334455667788);
	drain(ready);
	none(ep);
	bump(idle);
	STATE_CHECK(one(ep).data.u64 == 2);
	none(ep); /* an edge */

	bump(fired);
	none(fired_ep);
	struct epoll_event again = {.events = EPOLLIN | EPOLLONESHOT, .data.u64 = 33};
	STATE_CHECK(epoll_ctl(fired_ep, EPOLL_CTL_MOD, fired, &again) == 0);
	STATE_CHECK(one(fired_ep).data.u64 == 33);

	STATE_CHECK(one(moved_ep).data.u64 == 5);
	drain(idle);
	none(moved_ep);
	STATE_CHECK(write(p[1], "x", 1) == 1);
	STATE_CHECK(one(moved_ep).data.u64 == 4);

	bump(wakes);
	STATE_CHECK(pthread_join(thread, &result) == 0 && result == &wait_ep);
	return state_ok();
}
