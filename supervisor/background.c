// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A supervisor is a grandchild of the command line that asked for it, in a session of its own, with
 * /dev/null as stdin and stdout; stderr becomes the session's supervisor.log.  It execs the same
 * binary, so that it begins with nothing of its parent's memory and none of its descriptors but
 * one.
 */
#include "supervisor/background.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

/* Without as many no session begins: what fails for want of them could seldom say so. */
#define LEAST_DESCRIPTORS 32

/* In the grandchild: becomes the supervisor. */
static void become_supervisor(int sock)
{
	static char name[] = "podrun", command[] = "supervise";
	char *const argv[] = {name, command, NULL};
	struct sigaction dfl = {.sa_handler = SIG_DFL};
	sigset_t none;
	int null = open("/dev/null", O_RDWR);

	setsid();
	umask(077);
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
		dup2(sock, BACKGROUND_FD) < 0 || chdir("/") < 0)
		_exit(125);
	io_set_cloexec(BACKGROUND_FD, false);
	close_range(BACKGROUND_FD + 1, ~0u, 0);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &dfl, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	execv("/proc/self/exe", argv);
	_exit(125);
}

int background_start(struct err *e)
{
	int pair[2], status;
	struct rlimit l;
	pid_t child;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < LEAST_DESCRIPTORS)
		return err_errno(e, -EMFILE, "cannot start a supervisor");
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_errno(e, -errno, "cannot start a supervisor");
	child = fork();
	if (child == 0) {
		pid_t grandchild = fork();

		if (grandchild == 0)
			become_supervisor(pair[1]);
		_exit(grandchild < 0);
	}
	close(pair[1]);
	if (child < 0 || waitpid(child, &status, 0) < 0 || status) {
		close(pair[0]);
		return err_set(e, ERR_FAILED, -EAGAIN, "cannot start a supervisor");
	}
	return pair[0];
}
