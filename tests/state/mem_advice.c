// SPDX-License-Identifier: GPL-2.0-or-later
/* Advice about memory: what a fork does with it, how it is read, what it is called. */
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/state/maps.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA	     0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static const struct {
	int advice;
	const char *flag;
} advices[] = {
	{MADV_DONTFORK, "dc"},
	{MADV_WIPEONFORK, "wf"},
	{MADV_DONTDUMP, "dd"},
	{MADV_SEQUENTIAL, "sr"},
	{MADV_RANDOM, "rr"},
	{MADV_MERGEABLE, "mg"},
};
#define N (sizeof(advices) / sizeof(*advices))

int main(int argc, char **argv)
{
	uint8_t *at[N], *named = state_map(4);
	bool has[N];
	int status;
	pid_t pid;

	for (size_t i = 0; i < N; i++) {
		at[i] = state_map(8);
		memset(at[i], (int)i + 1, 8 * PAGE);
		has[i] = madvise(at[i] + 2 * PAGE, 4 * PAGE, advices[i].advice) == 0;
		STATE_CHECK(has[i] || advices[i].advice == MADV_MERGEABLE);
	}
	/* A kernel may be built without names. */
	bool can_name =
		prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, named, 4 * PAGE, "what it's for") == 0;

	state_ready(argc, argv);

	for (size_t i = 0; i < N; i++) {
		STATE_CHECK(state_all(at[i], (int)i + 1, 8));
		STATE_CHECK(!state_has_flag(at[i], advices[i].flag));
		STATE_CHECK(state_has_flag(at[i] + 2 * PAGE, advices[i].flag) == has[i]);
		STATE_CHECK(!state_has_flag(at[i] + 6 * PAGE, advices[i].flag));
	}
	/* Moved to a kernel without names it has none. */
	STATE_CHECK(!can_name || strstr(state_mapping(named), "[anon:what it's for]") ||
		    prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at[0], PAGE, "x") < 0);
	pid = fork();
	if (pid == 0)
		_exit(!state_readable(at[0] + 2 * PAGE) && state_all(at[1] + 2 * PAGE, 0, 4) &&
				      state_all(at[1], 2, 2) && state_all(at[2], 3, 8)
			      ? 0
			      : 1);
	STATE_CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	return state_ok();
}
