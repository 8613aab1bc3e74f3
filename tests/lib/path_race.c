// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * path_race SECRET [rooted] - tries to reach a file of the host's from inside a session that does
 * not show it.
 *
 * SECRET is in a directory of the host's which is private in the session, and so is what else is
 * tried beside it.  A thread changes paths under the hands of whoever has looked at them; symlinks
 * and directories change places; descriptors and ".." are walked.  With a root of the session's own
 * (rooted) the paths that are looked at first are below /dev, for others the kernel is never asked.
 * Says "reached" for each that comes through, and "over" at the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS	 800

static char path[4096]; /* what the calls are given, and the thread changes */
static const char *secret;
static const char *harmless = "/etc/passwd", *nobody = "/home/nobody-has-this",
		  *unmade = "/home/nobody/has/this", *other = "/etc";
static char beside[4096]; /* a name next to the secret */
static atomic_bool over;
static _Atomic(const char *) here, there; /* the two that take turns */

static void *flip(void *unused)
{
	while (!over) {
		strcpy(path, there);
		for (volatile int i = 0; i < 300; i++)
			;
		strcpy(path, here);
		for (volatile int i = 0; i < 300; i++)
			;
	}
	return NULL;
}

static void reached(const char *by)
{
	static const char *last;

	if (last != by)
		printf("reached by %s\n", by);
	last = by;
}

/* A descriptor of it was had. */
static void look(int fd, const char *by)
{
	char text[16] = "";

	if (fd < 0)
		return;
	if (read(fd, text, 6) == 6 && strcmp(text, "secret") == 0)
		reached(by);
	close(fd);
}

static void turns(const char *a, const char *b)
{
	here = a;
	there = b;
}

static void read_it(void)
{
	struct open_how how = {.flags = O_RDONLY};

	turns(harmless, secret);
	for (int i = 0; i < ROUNDS; i++) {
		look(open(path, O_RDONLY), "open");
		look((int)syscall(SYS_open, path, O_RDONLY), "old open");
		look((int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how)), "openat2");
		look(open(path, O_RDONLY | O_CREAT, 0600), "open to create");
	}
}

static void change_it(void)
{
	turns(nobody, secret);
	for (int i = 0; i < ROUNDS; i++) {
		int fd = open(path, O_WRONLY);
		struct stat st;

		/* Not what was harmless a moment ago. */
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
			reached("open to write");
		if (truncate(path, 3) == 0)
			reached("truncate");
		if (unlink(path) == 0)
			reached("unlink");
		if (rename(path, "/tmp/taken") == 0)
			reached("rename");
		if (link(path, "/tmp/linked") == 0)
			reached("link");
		close(fd);
	}
}

/* All that is made stays for the test to find. */
static void make_something(void)
{
	turns(unmade, beside);
	for (int i = 0; i < ROUNDS; i++) {
		close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
		mkdir(path, 0700);
		symlink("x", path);
		mknod(path, S_IFIFO | 0600, 0);
	}
}

/* Links and directories of the session's own that change places. */
static void swap_links(void)
{
	static char deep[8192];
	char up[4096] = "";
	pid_t child;

	for (int i = 0; i < 12; i++)
		strcat(up, "../");
	strcat(up, secret + 1);
	mkdir("/tmp/a", 0700);
	mkdir("/tmp/a/b", 0700);
	close(open("/tmp/a/b/f", O_CREAT | O_WRONLY, 0600));
	symlink(secret, "/tmp/l1");
	symlink(up, "/tmp/l2");
	symlink("/etc/passwd", "/tmp/l3");
	child = fork();
	if (child == 0)
		for (;;) {
			syscall(SYS_renameat2, AT_FDCWD, "/tmp/l1", AT_FDCWD, "/tmp/l3", 2);
			rename("/tmp/a/b", "/tmp/b");
			rename("/tmp/b", "/tmp/a/b");
		}
	snprintf(deep, sizeof(deep), "/tmp/a/b/../../../../../../../..%s", secret);
	for (int i = 0; i < ROUNDS; i++) {
		look(open("/tmp/l1", O_RDONLY), "a link");
		look(open("/tmp/l2", O_RDONLY), "a link upwards");
		look(open("/tmp/l3", O_RDONLY), "a link that changes");
		look(open(deep, O_RDONLY), "a directory that moves");
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void by_descriptor(void)
{
	int top = open("/", O_RDONLY | O_DIRECTORY), tmp = open("/tmp", O_RDONLY | O_DIRECTORY);
	int place = open("/", O_PATH | O_DIRECTORY);
	char up[4096] = "";

	look(openat(top, secret + 1, O_RDONLY), "a descriptor of the top");
	look(openat(place, secret + 1, O_RDONLY), "a path descriptor of the top");
	for (int i = 0; i < 16; i++)
		strcat(up, "../");
	strcat(up, secret + 1);
	look(openat(tmp, up, O_RDONLY), "a descriptor upwards");
	if (chdir("/tmp") == 0)
		look(open(up, O_RDONLY), "a path upwards");
	if (fchdir(tmp) == 0)
		look(open(up, O_RDONLY), "a path upwards");
	if (chdir("/proc/self/root") == 0)
		look(open(secret + 1, O_RDONLY), "/proc/self/root");
	snprintf(up, sizeof(up), "/proc/self/root%s", secret);
	look(open(up, O_RDONLY), "/proc/self/root");
	snprintf(up, sizeof(up), "/proc/%d/root%s", getppid(), secret);
	look(open(up, O_RDONLY), "/proc/1/root");
	for (int fd = 3; fd < 20; fd++) {
		snprintf(up, sizeof(up), "/proc/self/fd/%d%s", fd, secret);
		look(open(up, O_RDONLY), "/proc/self/fd");
	}
}

/* The directory it stands in is changed under it. */
static void by_directory(void)
{
	static char dir[4096];

	strcpy(dir, secret);
	*strrchr(dir, '/') = '\0';
	turns(other, dir);
	for (int i = 0; i < ROUNDS; i++) {
		if (chdir(path) < 0)
			continue;
		look(open(strrchr(secret, '/') + 1, O_RDONLY), "a directory");
		close(open(strrchr(beside, '/') + 1, O_CREAT | O_WRONLY, 0600));
	}
}

int main(int argc, char **argv)
{
	static void (*const ways[])(void) = {
		read_it, change_it, make_something, swap_links, by_descriptor, by_directory};
	pthread_t thread;

	if (argc < 2)
		return 2;
	secret = argv[1];
	if (argc > 2) {
		harmless = "/dev/null";
		nobody = "/dev/nobody-has-this";
		unmade = "/dev/nobody/has/this";
		other = "/dev";
	}
	snprintf(beside, sizeof(beside), "%s.beside", secret);
	turns(harmless, harmless);
	strcpy(path, here);
	pthread_create(&thread, NULL, flip, NULL);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		ways[i]();
	over = true;
	pthread_join(thread, NULL);
	puts("over");
	return 0;
}
