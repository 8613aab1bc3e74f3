// SPDX-License-Identifier: GPL-2.0-or-later
/* A program that is not dumpable, as ssh-agent is, moves like any other and stays so. */
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/state/state.h"

int main(int argc, char **argv)
{
	struct stat st;

	STATE_CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
	state_ready(argc, argv);
	STATE_CHECK(prctl(PR_GET_DUMPABLE) == 0);
	STATE_CHECK(stat("/proc/self/fd", &st) == 0 && (getuid() == 0 || st.st_uid != getuid()));
	return state_ok();
}
