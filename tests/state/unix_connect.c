// SPDX-License-Identifier: GPL-2.0-or-later
/* Listening sockets with names of every sort, accepted and waiting connections, credentials. */
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static socklen_t named(struct sockaddr_un *a, const char *name, size_t len)
{
	memset(a, 0, sizeof(*a));
	a->sun_family = AF_UNIX;
	memcpy(a->sun_path, name, len);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (name[0] != 0));
}

static int listener(const char *name, size_t len)
{
	struct sockaddr_un a;
	socklen_t n = named(&a, name, len);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	STATE_CHECK(fd >= 0 && bind(fd, (void *)&a, n) == 0 && listen(fd, 5) == 0);
	return fd;
}

static int client(const char *name, size_t len)
{
	struct sockaddr_un a;
	socklen_t n = named(&a, name, len);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	STATE_CHECK(fd >= 0 && connect(fd, (void *)&a, n) == 0);
	return fd;
}

static void check_name(int fd, int peer, const char *name, size_t len)
{
	struct sockaddr_un a;
	socklen_t n = sizeof(a);

	STATE_CHECK((peer ? getpeername : getsockname)(fd, (void *)&a, &n) == 0);
	STATE_CHECK(n == offsetof(struct sockaddr_un, sun_path) + len + (len && name[0] != 0));
	STATE_CHECK(!memcmp(a.sun_path, name, len));
}

static pid_t peer_pid(int fd)
{
	struct ucred c;
	socklen_t len = sizeof(c);

	STATE_CHECK(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c, &len) == 0);
	STATE_CHECK(c.uid == getuid() && c.gid == getgid());
	return c.pid;
}

static void talk(int a, int b)
{
	char buf[16];

	STATE_CHECK(write(a, "ping", 4) == 4 && read(b, buf, sizeof(buf)) == 4);
	STATE_CHECK(write(b, "pong", 4) == 4 && read(a, buf, sizeof(buf)) == 4);
}

/* A child that connects to @path, says its name over it and stays. */
static pid_t connect_by_child(const char *path)
{
	pid_t pid = fork();

	STATE_CHECK(pid >= 0);
	if (pid == 0) {
		int fd = client(path, strlen(path));
		char c;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		STATE_CHECK(write(fd, "me", 2) == 2);
		_exit(read(fd, &c, 1) == 1 && c == 'q' ? 0 : 1);
	}
	return pid;
}

static void talk_through(int l, const char *path)
{
	int c = client(path, strlen(path)), s = accept(l, NULL, NULL);

	talk(c, s);
	close(c);
	close(s);
}

static char dir[] = "/tmp/state-unix-XXXXXX", path[64], moved[64], gone[64], renamed_to[64], first[64], linked_to[64];
/* On the host's network others may run the same. */
static char hidden[] = "\0state\0XXXXXXXX";
static int plain, relative, abstract, renamed, linked, c1, s1, c2, s2, c3, s3, w1, w2, s;
static pid_t child;

/* Accepted, from a child, and two that wait. */
static void make_plain(void)
{
	plain = listener(path, strlen(path));
	STATE_CHECK(chmod(path, 0640) == 0);
	c1 = client(path, strlen(path));
	s1 = accept(plain, NULL, NULL);
	STATE_CHECK(s1 >= 0);
	child = connect_by_child(path);
	s = accept(plain, NULL, NULL);
	STATE_CHECK(s >= 0);
	w1 = client(path, strlen(path));
	w2 = client(path, strlen(path));
}

static void make_others(void)
{
	int deleted;

	relative = listener("./rel", 5);
	STATE_CHECK(chdir("/") == 0);
	abstract = listener(hidden, 15);
	c2 = client(hidden, 15);
	s2 = accept(abstract, NULL, NULL);
	STATE_CHECK(s2 >= 0);

	renamed = listener(moved, strlen(moved));
	snprintf(renamed_to, sizeof(renamed_to), "%s/new", dir);
	STATE_CHECK(rename(moved, renamed_to) == 0);
	snprintf(first, sizeof(first), "%s/first.%d", dir, getpid());
	snprintf(linked_to, sizeof(linked_to), "%s/linked", dir);
	linked = listener(first, strlen(first));
	STATE_CHECK(link(first, linked_to) == 0 && unlink(first) == 0);
	deleted = listener(gone, strlen(gone));
	c3 = client(gone, strlen(gone));
	s3 = accept(deleted, NULL, NULL);
	STATE_CHECK(s3 >= 0 && unlink(gone) == 0 && close(deleted) == 0);
}

static void check_plain(void)
{
	struct stat st;
	char buf[8];
	int status;

	check_name(plain, 0, path, strlen(path));
	check_name(c1, 1, path, strlen(path));
	check_name(s1, 0, path, strlen(path));
	check_name(s1, 1, "", 0);
	STATE_CHECK(stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && (st.st_mode & 07777) == 0640);
	STATE_CHECK(peer_pid(c1) == getpid() && peer_pid(s1) == getpid());
	STATE_CHECK(peer_pid(s) == child);
	talk(c1, s1);
	STATE_CHECK(read(s, buf, sizeof(buf)) == 2 && !memcmp(buf, "me", 2));
	STATE_CHECK(write(s, "q", 1) == 1);
	STATE_CHECK(waitpid(child, &status, 0) == child && status == 0);
	close(s);

	s = accept(plain, NULL, NULL);
	talk(w1, s);
	STATE_CHECK(peer_pid(s) == getpid());
	close(s);
	s = accept(plain, NULL, NULL);
	talk(w2, s);
	close(s);
	STATE_CHECK(fcntl(plain, F_SETFL, O_NONBLOCK) == 0);
	STATE_CHECK(accept(plain, NULL, NULL) == -1 && errno == EAGAIN);
}

static void check_others(void)
{
	check_name(relative, 0, "./rel", 5);
	snprintf(path, sizeof(path), "%s/rel", dir);
	talk_through(relative, path);
	check_name(renamed, 0, moved, strlen(moved));
	STATE_CHECK(access(moved, F_OK) == -1);
	talk_through(renamed, renamed_to);
	check_name(linked, 0, first, strlen(first));
	STATE_CHECK(access(first, F_OK) == -1);
	talk_through(linked, linked_to);

	check_name(c2, 1, hidden, 15);
	check_name(s2, 0, hidden, 15);
	talk(c2, s2);
	c2 = client(hidden, 15);
	s2 = accept(abstract, NULL, NULL);
	talk(c2, s2);

	check_name(c3, 1, gone, strlen(gone));
	check_name(s3, 0, gone, strlen(gone));
	talk(c3, s3);
	STATE_CHECK(access(gone, F_OK) == -1);
}

int main(int argc, char **argv)
{
	STATE_CHECK(mkdtemp(dir) && chdir(dir) == 0);
	memcpy(hidden + 9, strrchr(dir, '-') + 1, 6);
	snprintf(path, sizeof(path), "%s/plain", dir);
	snprintf(moved, sizeof(moved), "%s/moved", dir);
	snprintf(gone, sizeof(gone), "%s/gone", dir);
	make_plain();
	make_others();
	state_ready(argc, argv);
	check_plain();
	check_others();
	state_remove(dir);
	return state_ok();
}
