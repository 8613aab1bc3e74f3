// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Children that do at once what their seccomp filter kills them for, in several lines side by side,
 * for ever: so that a freeze meets one between its call and its end.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINES 4

static void be_killed(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(2);
	syscall(SYS_getppid);
	_exit(1);
}

int main(void)
{
	int status;

	puts("ready");
	fflush(stdout);
	for (int i = 1; i < LINES; i++)
		if (fork() == 0)
			break;
	for (;;) {
		pid_t pid = fork();

		if (pid == 0)
			be_killed();
		if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
			WTERMSIG(status) != SIGSYS) {
			printf("a child ended with status %#x\n", (unsigned)status);
			fflush(stdout);
		}
	}
}
