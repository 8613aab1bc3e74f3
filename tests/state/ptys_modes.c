// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a pseudo terminal can be told: raw, packet mode with news for who reads, exclusive, stopped
 * output, an end of the file typed, several lines typed, locked; one that is nobody's controlling
 * terminal, and one whose session's leader has gone.
 */
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>

#include "tests/state/state.h"

struct ends {
	int master, slave;
	char name[64];
};

static struct ends opened(void)
{
	struct ends e;

	STATE_CHECK(openpty(&e.master, &e.slave, e.name, NULL, NULL) == 0);
	return e;
}

/* What the slave is given to read, or -1 if nothing. */
static ssize_t typed(const struct ends *e, char *buf, size_t len)
{
	struct pollfd p = {.fd = e->slave, .events = POLLIN};

	return poll(&p, 1, 0) == 1 ? read(e->slave, buf, len) : -1;
}

static void expect(int fd, const char *text)
{
	char buf[64];
	ssize_t n = (ssize_t)strlen(text);

	STATE_CHECK(read(fd, buf, sizeof(buf)) == n && !memcmp(buf, text, (size_t)n));
}

static void wait_for_input(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	STATE_CHECK(poll(&p, 1, -1) == 1);
}

/* ---- settings -------------------------------------------------------------------------------- */

static struct ends raw, packet, exclusive, stopped;
static int locked;

static void make_settings(void)
{
	struct termios t;
	int one = 1;

	raw = opened();
	STATE_CHECK(tcgetattr(raw.slave, &t) == 0);
	cfmakeraw(&t);
	t.c_cc[VMIN] = 0;
	t.c_cc[VTIME] = 3;
	cfsetspeed(&t, B115200);
	STATE_CHECK(tcsetattr(raw.slave, TCSANOW, &t) == 0);
	STATE_CHECK(write(raw.master, "\003\004\r\n", 4) == 4);
	wait_for_input(raw.slave);

	packet = opened();
	STATE_CHECK(ioctl(packet.master, TIOCPKT, &one) == 0);
	STATE_CHECK(write(packet.slave, "data", 4) == 4);

	exclusive = opened();
	STATE_CHECK(ioctl(exclusive.slave, TIOCEXCL) == 0);

	stopped = opened();
	STATE_CHECK(tcflow(stopped.slave, TCOOFF) == 0);

	locked = posix_openpt(O_RDWR | O_NOCTTY);
	STATE_CHECK(locked >= 0);
}

static void check_settings(void)
{
	struct pollfd p = {.fd = packet.master, .events = POLLIN | POLLPRI};
	struct termios t;
	char buf[64];
	int v = 0;

	STATE_CHECK(tcgetattr(raw.slave, &t) == 0 && !(t.c_lflag & (ICANON | ECHO | ISIG)));
	STATE_CHECK(t.c_cc[VMIN] == 0 && t.c_cc[VTIME] == 3 && cfgetospeed(&t) == B115200);
	STATE_CHECK(!(t.c_oflag & OPOST) && !(t.c_iflag & ICRNL));
	STATE_CHECK(typed(&raw, buf, sizeof(buf)) == 4 && !memcmp(buf, "\003\004\r\n", 4));
	STATE_CHECK(write(raw.slave, "\n", 1) == 1);
	expect(raw.master, "\n");

	STATE_CHECK(ioctl(packet.master, TIOCGPKT, &v) == 0 && v == 1);
	STATE_CHECK(read(packet.master, buf, sizeof(buf)) == 5 && !memcmp(buf, "\0data", 5));
	STATE_CHECK(poll(&p, 1, 0) == 0);
	STATE_CHECK(tcflush(packet.slave, TCOFLUSH) == 0 && poll(&p, 1, 0) == 1);
	STATE_CHECK(read(packet.master, buf, sizeof(buf)) == 1 && buf[0] & TIOCPKT_FLUSHWRITE);

	STATE_CHECK(ioctl(exclusive.slave, TIOCGEXCL, &v) == 0 && v == 1);
	STATE_CHECK(
		geteuid() == 0 || (open(exclusive.name, O_RDWR | O_NOCTTY) < 0 && errno == EBUSY));

	STATE_CHECK(fcntl(stopped.slave, F_SETFL, O_NONBLOCK) == 0);
	STATE_CHECK(write(stopped.slave, "x", 1) == -1 && errno == EAGAIN);
	STATE_CHECK(tcflow(stopped.slave, TCOON) == 0 && write(stopped.slave, "go", 2) == 2);
	expect(stopped.master, "go");

	STATE_CHECK(ioctl(locked, TIOCGPTLCK, &v) == 0 && v == 1);
	STATE_CHECK(open(ptsname(locked), O_RDWR | O_NOCTTY) < 0 && errno == EIO);
	STATE_CHECK(unlockpt(locked) == 0);
}

