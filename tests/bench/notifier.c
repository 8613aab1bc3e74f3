// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * notifier CMD... - a peer of rewritten names: is told of the calls that CMD makes and that the
 * rewriter answers where it is on its way (with a private view), as the rewriter is told of them,
 * looks at nothing, and lets them go on.  What that takes, the kernel takes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sys.h"

static const int told[] = {SYS_getpid, SYS_gettid, SYS_getppid, SYS_getpgrp, SYS_getpgid,
	SYS_getsid, SYS_kill, SYS_tkill, SYS_tgkill, SYS_shmget, SYS_shmctl, SYS_semget, SYS_semctl,
	SYS_msgget, SYS_msgctl, SYS_open, SYS_openat, SYS_stat, SYS_lstat, SYS_newfstatat,
	SYS_statx, SYS_access, SYS_faccessat, SYS_faccessat2, SYS_readlink, SYS_readlinkat,
	SYS_getcwd};
#define N_TOLD (sizeof(told) / sizeof(told[0]))

static pid_t first;

/* The listener, or -1. */
static int install(void)
{
	struct sock_filter code[N_TOLD + 3] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {N_TOLD + 3, code};

	for (size_t i = 0; i < N_TOLD; i++)
		code[i + 1] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)told[i], N_TOLD - i, 0);
	code[N_TOLD + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[N_TOLD + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
		SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		&program);
}

static void on_child(int sig)
{
	int status;

	if (waitpid(first, &status, WNOHANG) == first)
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static int let_all_go_on(int listener)
{
	ioctl(listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	for (;;) {
		struct seccomp_notif request = {0};
		struct seccomp_notif_resp response = {.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

		if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &request) < 0) {
			/* Nobody is left: the end of CMD is about to be told. */
			if (errno != EINTR && errno != ENOENT)
				return 1;
			continue;
		}
		response.id = request.id;
		ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
	}
}

int main(int argc, char **argv)
{
	int ready[2], listener;

	if (argc < 2 || pipe2(ready, O_CLOEXEC) < 0)
		return 2;
	/* As fork(2), with one table of descriptors until it calls exec, which closes the listener. */
	first = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);
	if (first == 0) {
		listener = install();
		if (write(ready[1], &listener, sizeof(listener)) != sizeof(listener) ||
			listener < 0)
			_exit(127);
		execvp(argv[1], argv + 1);
		_exit(127);
	}
	if (first < 0 || read(ready[0], &listener, sizeof(listener)) != sizeof(listener) ||
		listener < 0)
		return 2;
	signal(SIGCHLD, on_child);
	raise(SIGCHLD);
	return let_all_go_on(listener);
}
