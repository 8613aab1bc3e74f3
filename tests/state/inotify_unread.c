// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Events of inotify that nobody has read: they are there, or else the one which says that some were
 * lost; and what comes afterwards is told.  One that several processes have, and one whose watches
 * are all gone.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "tests/state/state.h"

static char dir[] = "/tmp/state-unread-XXXXXX";

static bool readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

static void make(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
	STATE_CHECK(fd >= 0 && close(fd) == 0);
}

/* Reads all: true if it begins with @first of @wd, false if it is that events were lost. */
static bool drain(int fd, int wd, uint32_t first)
{
	_Alignas(struct inotify_event) char buf[4096];
	const struct inotify_event *ev = (void *)buf;
	ssize_t n = read(fd, buf, sizeof(buf));

	STATE_CHECK(n >= (ssize_t)sizeof(*ev));
	if (ev->mask == IN_Q_OVERFLOW) {
		STATE_CHECK(n == sizeof(*ev) && ev->wd == -1 && ev->len == 0);
		return false;
	}
	STATE_CHECK(ev->wd == wd && ev->mask == first);
	return true;
}

int main(int argc, char **argv)
{
	int in = inotify_init1(IN_NONBLOCK), none = inotify_init1(IN_NONBLOCK);
	int quiet = inotify_init1(IN_NONBLOCK), wd, gone, later, again;
	bool had, had_too;

	STATE_CHECK(mkdtemp(dir));
	wd = inotify_add_watch(in, dir, IN_CREATE);
	later = inotify_add_watch(quiet, dir, IN_DELETE);
	gone = inotify_add_watch(none, dir, IN_CREATE);
	STATE_CHECK(wd >= 0 && later >= 0 && gone >= 0);
	STATE_CHECK(inotify_rm_watch(none, gone) == 0); /* which is an event, too */
	make("a");
	make("b");

	state_ready(argc, argv);

	STATE_CHECK(readable(in) && readable(none) && !readable(quiet));
	had = drain(in, wd, IN_CREATE);
	had_too = drain(none, gone, IN_IGNORED);
	STATE_CHECK(had == had_too && !readable(in) && !readable(none));
	make("c");
	STATE_CHECK(readable(in) && drain(in, wd, IN_CREATE) && !readable(quiet));
	again = inotify_add_watch(none, dir, IN_DELETE);
	STATE_CHECK(again > gone);
	state_remove(dir);
	STATE_CHECK(drain(quiet, later, IN_DELETE) && drain(none, again, IN_DELETE));
	return state_ok();
}