/* ---- typed ----------------------------------------------------------------------------------- */

static struct ends lines, ended;

static void make_typed(void)
{
	struct termios t;

	lines = opened();
	STATE_CHECK(tcgetattr(lines.slave, &t) == 0);
	t.c_lflag &= ~(tcflag_t)ECHO;
	STATE_CHECK(tcsetattr(lines.slave, TCSANOW, &t) == 0);
	STATE_CHECK(write(lines.master, "one\ntwo\nthr", 11) == 11);
	wait_for_input(lines.slave);
	ended = opened();
	STATE_CHECK(tcsetattr(ended.slave, TCSANOW, &t) == 0);
	/* An end of the file behind a line, and one behind nothing. */
	STATE_CHECK(write(ended.master, "last\004\004", 6) == 6);
	wait_for_input(ended.slave);
}

static void check_typed(void)
{
	char buf[64];

	expect(lines.slave, "one\n");
	expect(lines.slave, "two\n");
	STATE_CHECK(typed(&lines, buf, sizeof(buf)) == -1);
	STATE_CHECK(write(lines.master, "ee\n", 3) == 3);
	wait_for_input(lines.slave);
	expect(lines.slave, "three\n");
	expect(ended.slave, "last");
	STATE_CHECK(typed(&ended, buf, sizeof(buf)) == 0);
	STATE_CHECK(typed(&ended, buf, sizeof(buf)) == -1);
}

/* ---- sessions -------------------------------------------------------------------------------- */

static volatile pid_t *left; /* who stays behind */
static struct ends nobodys, leaderless;

/* A session whose leader ends: its terminal is nobody's any more, the member has no other. */
static void make_sessions(void)
{
	pid_t leader;

	left = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	nobodys = opened();
	leaderless = opened();
	leader = fork();
	STATE_CHECK(leader >= 0);
	if (leader == 0) {
		STATE_CHECK(setsid() > 0 && ioctl(leaderless.slave, TIOCSCTTY, 0) == 0);
		signal(SIGHUP, SIG_IGN);
		if (fork() == 0) {
			close(1);
			while (getppid() == getsid(0))
				state_nap();
			*left = getpid();
			for (;;)
				pause();
		}
		_exit(0);
	}
	STATE_CHECK(waitpid(leader, NULL, 0) == leader);
	while (!*left)
		state_nap();
}

static void check_sessions(void)
{
	pid_t owner = 0;

	STATE_CHECK(ioctl(nobodys.master, TIOCGSID, &owner) == -1 && errno == ENOTTY);
	STATE_CHECK(tcgetpgrp(nobodys.slave) == -1 && errno == ENOTTY);
	STATE_CHECK(ioctl(leaderless.master, TIOCGSID, &owner) == -1);
	STATE_CHECK(kill(*left, 0) == 0 && getsid(*left) != getsid(0));
	STATE_CHECK(write(leaderless.slave, "free", 4) == 4);
	expect(leaderless.master, "free");
	kill(*left, SIGKILL);
}

int main(int argc, char **argv)
{
	make_settings();
	make_typed();
	make_sessions();
	state_ready(argc, argv);
	check_settings();
	check_typed();
	check_sessions();
	return state_ok();
}
