// SPDX-License-Identifier: GPL-2.0-or-later
/* Numbers that descriptors hold: owners, locks, terminals, credentials. */
#include "tests/rows/rows.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define PIDFD_GET_INFO _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 0)
#define NUMBERS_OF(n)  _IOR(0xb7, n, int)

static int sockets[2];

static void make(void)
{
	ROW_CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
}

static void owner(void)
{
	struct f_owner_ex ex = {F_OWNER_PID, row_child}, got = {0};

	make();
	ROW_CHECK(fcntl(sockets[0], F_SETOWN, row_child) == 0 &&
		  fcntl(sockets[0], F_GETOWN) == row_child);
	ROW_FAILS(fcntl(sockets[0], F_SETOWN, ROW_NOBODY), ESRCH);
	ROW_FAILS(fcntl(sockets[0], F_SETOWN, 1), EPERM);
	ROW_CHECK(fcntl(sockets[0], F_SETOWN, 0) == 0 && fcntl(sockets[0], F_GETOWN) == 0);
	ROW_CHECK(fcntl(sockets[0], F_SETOWN_EX, &ex) == 0 && ex.pid == row_child);
	ROW_CHECK(fcntl(sockets[0], F_GETOWN_EX, &got) == 0 && got.type == F_OWNER_PID &&
		  got.pid == row_child);
	ex = (struct f_owner_ex){F_OWNER_PGRP, 2};
	ROW_CHECK(fcntl(sockets[0], F_SETOWN_EX, &ex) == 0 &&
		  fcntl(sockets[0], F_GETOWN_EX, &got) == 0);
	ROW_CHECK(got.type == F_OWNER_PGRP && got.pid == 2);
	ex = (struct f_owner_ex){F_OWNER_TID, row_self};
	ROW_FAILS(fcntl(sockets[0], F_SETOWN_EX, &ex), EINVAL);
}

static void socket_owner(void)
{
	int number = row_child, group = -2, none = ROW_NOBODY, got = 0, pair[2];

	make();
	ROW_CHECK(ioctl(sockets[0], FIOSETOWN, &number) == 0 && number == row_child);
	ROW_CHECK(ioctl(sockets[0], FIOGETOWN, &got) == 0 && got == row_child);
	ROW_CHECK(ioctl(sockets[0], SIOCSPGRP, &group) == 0 &&
		  ioctl(sockets[0], SIOCGPGRP, &got) == 0);
	ROW_CHECK(got == -2);
	ROW_FAILS(ioctl(sockets[0], SIOCSPGRP, &none), ESRCH);
	ROW_CHECK(pipe(pair) == 0);
	ROW_FAILS(ioctl(pair[0], FIOSETOWN, &number), ENOTTY);
	ROW_FAILS(ioctl(99, FIOSETOWN, &number), EBADF);
}

static void locks(void)
{
	struct flock lock = {.l_type = F_WRLCK};
	int fd = (int)syscall(SYS_memfd_create, "locks", 0), status;
	pid_t pid;

	ROW_CHECK(fcntl(fd, F_SETLK, &lock) == 0);
	pid = fork();
	if (pid == 0) {
		struct flock a = {.l_type = F_WRLCK}, b = {.l_type = F_WRLCK};

		ROW_CHECK(fcntl(fd, F_GETLK, &a) == 0 && a.l_pid == row_self);
		ROW_CHECK(fcntl(fd, F_OFD_GETLK, &b) == 0 && b.l_pid == row_self);
		_exit(0);
	}
	ROW_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave, status;
	pid_t pid = fork(), got = 0;

	if (pid == 0) {
		ROW_CHECK(setsid() == getpid() && unlockpt(master) == 0);
		slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
		ROW_CHECK(slave >= 0 && ioctl(slave, TIOCSCTTY, 0) == 0);
		ROW_CHECK(ioctl(slave, TIOCGPGRP, &got) == 0 && got == getpid());
		ROW_CHECK(ioctl(slave, TIOCGSID, &got) == 0 && got == getpid());
		got = getpid();
		ROW_CHECK(ioctl(slave, TIOCSPGRP, &got) == 0 && got == getpid());
		got = ROW_NOBODY;
		ROW_FAILS(ioctl(slave, TIOCSPGRP, &got), ESRCH);
		ROW_CHECK(ioctl(slave, TIOCNOTTY) == 0);
		_exit(0);
	}
	ROW_CHECK(waitpid(pid, &status, 0) == pid && (status == 0 || WTERMSIG(status) == SIGHUP));
}

static void terminal_name(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), slave;
	struct stat a, b;
	char name[64];

	ROW_CHECK(grantpt(master) == 0 && unlockpt(master) == 0);
	ROW_CHECK(ptsname_r(master, name, sizeof(name)) == 0);
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	ROW_CHECK(slave >= 0 && fstat(slave, &a) == 0 && stat(name, &b) == 0);
	ROW_CHECK(a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_rdev == b.st_rdev);
	ROW_FAILS(ioctl(master, TIOCGPTN, NULL), EFAULT);
	close(slave);
	close(master);
}

