// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process of two threads with a working directory each: the second is made so ("made"), or makes
 * itself so ("unshares").  Which of them finds tmp/mark, that is for /tmp/mark to be from where they
 * stand, the program says, and at last what is true of the second after it has called exec.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SHARED (CLONE_VM | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static char *self;
static int orders[2], answers[2];

/* As it is told by calls that are answered, and by ones that the task makes itself. */
static char finds(void)
{
	struct stat st;
	int fd = open("tmp/mark", O_RDONLY), found = fd >= 0;

	if (found)
		close(fd);
	if (found != (stat("tmp/mark", &st) == 0) || found != (chmod("tmp/mark", 0600) == 0))
		return '?';
	return found ? 'y' : 'n';
}

static char goes(const char *where)
{
	return chdir(where) == 0 ? finds() : '!';
}

/* The two share errno as well, and take turns. */
static int second(void *way)
{
	char order, answer;

	if (strcmp(way, "unshares") == 0 && unshare(CLONE_FS) < 0)
		_exit(1);
	while (read(orders[0], &order, 1) == 1) {
		switch (order) {
		case '/':
			answer = goes("/");
			break;
		case 'u':
			answer = goes("/usr");
			break;
		case 'x':
			execl(self, self, "after", NULL);
			_exit(1);
		default:
			answer = finds();
			break;
		}
		if (write(answers[1], &answer, 1) != 1)
			_exit(1);
	}
	return 0;
}

static char tell(char order)
{
	char answer = '!';

	if (write(orders[1], &order, 1) != 1 || (order != 'x' && read(answers[0], &answer, 1) != 1))
		return '!';
	return answer;
}

int main(int argc, char *argv[])
{
	static char stack[64 * 1024] __attribute__((aligned(16)));
	char said[16] = "";
	size_t n = 0;
	int shares;

	if (argc != 2)
		return 2;
	if (strcmp(argv[1], "after") == 0) {
		printf("%c\n", finds());
		return 0;
	}
	self = argv[0];
	shares = strcmp(argv[1], "unshares") == 0 ? CLONE_FS : 0;
	if (pipe2(orders, O_CLOEXEC) < 0 || pipe2(answers, O_CLOEXEC) < 0)
		return 1;
	said[n++] = goes("/");
	if (clone(second, stack + sizeof(stack), SHARED | shares, argv[1]) < 0)
		return 1;
	said[n++] = tell('?');
	said[n++] = tell('u');
	said[n++] = finds();
	said[n++] = goes("/usr");
	said[n++] = tell('/');
	said[n++] = finds();
	said[n++] = goes("/");
	said[n++] = tell('u');
	said[n++] = goes("/usr");
	said[n++] = tell('/');
	printf("%s ", said);
	fflush(stdout);
	tell('x');
	for (;;)
		pause();
}
