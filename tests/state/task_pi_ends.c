// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Priority-inheritance mutexes that are not simply given back: owners that end, time that is up,
 * signals meanwhile, circles, condition variables.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/state/state.h"

struct shared {
	pthread_mutex_t left, killed;
	volatile int held;
};

static struct shared *s;
static volatile int stop, handled, got[2];

static void init(pthread_mutex_t *m)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	STATE_CHECK(pthread_mutex_init(m, &a) == 0);
}

static void *hold(void *m)
{
	STATE_CHECK(pthread_mutex_lock(m) == 0);
	__atomic_add_fetch(&s->held, 1, __ATOMIC_SEQ_CST);
	while (!stop)
		state_nap();
	return NULL;
}

static void *inherit(void *m)
{
	STATE_CHECK(pthread_mutex_lock(m) == EOWNERDEAD);
	got[m == &s->killed] = 1;
	STATE_CHECK(pthread_mutex_consistent(m) == 0 && pthread_mutex_unlock(m) == 0);
	return NULL;
}

static void handle(int sig)
{
	handled++;
}

/* ---- without the C library, which never returns what it does not expect ---------------------- */

static uint32_t one, other, condition;

static long futex(
	uint32_t *word, int op, uint32_t val, uint64_t val2, uint32_t *word2, uint32_t val3)
{
	return syscall(SYS_futex, word, op, val, val2, word2, val3);
}

static int try_lock(uint32_t *word)
{
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(
		    word, &none, (uint32_t)gettid(), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
		futex(word, FUTEX_LOCK_PI, 0, 0, NULL, 0) < 0)
		return errno;
	STATE_CHECK((*word & FUTEX_TID_MASK) == (uint32_t)gettid());
	return 0;
}

static void lock(uint32_t *word)
{
	STATE_CHECK(try_lock(word) == 0);
}

static void unlock(uint32_t *word)
{
	uint32_t mine = (uint32_t)gettid();

	if (!__atomic_compare_exchange_n(word, &mine, 0, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		STATE_CHECK(futex(word, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) == 0);
}

/* True if that would have been a circle. */
static bool take_too(uint32_t *word)
{
	int r = try_lock(word);

	STATE_CHECK(r == 0 || r == EDEADLK);
	if (r == 0)
		unlock(word);
	return r == EDEADLK;
}

static void *take_both(void *arg)
{
	bool *circle = arg;

	lock(&other);
	__atomic_add_fetch(&s->held, 1, __ATOMIC_SEQ_CST);
	*circle = take_too(&one);
	unlock(&other);
	return NULL;
}

static void check_circle(void)
{
	bool mine, its;
	pthread_t t;

	s->held = 0;
	lock(&one);
	STATE_CHECK(futex(&one, FUTEX_LOCK_PI, 0, 0, NULL, 0) < 0 && errno == EDEADLK);
	STATE_CHECK(pthread_create(&t, NULL, take_both, &its) == 0);
	while (!s->held || !(__atomic_load_n(&one, __ATOMIC_SEQ_CST) & FUTEX_WAITERS))
		state_nap();
	STATE_CHECK(futex(&other, FUTEX_UNLOCK_PI, 0, 0, NULL, 0) < 0 && errno == EPERM);
	STATE_CHECK(futex(&other, FUTEX_TRYLOCK_PI, 0, 0, NULL, 0) < 0 && errno == EAGAIN);
	/* Whoever comes last closes the circle. */
	mine = take_too(&other);
	unlock(&one);
	STATE_CHECK(pthread_join(t, NULL) == 0);
	STATE_CHECK(mine != its);
	STATE_CHECK(one == 0 && other == 0);
}

static void *wait_for_condition(void *arg)
{
	lock(&one);
	while (condition == 0) {
		__atomic_add_fetch(&s->held, 1, __ATOMIC_SEQ_CST);
		unlock(&one);
		if (futex(&condition, FUTEX_WAIT_REQUEUE_PI, 0, 0, &one, 0) < 0) {
			STATE_CHECK(errno == EAGAIN);
			lock(&one);
		}
		STATE_CHECK((one & FUTEX_TID_MASK) == (uint32_t)gettid());
	}
	unlock(&one);
	return NULL;
}

static void check_condition(void)
{
	pthread_t t[2];

	s->held = 0;
	for (int i = 0; i < 2; i++)
		STATE_CHECK(pthread_create(&t[i], NULL, wait_for_condition, NULL) == 0);
	while (s->held < 2)
		state_nap();
	state_nap();
	lock(&one);
	condition = 1;
	STATE_CHECK(
		futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, 100, &one, 2) < 0 && errno == EAGAIN);
	STATE_CHECK(futex(&condition, FUTEX_CMP_REQUEUE_PI, 1, 100, &one, 1) >= 0);
	unlock(&one);
	for (int i = 0; i < 2; i++)
		STATE_CHECK(pthread_join(t[i], NULL) == 0);
	STATE_CHECK(one == 0);
}

int main(int argc, char **argv)
{
	const struct timespec past = {1, 0};
	pthread_t owner, heirs[2];
	pid_t pid;

	STATE_CHECK(signal(SIGUSR1, handle) != SIG_ERR);
	s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	init(&s->left);
	init(&s->killed);
	pid = fork();
	if (pid == 0) {
		hold(&s->killed);
		_exit(1);
	}
	STATE_CHECK(pthread_create(&owner, NULL, hold, &s->left) == 0);
	while (s->held < 2)
		state_nap();
	STATE_CHECK(pthread_create(&heirs[0], NULL, inherit, &s->left) == 0);
	STATE_CHECK(pthread_create(&heirs[1], NULL, inherit, &s->killed) == 0);
	state_nap();
	state_ready(argc, argv);
	STATE_CHECK(pthread_mutex_trylock(&s->left) == EBUSY);
	STATE_CHECK(pthread_mutex_timedlock(&s->left, &past) == ETIMEDOUT);
	for (int i = 0; i < 20; i++) {
		STATE_CHECK(pthread_kill(heirs[0], SIGUSR1) == 0);
		while (handled <= i)
			state_nap();
	}
	STATE_CHECK(!got[0] && !got[1]);
	stop = 1;
	STATE_CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	STATE_CHECK(pthread_join(owner, NULL) == 0);
	for (int i = 0; i < 2; i++)
		STATE_CHECK(pthread_join(heirs[i], NULL) == 0);
	STATE_CHECK(got[0] && got[1]);
	check_circle();
	check_condition();
	return state_ok();
}
