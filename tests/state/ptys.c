// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pseudo terminals: a job-controlled child on one with bytes both ways, settings, size, /dev/tty;
 * its other end as TIOCGPTPEER opens it; one that was hung up, one whose slave was closed, one
 * nobody has opened yet.
 */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "tests/state/state.h"

#define PATIENCE 3000 /* naps */

static volatile sig_atomic_t resized;

static void on_winch(int sig)
{
	resized = 1;
}

/* Lives on the terminal; says what it finds by its exit status. */
static int on_terminal(const char *go, int slave, int started)
{
	struct sigaction act = {.sa_handler = on_winch};
	char line[64];
	pid_t job;
	int tty, status;
	ssize_t n;

	sigaction(SIGWINCH, &act, NULL);
	tty = open("/dev/tty", O_RDWR);
	if (tty < 0)
		return 10;
	/* A job of its own group in the foreground. */
	job = fork();
	if (job == 0) {
		setpgid(0, 0);
		for (;;)
			pause();
	}
	setpgid(job, job);
	signal(SIGTTOU, SIG_IGN);
	if (tcsetpgrp(slave, job) < 0)
		return 11;
	if (write(slave, "hello\n", 6) != 6 || write(started, "x", 1) != 1)
		return 12;
	while (access(go, F_OK) != 0)
		state_nap();
	if (tcgetpgrp(slave) != job || tcgetsid(slave) != getpid())
		return 13;
	if (tcsetpgrp(tty, getpgrp()) < 0)
		return 14;
	if (isatty(tty) != 1 || !ttyname(slave) || strncmp(ttyname(slave), "/dev/pts/", 9) != 0)
		return 15;
	n = read(tty, line, sizeof(line));
	if (n != 6 || memcmp(line, "typed\n", 6))
		return 16;
	while (!resized)
		state_nap();
	kill(job, SIGKILL);
	if (waitpid(job, &status, 0) != job)
		return 17;
	n = read(slave, line, sizeof(line));
	return n == 5 && !memcmp(line, "half\n", 5) ? 0 : 18;
}

static void expect(int fd, const char *s)
{
	char buf[128] = "";
	size_t n = 0;

	while (n < strlen(s)) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t r;

		STATE_CHECK(poll(&p, 1, 5000) == 1);
		r = read(fd, buf + n, sizeof(buf) - 1 - n);
		STATE_CHECK(r > 0);
		n += (size_t)r;
	}
	STATE_CHECK(!strcmp(buf, s));
}

