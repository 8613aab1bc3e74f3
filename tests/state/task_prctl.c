// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a process and its threads have asked of the kernel by prctl(2) and its like, and only the
 * kernel tells again: the time stamp counter, CPUID, errors of memory, memory that may be executed,
 * merged pages, membarrier(2), and how long a thread wants to run at a time.  What this kernel or
 * CPU has not got is left out.
 */
#include <asm/prctl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/state/state.h"

/* linux/prctl.h, 6.3 and 6.4; linux/membarrier.h, 6.3 */
#define SET_MDWE 65
#define GET_MDWE 66
#define MDWE	 3 /* REFUSE_EXEC_GAIN, NO_INHERIT */
#define SET_MERGE 67
#define GET_MERGE 68
enum {
	REGISTER_GLOBAL = 4,
	PRIVATE = 8,
	REGISTER_PRIVATE = 16,
	SYNC_CORE = 32,
	REGISTER_SYNC_CORE = 64,
	REGISTRATIONS = 512
};

/* linux/sched/types.h, first version */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

static uint64_t slice(void)
{
	struct attr a = {0};

	STATE_CHECK(syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) == 0);
	return a.runtime;
}

/* Of one thread. */
struct own {
	int tsc, mce_kill;
	long cpuid;
	uint64_t slice;
};

static void get_own(struct own *o)
{
	STATE_CHECK(prctl(PR_GET_TSC, &o->tsc) == 0);
	o->mce_kill = prctl(PR_MCE_KILL_GET, 0, 0, 0, 0);
	o->cpuid = syscall(SYS_arch_prctl, ARCH_GET_CPUID, 0);
	o->slice = slice();
}

/* Only a CPU that can, does without CPUID; a kernel before 6.12 knows no slices. */
static void ask_for(const struct own *o)
{
	struct attr a = {.size = sizeof(a), .policy = SCHED_OTHER, .runtime = o->slice};

	STATE_CHECK(prctl(PR_SET_TSC, o->tsc) == 0);
	STATE_CHECK(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, o->mce_kill, 0, 0) == 0);
	STATE_CHECK(syscall(SYS_arch_prctl, ARCH_SET_CPUID, o->cpuid) == 0 || errno == ENODEV);
	STATE_CHECK(syscall(SYS_sched_setattr, 0, &a, 0) == 0);
}

/* On another host, there may be no slices, and a CPU that always has CPUID. */
static bool same(const struct own *a, const struct own *b)
{
	bool slices = a->slice && b->slice;
	bool faults = syscall(SYS_arch_prctl, ARCH_SET_CPUID, b->cpuid) == 0;

	return a->tsc == b->tsc && a->mce_kill == b->mce_kill &&
	       (a->cpuid == b->cpuid || !faults) && (a->slice == b->slice || !slices);
}

static void tell(const char *who, const struct own *o)
{
	printf("%s: tsc %d mce_kill %d cpuid %ld slice %llu\n", who, o->tsc, o->mce_kill, o->cpuid,
		(unsigned long long)o->slice);
}

static int go[2];
static bool set;

static void *work(void *arg)
{
	struct own before, after;
	char c;

	ask_for(&(struct own){PR_TSC_SIGSEGV, PR_MCE_KILL_EARLY, 0, 700000});
	get_own(&before);
	STATE_CHECK(before.tsc == PR_TSC_SIGSEGV && before.mce_kill == PR_MCE_KILL_EARLY);
	__atomic_store_n(&set, true, __ATOMIC_RELEASE);
	while (read(go[0], &c, 1) < 0)
		;
	get_own(&after);
	tell("before", &before);
	tell("after", &after);
	STATE_CHECK(same(&before, &after));
	return NULL;
}

/* One of two kernels may not know it: -1. */
static bool kept(long before, long after)
{
	return before < 0 || after < 0 || before == after;
}

int main(int argc, char **argv)
{
	struct own before, after;
	pthread_t thread;
	long registered;
	int mdwe, merge;

	STATE_CHECK(pipe(go) == 0 && pthread_create(&thread, NULL, work, NULL) == 0);
	while (!__atomic_load_n(&set, __ATOMIC_ACQUIRE))
		state_nap();
	ask_for(&(struct own){PR_TSC_ENABLE, PR_MCE_KILL_LATE, 1, 0});
	get_own(&before);
	STATE_CHECK(syscall(SYS_membarrier, REGISTER_GLOBAL, 0, 0) == 0);
	STATE_CHECK(syscall(SYS_membarrier, REGISTER_PRIVATE, 0, 0) == 0);
	STATE_CHECK(syscall(SYS_membarrier, REGISTER_SYNC_CORE, 0, 0) == 0);
	prctl(SET_MERGE, 1, 0, 0, 0);
	prctl(SET_MDWE, MDWE, 0, 0, 0);
	registered = syscall(SYS_membarrier, REGISTRATIONS, 0, 0);
	merge = prctl(GET_MERGE, 0, 0, 0, 0);
	mdwe = prctl(GET_MDWE, 0, 0, 0, 0);

	state_ready(argc, argv);

	get_own(&after);
	tell("before", &before);
	tell("after", &after);
	/* One who has not asked for a slice has the host's. */
	after.slice = before.slice;
	STATE_CHECK(same(&before, &after));
	/* Before Linux 6.3 a command fails in who has not registered for it, and nothing tells. */
	STATE_CHECK(kept(registered, syscall(SYS_membarrier, REGISTRATIONS, 0, 0)));
	STATE_CHECK(syscall(SYS_membarrier, PRIVATE, 0, 0) == 0);
	STATE_CHECK(syscall(SYS_membarrier, SYNC_CORE, 0, 0) == 0);
	STATE_CHECK(kept(merge, prctl(GET_MERGE, 0, 0, 0, 0)));
	STATE_CHECK(kept(mdwe, prctl(GET_MDWE, 0, 0, 0, 0)));
	STATE_CHECK(write(go[1], "g", 1) == 1 && pthread_join(thread, NULL) == 0);
	return state_ok();
}