static void processes(void)
{
	struct {
		uint64_t mask, cgroup;
		uint32_t pid, tgid, ppid, rest[20];
	} info = {.mask = 1};
	int fd = (int)syscall(SYS_pidfd_open, row_child, 0);
	int ns = open("/proc/self/ns/pid", O_RDONLY);

	if (ioctl(fd, _IOC(_IOC_READ | _IOC_WRITE, 0xff, 11, 64), &info) == 0) /* since 6.13 */
		ROW_CHECK(info.pid == row_child && info.tgid == row_child && info.ppid == row_self);
	for (int n = 6; n < 10; n++)
		ROW_FAILS(ioctl(ns, NUMBERS_OF(n), (long)row_child), EPERM);
	ROW_FAILS(socket(AF_NETLINK, SOCK_DGRAM, 11), EPERM);
}

/*
 * ---- credentials ----------------------------------------------------------------------------
 */

union control {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(struct ucred))];
};

static struct msghdr message(union control *c, struct iovec *io, pid_t number)
{
	struct ucred cred = {number, getuid(), getgid()};
	struct msghdr m = {.msg_iov = io,
		.msg_iovlen = 1,
		.msg_control = c->space,
		.msg_controllen = sizeof(c->space)};
	struct cmsghdr *h;

	memset(c, 0, sizeof(*c));
	h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_CREDENTIALS;
	h->cmsg_len = CMSG_LEN(sizeof(cred));
	memcpy(CMSG_DATA(h), &cred, sizeof(cred));
	return m;
}

static pid_t number_in(struct msghdr *m)
{
	struct ucred cred = {0};

	memcpy(&cred, CMSG_DATA(CMSG_FIRSTHDR(m)), sizeof(cred));
	return cred.pid;
}

static void credentials(void)
{
	union control c;
	char byte = 'x';
	struct iovec io = {&byte, 1};
	struct mmsghdr many = {0};
	struct ucred peer = {0};
	socklen_t len = sizeof(peer);
	struct msghdr m;
	int on = 1;

	make();
	setsockopt(sockets[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	ROW_CHECK(getsockopt(sockets[0], SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
		  peer.pid == row_self);
	m = message(&c, &io, row_self);
	ROW_CHECK(sendmsg(sockets[0], &m, 0) == 1 && number_in(&m) == row_self);
	m = message(&c, &io, 0);
	ROW_CHECK(recvmsg(sockets[1], &m, 0) == 1 && number_in(&m) == row_self);
	many.msg_hdr = message(&c, &io, row_self);
	ROW_CHECK(sendmmsg(sockets[0], &many, 1, 0) == 1);
	many.msg_hdr = message(&c, &io, 0);
	ROW_CHECK(recvmmsg(sockets[1], &many, 1, 0, NULL) == 1 &&
		  number_in(&many.msg_hdr) == row_self);
	m = message(&c, &io, row_child);
	ROW_FAILS(sendmsg(sockets[0], &m, 0), EPERM);
	m = message(&c, &io, ROW_NOBODY);
	ROW_CHECK(sendmsg(sockets[0], &m, 0) == -1);
}

const struct row owner_rows[] = {
	{SYS_fcntl, F_SETOWN, owner},
	{SYS_fcntl, F_GETOWN, owner},
	{SYS_fcntl, F_SETOWN_EX, owner},
	{SYS_fcntl, F_GETOWN_EX, owner},
	{SYS_fcntl, F_GETLK, locks},
	{SYS_fcntl, F_OFD_GETLK, locks},
	{SYS_ioctl, FIOSETOWN, socket_owner},
	{SYS_ioctl, FIOGETOWN, socket_owner},
	{SYS_ioctl, SIOCSPGRP, socket_owner},
	{SYS_ioctl, SIOCGPGRP, socket_owner},
	{SYS_ioctl, TIOCGPGRP, terminal},
	{SYS_ioctl, TIOCSPGRP, terminal},
	{SYS_ioctl, TIOCGSID, terminal},
	{SYS_ioctl, TIOCGPTN, terminal_name},
	{SYS_ioctl, PIDFD_GET_INFO, processes},
	{SYS_ioctl, NUMBERS_OF(6), processes},
	{SYS_ioctl, NUMBERS_OF(7), processes},
	{SYS_ioctl, NUMBERS_OF(8), processes},
	{SYS_ioctl, NUMBERS_OF(9), processes},
	{SYS_socket, 11, processes},
	{SYS_getsockopt, SO_PEERCRED, credentials},
	{SYS_sendmsg, CALL, credentials},
	{SYS_recvmsg, CALL, credentials},
	{SYS_sendmmsg, CALL, credentials},
	{SYS_recvmmsg, CALL, credentials},
};
const size_t n_owner_rows = N(owner_rows);
