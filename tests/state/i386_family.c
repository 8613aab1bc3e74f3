// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Both kinds of programs in one session: this one, of 32 bits, has a 64-bit shell as its child,
 * which has this program as its child again; and starts another one that is moved in the middle of
 * it.
 */
#include <limits.h>
#include <sys/wait.h>

#include "tests/state/state.h"

static char self[PATH_MAX];

/* What a line that comes in becomes at the other end. */
static int child(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		printf("%zu bits: %s", 8 * sizeof(void *), line);
		fflush(stdout);
	}
	return 0;
}

static pid_t start(FILE **ret_to, FILE **ret_from)
{
	const char *script = "while read -r x; do echo \"$x of $(uname -m)\"; done | \"$0\" child";
	int to[2], from[2];
	pid_t pid;

	STATE_CHECK(pipe(to) == 0 && pipe(from) == 0);
	pid = fork();
	STATE_CHECK(pid >= 0);
	if (pid == 0) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		close(to[1]);
		close(from[0]);
		execl("/bin/sh", "sh", "-c", script, self, NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	*ret_to = fdopen(to[1], "w");
	*ret_from = fdopen(from[0], "r");
	return pid;
}

static void ask(FILE *to, FILE *from)
{
	char line[64];

	fprintf(to, "word\n");
	fflush(to);
	STATE_CHECK(fgets(line, sizeof(line), from));
	STATE_CHECK(!strcmp(line, "32 bits: word of x86_64\n"));
}

int main(int argc, char **argv)
{
	FILE *to, *from;
	int status;
	ssize_t n;
	pid_t pid;

	if (argc > 1 && !strcmp(argv[1], "child"))
		return child();
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	STATE_CHECK(n > 0);
	pid = start(&to, &from);
	ask(to, from);
	state_ready(argc, argv);

	ask(to, from);
	fclose(to);
	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	pid = start(&to, &from);
	ask(to, from);
	fclose(to);
	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	STATE_CHECK(n > 0 && strstr(self, "i386_family"));
	return state_ok();
}
