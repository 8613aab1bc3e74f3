// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that is not dumpable, as ssh-agent is, moves like any other and stays so; whom it has
 * not waited for yet has ended as before.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/state/state.h"

int main(int argc, char **argv)
{
	struct stat st;
	siginfo_t si;
	int status;
	pid_t ended, killed;

	STATE_CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
	ended = fork();
	if (ended == 0)
		_exit(7);
	killed = fork();
	if (killed == 0)
		raise(SIGKILL);
	STATE_CHECK(waitid(P_PID, (id_t)ended, &si, WEXITED | WNOWAIT) == 0);
	STATE_CHECK(waitid(P_PID, (id_t)killed, &si, WEXITED | WNOWAIT) == 0);
	state_ready(argc, argv);
	STATE_CHECK(prctl(PR_GET_DUMPABLE) == 0);
	STATE_CHECK(stat("/proc/self/fd", &st) == 0 && (getuid() == 0 || st.st_uid != getuid()));
	STATE_CHECK(waitpid(ended, &status, 0) == ended && WIFEXITED(status) &&
		    WEXITSTATUS(status) == 7);
	STATE_CHECK(waitpid(killed, &status, 0) == killed && WIFSIGNALED(status) &&
		    WTERMSIG(status) == SIGKILL);
	return state_ok();
}
