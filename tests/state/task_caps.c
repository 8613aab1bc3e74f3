// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads with rights of their own, which they have asked the kernel for themselves: capabilities
 * of all sets, securebits.  In a user namespace, where everybody has them at first; no process of
 * the session is outside of it.
 */
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

enum { LOWERED, AMBIENT, SECURE, UNBOUND, SAME, N };

struct rights {
	struct __user_cap_data_struct caps[2];
	uint64_t bounding, ambient;
	int securebits;
};

static pthread_t threads[N];
static int go[2], n_set;

static void get_caps(struct __user_cap_data_struct ret[2])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	STATE_CHECK(syscall(SYS_capget, &header, ret) == 0);
}

static void set_caps(const struct __user_cap_data_struct caps[2])
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};

	STATE_CHECK(syscall(SYS_capset, &header, caps) == 0);
}

static void get(struct rights *r)
{
	memset(r, 0, sizeof(*r));
	get_caps(r->caps);
	for (int cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			r->bounding |= 1ULL << cap;
		if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) == 1)
			r->ambient |= 1ULL << cap;
	}
	r->securebits = prctl(PR_GET_SECUREBITS);
}

static void choose(long which)
{
	struct __user_cap_data_struct caps[2];

	get_caps(caps);
	switch (which) {
	case LOWERED:
		caps[0].effective &= ~(1U << CAP_KILL | 1U << CAP_SYS_PTRACE);
		set_caps(caps);
		return;
	case AMBIENT:
		caps[0].inheritable = 1U << CAP_NET_BIND_SERVICE;
		caps[0].effective = caps[0].permitted = 1U << CAP_NET_BIND_SERVICE;
		caps[1].effective = caps[1].permitted = 0;
		set_caps(caps);
		STATE_CHECK(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_NET_BIND_SERVICE, 0,
				    0) == 0);
		return;
	case SECURE:
		STATE_CHECK(prctl(PR_SET_SECUREBITS,
				    SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_KEEP_CAPS) == 0);
		return;
	case UNBOUND:
		STATE_CHECK(prctl(PR_CAPBSET_DROP, CAP_CHOWN, 0, 0, 0) == 0);
		return;
	}
}

static void *work(void *arg)
{
	struct rights before, after;
	char c;

	choose((long)arg);
	get(&before);
	__atomic_add_fetch(&n_set, 1, __ATOMIC_RELEASE);
	while (read(go[0], &c, 1) < 0)
		;
	get(&after);
	STATE_CHECK(!memcmp(&before, &after, sizeof(before)));
	return NULL;
}

/* The number of a child, which has ended. */
static pid_t number_of_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	STATE_CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
	return pid;
}

int main(int argc, char **argv)
{
	struct __user_cap_data_struct caps[2];
	struct rights before, after;
	pid_t gone;

	STATE_CHECK(unshare(CLONE_NEWUSER) == 0 && pipe(go) == 0);
	gone = number_of_child();
	for (long i = 0; i < N; i++)
		STATE_CHECK(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	while (__atomic_load_n(&n_set, __ATOMIC_ACQUIRE) < N)
		state_nap();
	/* Less than its threads have. */
	get_caps(caps);
	caps[0].effective &= ~(1U << CAP_SYS_CHROOT);
	caps[0].permitted &= ~(1U << CAP_SYS_CHROOT);
	set_caps(caps);
	get(&before);

	state_ready(argc, argv);

	get(&after);
	STATE_CHECK(!memcmp(&before, &after, sizeof(before)));
	STATE_CHECK(number_of_child() != gone); /* those that follow go on behind the threads' */
	STATE_CHECK(write(go[1], "threads", N) == N);
	for (int i = 0; i < N; i++)
		STATE_CHECK(pthread_join(threads[i], NULL) == 0);
	return state_ok();
}
