// SPDX-License-Identifier: GPL-2.0-or-later
/* Robust mutexes whose owner becomes another program, or tries to and stays what it is. */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/state/state.h"

struct shared {
	pthread_mutex_t gone, kept;
	volatile int held, go, tried, release;
};

static struct shared *s;

static void init(pthread_mutex_t *m)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	STATE_CHECK(pthread_mutex_init(m, &a) == 0);
}

static void until(volatile int *flag, int value)
{
	while (*flag < value)
		state_nap();
}

static void own(pthread_mutex_t *m)
{
	STATE_CHECK(pthread_mutex_lock(m) == 0);
	__atomic_add_fetch(&s->held, 1, __ATOMIC_SEQ_CST);
	until(&s->go, 1);
}

static void become_another(void)
{
	own(&s->gone);
	execl("/bin/sleep", "sleep", "1000", NULL);
	_exit(1);
}

/* What it has not become does not take its mutex. */
static void try_to(void)
{
	own(&s->kept);
	execl("/nonexistent", "nonexistent", NULL);
	STATE_CHECK(errno == ENOENT);
	s->tried = 1;
	until(&s->release, 1);
	_exit(pthread_mutex_unlock(&s->kept) == 0 ? 42 : 1);
}

int main(int argc, char **argv)
{
	pid_t another, same;
	int status;

	s = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	init(&s->gone);
	init(&s->kept);
	another = fork();
	if (another == 0)
		become_another();
	same = fork();
	if (same == 0)
		try_to();
	until(&s->held, 2);
	state_ready(argc, argv);
	s->go = 1;
	STATE_CHECK(pthread_mutex_lock(&s->gone) == EOWNERDEAD);
	STATE_CHECK(pthread_mutex_consistent(&s->gone) == 0);
	STATE_CHECK(pthread_mutex_unlock(&s->gone) == 0);
	until(&s->tried, 1);
	STATE_CHECK(pthread_mutex_trylock(&s->kept) == EBUSY);
	s->release = 1;
	STATE_CHECK(pthread_mutex_lock(&s->kept) == 0);
	STATE_CHECK(waitpid(same, &status, 0) == same && status == 42 << 8);
	STATE_CHECK(waitpid(another, NULL, WNOHANG) == 0 && kill(another, SIGKILL) == 0);
	STATE_CHECK(waitpid(another, NULL, 0) == another);
	return state_ok();
}
