// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inotify: watches keep their descriptors, masks and files; one on a file without a name; several
 * inotifies.
 */
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "tests/state/state.h"

#ifndef BASE
#define BASE "/tmp" /* bound from the host; elsewhere is an overlay */
#endif

static void expect(int fd, int wd, uint32_t mask, const char *name)
{
	_Alignas(struct inotify_event) char buf[4096];
	const struct inotify_event *ev = (void *)buf;
	ssize_t n = read(fd, buf, sizeof(buf));

	STATE_CHECK(n > 0 && ev->wd == wd && (ev->mask & IN_ALL_EVENTS) == mask);
	STATE_CHECK(!name || (ev->len && !strcmp(ev->name, name)));
}

static void touch(const char *dir, const char *name)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	close(open(path, O_CREAT | O_WRONLY, 0600));
}

int main(int argc, char **argv)
{
	int in = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), dir, sub, file, skipped, ghost, fd;
	int other = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), again, far;
	char path[64], below[128], name[128], distant[128], c;

	snprintf(path, sizeof(path), BASE "/state-inotify-XXXXXX");
	STATE_CHECK(mkdtemp(path));
	snprintf(below, sizeof(below), "%s/below", path);
	snprintf(name, sizeof(name), "%s/file", path);
	snprintf(distant, sizeof(distant), "%s/one/two/three/four", path);
	for (char *p = distant + strlen(path) + 1; (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		STATE_CHECK(mkdir(distant, 0700) == 0);
	}
	STATE_CHECK(mkdir(distant, 0700) == 0);
	STATE_CHECK(mkdir(below, 0700) == 0);
	touch(path, "file");
	touch(path, "ghost");

	dir = inotify_add_watch(in, path, IN_CREATE | IN_DELETE);
	skipped = inotify_add_watch(in, "/", IN_MOVE_SELF);
	STATE_CHECK(inotify_rm_watch(in, skipped) == 0);
	sub = inotify_add_watch(in, below, IN_CREATE | IN_ONLYDIR);
	file = inotify_add_watch(in, name, IN_MODIFY | IN_ONESHOT);
	snprintf(name, sizeof(name), "%s/ghost", path);
	fd = open(name, O_RDWR);
	ghost = inotify_add_watch(in, name, IN_MODIFY);
	STATE_CHECK(fd >= 0 && ghost > file && file > sub && sub > skipped && skipped > dir);
	STATE_CHECK(unlink(name) == 0);
	far = inotify_add_watch(other, distant, IN_CREATE);
	again = inotify_add_watch(other, below, IN_CREATE);
	STATE_CHECK(far == 1 && again == 2);
	while (read(in, name, sizeof(name)) > 0)
		;

	state_ready(argc, argv);

	STATE_CHECK(read(in, &c, 0) == -1);
	touch(path, "new");
	expect(in, dir, IN_CREATE, "new");
	touch(below, "deep");
	expect(in, sub, IN_CREATE, "deep");
	expect(other, again, IN_CREATE, "deep");
	touch(distant, "away");
	expect(other, far, IN_CREATE, "away");
	STATE_CHECK(write(fd, "x", 1) == 1);
	expect(in, ghost, IN_MODIFY, NULL);
	snprintf(name, sizeof(name), "%s/file", path);
	STATE_CHECK(truncate(name, 5) == 0);
	expect(in, file, IN_MODIFY, NULL);
	STATE_CHECK(inotify_rm_watch(in, dir) == 0);
	STATE_CHECK(inotify_add_watch(in, "/", IN_MOVE_SELF) == ghost + 1);
	state_remove(path);
	return state_ok();
}
