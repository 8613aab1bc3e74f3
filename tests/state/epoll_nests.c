// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * epoll with members of every kind, five levels of it in each other, one in two others, exclusive
 * waiters, one that only a message in flight holds.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define LEVELS 5

static void add(int ep, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event ev = {.events = events, .data.u64 = data};

	STATE_CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) == 0);
}

/* The data of all that is ready, as a set of bits. */
static unsigned ready(int ep)
{
	struct epoll_event ev[32];
	int n = epoll_wait(ep, ev, 32, 0);
	unsigned set = 0;

	STATE_CHECK(n >= 0);
	while (n--)
		set |= 1u << ev[n].data.u64;
	return set;
}

static void await(int ep, unsigned want)
{
	while ((ready(ep) & want) != want)
		state_nap();
}

static void bump(int fd)
{
	uint64_t v = 1;

	STATE_CHECK(write(fd, &v, sizeof(v)) == sizeof(v));
}

static void send_fd(int sock, int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = {0}, byte = 'x';
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	STATE_CHECK(sendmsg(sock, &m, 0) == 1);
}

static int take_fd(int sock)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	int fd = -1;

	STATE_CHECK(recvmsg(sock, &m, 0) == 1 && CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

enum { EVENT, TIMER, SIGNAL, WATCH, CHILD, SOCKET, PIPE, FIFO_END, MEMBERS };

static int levels[LEVELS], beside, deep, excl[2], one, flight[2];

/* A nest: the eventfd is ready in the outermost when it is in the innermost. */
static void make_nest(void)
{
	deep = eventfd(0, EFD_NONBLOCK);
	for (int i = 0; i < LEVELS; i++) {
		levels[i] = epoll_create1(0);
		add(levels[i], i ? levels[i - 1] : deep, EPOLLIN, (uint64_t)i);
	}
	beside = epoll_create1(0);
	add(beside, levels[1], EPOLLIN | EPOLLET, 9);
}

static void check_nest(void)
{
	for (int i = 0; i < LEVELS; i++)
		STATE_CHECK(ready(levels[i]) == 0);
	STATE_CHECK(ready(beside) == 0);
	bump(deep);
	for (int i = LEVELS - 1; i >= 0; i--)
		STATE_CHECK(ready(levels[i]) == 1u << i);
	STATE_CHECK(ready(beside) == 1u << 9 && ready(beside) == 0);
}

/* Two that each wake one waiter, and one that only a message holds. */
static void make_others(void)
{
	int sent = epoll_create1(0), inner = eventfd(3, EFD_NONBLOCK);

	one = eventfd(0, EFD_NONBLOCK);
	for (int i = 0; i < 2; i++) {
		excl[i] = epoll_create1(0);
		add(excl[i], one, EPOLLIN | EPOLLEXCLUSIVE, (uint64_t)i);
	}
	add(sent, inner, EPOLLIN, 5);
	STATE_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, flight) == 0);
	send_fd(flight[0], sent);
	close(sent);
}

static void check_others(void)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int sent;

	bump(one);
	STATE_CHECK(ready(excl[0]) == 1 && ready(excl[1]) == 2);
	STATE_CHECK(epoll_ctl(excl[0], EPOLL_CTL_MOD, one, &ev) == -1 && errno == EINVAL);
	sent = take_fd(flight[1]);
	STATE_CHECK(sent >= 0 && ready(sent) == 1u << 5);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/state-nests-XXXXXX", name[64], fifo[64];
	int all = epoll_create1(0), event = eventfd(0, EFD_NONBLOCK);
	int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK), signals, watch, child, status;
	int sv[2], p[2], fd, end;
	struct itimerspec soon = {.it_value.tv_nsec = 1000};
	sigset_t set;
	pid_t pid;

	STATE_CHECK(mkdtemp(dir));
	make_nest();

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_NONBLOCK);
	watch = inotify_init1(IN_NONBLOCK);
	STATE_CHECK(inotify_add_watch(watch, dir, IN_CREATE) >= 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	child = pidfd_open(pid, 0);
	STATE_CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv) == 0 && pipe(p) == 0);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	STATE_CHECK(mkfifo(fifo, 0600) == 0);
	while (read(watch, name, sizeof(name)) > 0)
		;
	end = open(fifo, O_RDONLY | O_NONBLOCK);
	STATE_CHECK(child >= 0 && end >= 0 && event >= 0 && timer >= 0 && signals >= 0);
	add(all, event, EPOLLIN, EVENT);
	add(all, timer, EPOLLIN, TIMER);
	add(all, signals, EPOLLIN, SIGNAL);
	add(all, watch, EPOLLIN | EPOLLWAKEUP, WATCH);
	add(all, child, EPOLLIN, CHILD);
	add(all, sv[0], EPOLLIN | EPOLLRDHUP | EPOLLET, SOCKET);
	add(all, p[0], EPOLLIN | EPOLLPRI, PIPE);
	add(all, end, EPOLLIN, FIFO_END);

	make_others();

	state_ready(argc, argv);

	check_nest();
	STATE_CHECK(ready(all) == 0);
	bump(event);
	STATE_CHECK(ready(all) == 1u << EVENT);
	STATE_CHECK(timerfd_settime(timer, 0, &soon, NULL) == 0);
	await(all, 1u << TIMER);
	STATE_CHECK(kill(getpid(), SIGUSR1) == 0);
	await(all, 1u << SIGNAL);
	snprintf(name, sizeof(name), "%s/new", dir);
	fd = open(name, O_CREAT | O_WRONLY, 0600);
	STATE_CHECK(fd >= 0 && close(fd) == 0 && (ready(all) & 1u << WATCH));
	STATE_CHECK(kill(pid, SIGKILL) == 0);
	await(all, 1u << CHILD);
	STATE_CHECK(waitpid(pid, &status, 0) == pid);
	STATE_CHECK(send(sv[1], "x", 1, 0) == 1 && (ready(all) & 1u << SOCKET));
	STATE_CHECK(!(ready(all) & 1u << SOCKET)); /* an edge */
	STATE_CHECK(write(p[1], "x", 1) == 1 && (ready(all) & 1u << PIPE));
	fd = open(fifo, O_WRONLY);
	STATE_CHECK(fd >= 0 && write(fd, "x", 1) == 1 && (ready(all) & 1u << FIFO_END));
	check_others();
	state_remove(dir);
	return state_ok();
}
