// SPDX-License-Identifier: GPL-2.0-or-later
/* A second thread of old.c, which is in some things not as the first one is. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/sched/types.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "call.h"

#define SLICE 1234567 /* ns; Linux 6.12 */

static char stack[16384] __attribute__((aligned(16)));
static char rootless_stack[16384] __attribute__((aligned(16)));
static volatile int ready, done;
static struct robust_list_head robust = {{&robust.list}, 0, 0};

static void leave(void)
{
	__atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
	call(SYS_futex, (long)&done, FUTEX_WAKE, 1, 0);
	for (;;)
		call(SYS_exit, 0, 0, 0, 0);
}

static void other(void)
{
	const unsigned long long hup = 1ULL << (SIGHUP - 1);
	struct sched_attr attr = {.size = sizeof(attr), .sched_nice = 7, .sched_runtime = SLICE}, now = {0};
	struct robust_list_head *list = NULL;
	unsigned long long pending = 0;
	long me = call(SYS_gettid, 0, 0, 0, 0), length = 0;
	int tsc = 0;
	char name[16] = "";

	call(SYS_prctl, PR_SET_NAME, (long)"other", 0, 0);
	check(call(SYS_prctl, PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0) == 0, "TSC");
	check(call6(SYS_prctl, PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0, 0) == 0,
		"MCE_KILL");
	check(call(SYS_sched_setattr, 0, (long)&attr, 0, 0) == 0, "sched_setattr");
	check(call(SYS_set_robust_list, (long)&robust, sizeof(robust), 0, 0) == 0, "robust list");
	call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&hup, 0, 8);
	call(SYS_tkill, me, SIGHUP, 0, 0);
	ready = 1;
	wait_for_go();
	check(call(SYS_gettid, 0, 0, 0, 0) == me, "number of a thread");
	check(call(SYS_prctl, PR_GET_NAME, (long)name, 0, 0) == 0 && same(name, "other", 6),
		"name of a thread");
	check(call(SYS_prctl, PR_GET_TSC, (long)&tsc, 0, 0) == 0 && tsc == PR_TSC_SIGSEGV, "TSC");
	check(call6(SYS_prctl, PR_MCE_KILL_GET, 0, 0, 0, 0, 0) == PR_MCE_KILL_EARLY, "MCE_KILL");
	check(call(SYS_sched_getattr, 0, (long)&now, sizeof(now), 0) == 0 && now.sched_nice == 7,
		"nice of a thread");
	/* An older kernel has no slices, and tells of none. */
	check(now.sched_runtime == SLICE || now.sched_runtime == 0, "slice of a thread");
	check(call(SYS_get_robust_list, 0, (long)&list, (long)&length, 0) == 0 && list == &robust,
		"robust list");
	check(call(SYS_rt_sigpending, (long)&pending, 8, 0, 0) == 0 && pending & hup,
		"signal of a thread");
	leave();
}

static void begin(void (*f)(void), char *top)
{
	ready = 0;
	check(begin_thread(f, top) > 0, "clone");
	while (!ready)
		call(SYS_sched_yield, 0, 0, 0, 0);
}

static void look_at(int how_many)
{
	int now;

	while ((now = done) < how_many)
		call(SYS_futex, (long)&done, FUTEX_WAIT, now, 0);
}

static void set_up(void)
{
	begin(other, stack + sizeof(stack));
}

static void look(void)
{
	look_at(1);
}

const struct part part_thread = {set_up, look};

/* Of a root: one that has given up what it may do. */
static void rootless(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct none[2] = {0}, now[2] = {{1, 1, 1}};

	check(call(SYS_capset, (long)&head, (long)none, 0, 0) == 0, "capset");
	ready = 1;
	wait_for_go();
	check(call(SYS_capget, (long)&head, (long)now, 0, 0) == 0 && !now[0].effective &&
			!now[0].permitted,
		"capabilities");
	leave();
}

static void set_up_root(void)
{
	int ttl = open_at("/proc/sys/net/ipv4/ip_default_ttl", 1);

	check(call(SYS_write, ttl, (long)"77", 2, 0) == 2, "setting");
	call(SYS_close, ttl, 0, 0, 0);
	begin(rootless, rootless_stack + sizeof(rootless_stack));
}

static void look_root(void)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct now[2] = {0};

	look_at(2);
	check(call(SYS_capget, (long)&head, (long)now, 0, 0) == 0 && now[0].effective,
		"capabilities of the others");
	check(call(SYS_getuid, 0, 0, 0, 0) == 0, "root");
	check(begins(open_at("/proc/sys/net/ipv4/ip_default_ttl", 0), "77", 2), "setting");
}

const struct part part_root = {set_up_root, look_root};