/* Both ends are called @name, and that leads to no other terminal. */
static void is_called(int master, int slave, const char *name)
{
	struct stat a, b;

	STATE_CHECK(ptsname(master) && strcmp(ptsname(master), name) == 0);
	STATE_CHECK(ttyname(slave) && strcmp(ttyname(slave), name) == 0);
	STATE_CHECK(fstat(slave, &a) == 0 && stat(name, &b) == 0 && a.st_rdev == b.st_rdev);
	STATE_CHECK(a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

/* One more has a name of its own. */
static void new_one(int other)
{
	int master, slave, again;
	char name[64], c;

	STATE_CHECK(openpty(&master, &slave, NULL, NULL, NULL) == 0);
	STATE_CHECK(ttyname_r(slave, name, sizeof(name)) == 0);
	is_called(master, slave, name);
	STATE_CHECK(strcmp(name, ptsname(other)) != 0);
	again = open(name, O_RDWR | O_NOCTTY);
	STATE_CHECK(again >= 0 && write(again, "n", 1) == 1);
	STATE_CHECK(read(master, &c, 1) == 1 && c == 'n');
	close(again);
	close(slave);
	close(master);
	/* Where the host has the names of terminals another process may get this one at once. */
	for (int i = 0; access(name, F_OK) == 0 && i < PATIENCE; i++)
		state_nap();
	STATE_CHECK(access(name, F_OK) < 0 && errno == ENOENT);
}

/* Opened for itself alone by @master, in @fds[0]; and again in [1], which exec leaves open. */
static void open_peer(int master, int fds[2])
{
	fds[0] = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	fds[1] = dup(fds[0]);
	STATE_CHECK(fds[0] >= 0 && fds[1] >= 0);
}

static void check_peer(const int fds[2])
{
	STATE_CHECK(fcntl(fds[0], F_GETFD) == FD_CLOEXEC && fcntl(fds[1], F_GETFD) == 0);
	close(fds[0]);
	close(fds[1]);
}

int main(int argc, char **argv)
{
	struct winsize size = {.ws_row = 31, .ws_col = 97}, now;
	int master, slave, hung_master, hung_slave, closed_master, closed_slave, fresh, status;
	int started[2], peer[2];
	struct termios t;
	struct pollfd p;
	char c, name[64];
	pid_t child;

	STATE_CHECK(pipe(started) == 0);
	child = forkpty(&master, name, NULL, &size);
	STATE_CHECK(child >= 0);
	if (child == 0)
		_exit(on_terminal(argv[1], 0, started[1]));
	STATE_CHECK(read(started[0], &c, 1) == 1);
	slave = open(name, O_RDWR | O_NOCTTY);
	STATE_CHECK(slave >= 0 && tcgetattr(slave, &t) == 0);
	t.c_cc[VERASE] = 'E';
	t.c_cc[VINTR] = 'I';
	STATE_CHECK(tcsetattr(slave, TCSANOW, &t) == 0);
	STATE_CHECK(write(master, "tyEyped\nhalfX", 13) == 13);
	usleep(20000);

	open_peer(master, peer);
	STATE_CHECK(openpty(&hung_master, &hung_slave, NULL, NULL, NULL) == 0);
	STATE_CHECK(close(hung_master) == 0);
	STATE_CHECK(openpty(&closed_master, &closed_slave, NULL, NULL, NULL) == 0);
	STATE_CHECK(write(closed_slave, "bye", 3) == 3 && close(closed_slave) == 0);
	fresh = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK);
	STATE_CHECK(fresh >= 0);

	state_ready(argc, argv);

	STATE_CHECK(fcntl(slave, F_GETFD) == 0);
	check_peer(peer);
	is_called(master, slave, name);
	expect(master, "hello\r\nty\b \byped\r\nhalfX");
	STATE_CHECK(ioctl(slave, TIOCGWINSZ, &now) == 0 && now.ws_row == 31 && now.ws_col == 97);
	STATE_CHECK(tcgetattr(slave, &t) == 0 && t.c_cc[VERASE] == 'E' && t.c_cc[VINTR] == 'I');
	while (tcgetpgrp(master) != child && waitpid(child, &status, WNOHANG) == 0)
		state_nap();
	size.ws_row = 32;
	STATE_CHECK(ioctl(master, TIOCSWINSZ, &size) == 0);
	STATE_CHECK(write(master, "E\n", 2) == 2);
	expect(master, "\b \b\r\n");
	STATE_CHECK(waitpid(child, &status, 0) == child);
	STATE_CHECK(WEXITSTATUS(status) == 0 && WIFEXITED(status));

	STATE_CHECK(read(hung_slave, &c, 1) == 0 && write(hung_slave, "x", 1) == -1);
	p = (struct pollfd){.fd = closed_master, .events = POLLIN};
	STATE_CHECK(poll(&p, 1, 0) == 1 && (p.revents & POLLHUP));
	expect(closed_master, "bye");
	STATE_CHECK(read(closed_master, &c, 1) == -1 && errno == EIO);
	p = (struct pollfd){.fd = fresh, .events = POLLIN};
	STATE_CHECK(poll(&p, 1, 0) == 0);
	STATE_CHECK(grantpt(fresh) == 0 && unlockpt(fresh) == 0 && ptsname(fresh));
	STATE_CHECK(open(ptsname(fresh), O_RDWR | O_NOCTTY) >= 0);
	new_one(master);
	new_one(fresh);
	return state_ok();
}
