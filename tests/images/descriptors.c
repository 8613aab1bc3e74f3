// SPDX-License-Identifier: GPL-2.0-or-later
/* Objects of old.c that are only descriptors: pipes, events, timers, signals, watches. */
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/inotify.h>

#include "call.h"

#define AN_HOUR 3600

static int pipe_ends[2], event, epoll, timer, signals, watch;

static void set_up(void)
{
	const unsigned long long usr2 = 1ULL << (SIGUSR2 - 1);
	const long hour[4] = {0, 0, AN_HOUR, 0};
	const unsigned long long seven = 7;
	struct epoll_event wanted = {.events = EPOLLIN, .data.u64 = 0x1234567890};

	check(call(SYS_pipe2, (long)pipe_ends, O_NONBLOCK, 0, 0) == 0, "pipe");
	check(call(SYS_fcntl, pipe_ends[0], F_SETPIPE_SZ, 8192, 0) == 8192, "size of a pipe");
	call(SYS_write, pipe_ends[1], (long)pattern, 11, 0);
	event = (int)call(SYS_eventfd2, 0, 0, 0, 0);
	call(SYS_write, event, (long)&seven, 8, 0);
	epoll = (int)call(SYS_epoll_create1, O_CLOEXEC, 0, 0, 0);
	check(call(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, event, (long)&wanted) == 0, "epoll");
	timer = (int)call(SYS_timerfd_create, 1, 0, 0, 0); /* CLOCK_MONOTONIC */
	check(call(SYS_timerfd_settime, timer, 0, (long)hour, 0) == 0, "timerfd");
	call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&usr2, 0, 8);
	signals = (int)call(SYS_signalfd4, -1, (long)&usr2, 8, O_NONBLOCK);
	call(SYS_kill, call(SYS_getpid, 0, 0, 0, 0), SIGUSR2, 0, 0);
	watch = (int)call(SYS_inotify_init1, O_NONBLOCK, 0, 0, 0);
	call(SYS_mkdir, (long)"/tmp/watched", 0700, 0, 0);
	check(call(SYS_inotify_add_watch, watch, (long)"/tmp/watched", IN_CREATE, 0) == 1,
		"inotify");
}

static void look(void)
{
	struct epoll_event got = {0};
	unsigned long long count = 0;
	long rest[4] = {0};
	unsigned info[32] = {0}, told[16] = {0};

	check(call(SYS_fcntl, pipe_ends[0], F_GETFL, 0, 0) & O_NONBLOCK, "flags of a pipe");
	check(call(SYS_fcntl, pipe_ends[0], F_GETPIPE_SZ, 0, 0) == 8192, "size of a pipe");
	check(reads(pipe_ends[0], PATTERN, 11), "pipe");
	check(call(SYS_epoll_wait, epoll, (long)&got, 1, 0) == 1 && got.data.u64 == 0x1234567890,
		"epoll");
	check(call(SYS_fcntl, epoll, F_GETFD, 0, 0) == FD_CLOEXEC, "flags of a descriptor");
	check(call(SYS_read, event, (long)&count, 8, 0) == 8 && count == 7, "eventfd");
	check(call(SYS_timerfd_gettime, timer, (long)rest, 0, 0) == 0 && rest[2] > 0 &&
			rest[2] <= AN_HOUR,
		"timerfd");
	check(call(SYS_read, signals, (long)info, 128, 0) == 128 && info[0] == SIGUSR2, "signalfd");
	open_at("/tmp/watched/new", O_RDWR | O_CREAT);
	check(call(SYS_read, watch, (long)told, sizeof(told), 0) > 0 && told[0] == 1 &&
			told[1] == IN_CREATE,
		"inotify");
}

const struct part part_descriptors = {set_up, look};
