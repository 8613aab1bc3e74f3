// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Locks of open files: shared and exclusive ones of flock, of ranges (OFD), on directories and on
 * what is gone, of an open file that several processes have, and somebody who waits for each sort.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#ifndef BASE
#define BASE "/tmp"
#endif

static char dir[] = BASE "/state-locks-XXXXXX", path[128];

static int file(const char *name)
{
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_RDWR, 0600);
	STATE_CHECK(fd >= 0);
	return fd;
}

static int range(int fd, int cmd, int type, off_t start, off_t len)
{
	struct flock l = {.l_type = (short)type, .l_start = start, .l_len = len};

	return fcntl(fd, cmd, &l);
}

/* What is in the way of locking it. */
static struct flock probe(int fd, int type, off_t start, off_t len)
{
	struct flock l = {.l_type = (short)type, .l_start = start, .l_len = len};

	STATE_CHECK(fcntl(fd, F_OFD_GETLK, &l) == 0);
	return l;
}

static pid_t waiter(int fd, int flocks)
{
	pid_t pid = fork();

	STATE_CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit((flocks ? flock(fd, LOCK_EX) : range(fd, F_OFD_SETLKW, F_WRLCK, 0, 0)) ? 1
											      : 0);
	}
	return pid;
}

static void gets_it(pid_t pid)
{
	int status;

	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

int main(int argc, char **argv)
{
	int ex, sh, sh2, other, ranges, ranges2, gone, gone2, held, held2, d, d2, status;
	pid_t waits, waits_too, child;
	struct flock l;

	STATE_CHECK(mkdtemp(dir));
	ex = file("ex");
	other = file("ex");
	STATE_CHECK(flock(ex, LOCK_EX) == 0);
	sh = file("sh");
	sh2 = file("sh");
	STATE_CHECK(flock(sh, LOCK_SH) == 0 && flock(sh2, LOCK_SH) == 0);

	ranges = file("ranges");
	ranges2 = file("ranges");
	STATE_CHECK(range(ranges, F_OFD_SETLK, F_WRLCK, 1LL << 33, 10) == 0);
	STATE_CHECK(range(ranges, F_OFD_SETLK, F_RDLCK, 100, 50) == 0);
	STATE_CHECK(range(ranges2, F_OFD_SETLK, F_RDLCK, 120, 0) == -1 && errno == EAGAIN);
	STATE_CHECK(range(ranges2, F_OFD_SETLK, F_RDLCK, 120, 50) == 0);

	gone = file("gone");
	gone2 = file("gone");
	STATE_CHECK(flock(gone, LOCK_EX) == 0 && unlink(path) == 0);
	STATE_CHECK(range(gone2, F_OFD_SETLK, F_WRLCK, 5, 1) == 0);
	d = open(dir, O_RDONLY | O_DIRECTORY);
	d2 = open(dir, O_RDONLY | O_DIRECTORY);
	STATE_CHECK(flock(d, LOCK_SH) == 0);

	/* The child has the open file, too; its lock goes with the last of them. */
	held = file("held");
	held2 = file("held");
	STATE_CHECK(flock(held, LOCK_EX) == 0);
	child = fork();
	STATE_CHECK(child >= 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	STATE_CHECK(close(held) == 0);
	waits = waiter(other, 1);
	waits_too = waiter(ranges2, 0);

	state_ready(argc, argv);

	STATE_CHECK(waitpid(waits, &status, WNOHANG) == 0);
	STATE_CHECK(waitpid(waits_too, &status, WNOHANG) == 0);
	STATE_CHECK(flock(file("ex"), LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK);
	STATE_CHECK(flock(ex, LOCK_UN) == 0);
	gets_it(waits);
	STATE_CHECK(flock(file("sh"), LOCK_EX | LOCK_NB) == -1 && flock(sh, LOCK_UN) == 0);
	STATE_CHECK(flock(sh, LOCK_EX | LOCK_NB) == -1 && flock(sh2, LOCK_UN) == 0);
	STATE_CHECK(flock(sh, LOCK_EX | LOCK_NB) == 0);

	l = probe(ranges2, F_WRLCK, 1LL << 33, 1);
	STATE_CHECK(l.l_type == F_WRLCK && l.l_start == 1LL << 33 && l.l_len == 10);
	l = probe(ranges, F_WRLCK, 0, 0);
	STATE_CHECK(l.l_type == F_RDLCK && l.l_start == 120 && l.l_len == 50);
	l = probe(ranges2, F_WRLCK, 0, 1000);
	STATE_CHECK(l.l_type == F_RDLCK && l.l_start == 100 && l.l_len == 50);
	STATE_CHECK(range(ranges, F_OFD_SETLK, F_UNLCK, 0, 0) == 0);
	gets_it(waits_too);

	STATE_CHECK(flock(gone2, LOCK_SH | LOCK_NB) == -1);
	STATE_CHECK(probe(gone, F_RDLCK, 0, 0).l_type == F_WRLCK);
	STATE_CHECK(flock(d2, LOCK_EX | LOCK_NB) == -1 && flock(d, LOCK_UN) == 0);
	STATE_CHECK(flock(d2, LOCK_EX | LOCK_NB) == 0);
	STATE_CHECK(flock(held2, LOCK_SH | LOCK_NB) == -1);
	STATE_CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	STATE_CHECK(flock(held2, LOCK_SH | LOCK_NB) == 0);
	state_remove(dir);
	return state_ok();
}
