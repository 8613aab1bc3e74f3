// SPDX-License-Identifier: GPL-2.0-or-later
/* What else a process has: directory, umask, limits, priority, CPUs, personality, prctl. */
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "tests/state/state.h"

static long groups_sum(void)
{
	gid_t groups[256];
	int n = getgroups(256, groups);
	long sum = n;

	for (int i = 0; i < n; i++)
		sum = sum * 31 + groups[i];
	return sum;
}

static int gone(void)
{
	struct stat st;
	char cwd[64];

	return stat(".", &st) == 0 && st.st_nlink == 0 && !getcwd(cwd, sizeof(cwd)) &&
	       errno == ENOENT;
}

int main(int argc, char **argv)
{
	int thp;
	struct rlimit nofile = {100, 200}, stack, stack_now, lim;
	uid_t uid = getuid(), uids[3];
	gid_t gid = getgid();
	unsigned head = 0;
	cpu_set_t one, now;
	char cwd[64], name[16];
	long groups = groups_sum(), caps = prctl(PR_CAPBSET_READ, 21);
	int deleted = argc > 2, value, style = ADDR_NO_RANDOMIZE;
	FILE *f;

	rmdir("/tmp/attributes");
	STATE_CHECK(mkdir("/tmp/attributes", 0777) == 0 && chdir("/tmp/attributes") == 0);
	if (deleted)
		rmdir("/tmp/attributes");
	umask(037);
	STATE_CHECK(setrlimit(RLIMIT_NOFILE, &nofile) == 0);
	getrlimit(RLIMIT_STACK, &stack);
	STATE_CHECK(setpriority(PRIO_PROCESS, 0, 5) == 0);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	STATE_CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
	/* What a container engine's default profile leaves. */
	if (personality(style) < 0) {
		style = UNAME26;
		STATE_CHECK(personality(style) >= 0);
	}
	prctl(PR_SET_NAME, "odd (name) x");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_PDEATHSIG, 12);
	prctl(PR_SET_TIMERSLACK, 123456);
	/* but for what is advised, from Linux 6.18 on */
	if (prctl(PR_SET_THP_DISABLE, 1, 2, 0, 0) < 0)
		prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	thp = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
	syscall(SYS_ioprio_set, 1, 0, 3 << 13);
	state_ready(argc, argv);

	STATE_CHECK(deleted ? gone() : getcwd(cwd, sizeof(cwd)) && !strcmp(cwd, "/tmp/attributes"));
	STATE_CHECK(umask(0) == 037);
	STATE_CHECK(getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur == 100 &&
		    lim.rlim_max == 200);
	STATE_CHECK(getrlimit(RLIMIT_STACK, &stack_now) == 0 &&
		    stack_now.rlim_cur == stack.rlim_cur);
	STATE_CHECK(getpriority(PRIO_PROCESS, 0) == 5);
	STATE_CHECK(sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &one));
	STATE_CHECK(personality(0xffffffff) == style);
	STATE_CHECK(prctl(PR_GET_NAME, name) == 0 && !strcmp(name, "odd (name) x"));
	STATE_CHECK(prctl(PR_GET_CHILD_SUBREAPER, &value) == 0 && value == 1);
	STATE_CHECK(prctl(PR_GET_PDEATHSIG, &value) == 0 && value == 12);
	STATE_CHECK(prctl(PR_GET_TIMERSLACK) == 123456);
	STATE_CHECK(thp > 0 && prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == thp);
	STATE_CHECK(syscall(SYS_ioprio_get, 1, 0) == 3 << 13);
	STATE_CHECK(getuid() == uid && geteuid() == uid && getgid() == gid && getegid() == gid);
	STATE_CHECK(getresuid(&uids[0], &uids[1], &uids[2]) == 0 && uids[2] == uid);
	STATE_CHECK(groups_sum() == groups && prctl(PR_CAPBSET_READ, 21) == caps);
	f = fopen("/proc/self/status", "r");
	for (char line[256]; f && fgets(line, sizeof(line), f);) {
		unsigned long long caps_now;

		if (sscanf(line, "CapEff: %llx", &caps_now) == 1)
			STATE_CHECK(uid == 0 || caps_now == 0);
		head++;
	}
	STATE_CHECK(head > 20);
	rmdir("/tmp/attributes");
	return state_ok();
}
