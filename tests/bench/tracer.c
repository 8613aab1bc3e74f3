// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tracer CMD... - a peer of rewritten names: stops all that CMD does at the entry and at the exit
 * of every call, looks at the registers, and lets it go on.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTIONS                                                                                    \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |  \
		PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)
#define SYSCALL_STOP (SIGTRAP | 0x80)

static void go_on(pid_t pid, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;
	struct user_regs_struct regs;

	if (sig == SYSCALL_STOP)
		ptrace(PTRACE_GETREGS, pid, 0, &regs);
	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
		ptrace(PTRACE_LISTEN, pid, 0, 0);
	else
		ptrace(PTRACE_SYSCALL, pid, 0, (long)(event || sig == SYSCALL_STOP ? 0 : sig));
}

static int follow(pid_t first)
{
	for (;;) {
		int status;
		pid_t pid = waitpid(-1, &status, __WALL);

		if (pid < 0 && errno != EINTR)
			return 1;
		if (pid > 0 && WIFSTOPPED(status))
			go_on(pid, status);
		else if (pid == first)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

int main(int argc, char **argv)
{
	int ready[2];
	pid_t pid;
	char c;

	if (argc < 2 || pipe(ready) < 0)
		return 2;
	pid = fork();
	if (pid == 0) {
		close(ready[1]);
		if (read(ready[0], &c, 1) != 0)
			_exit(127);
		close(ready[0]);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (pid < 0 || ptrace(PTRACE_SEIZE, pid, 0, OPTIONS) < 0)
		return 2;
	close(ready[0]);
	close(ready[1]);
	return follow(pid);
}
