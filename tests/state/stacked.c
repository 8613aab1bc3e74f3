// SPDX-License-Identifier: GPL-2.0-or-later
/* Threads and a process whose stacks and data can be recognised in an image: an innermost function
 * under others, a signal handler, shared and private memory with known contents. */
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define HEAP (5u << 20)

char stacked_data[64] = "as in the file";
char *stacked_heap;
int *stacked_shared;
static volatile sig_atomic_t go;

__attribute__((noinline)) static void stacked_inner(int depth)
{
	if (depth)
		stacked_inner(depth - 1);
	else
		while (!go)
			usleep(1000);
	__asm__ volatile("");
}

static void *thread(void *arg)
{
	stacked_inner(3);
	return arg;
}

static void handler(int sig)
{
	stacked_inner(1);
	__asm__ volatile(""); /* or the call would be a jump */
}

int main(int argc, char **argv)
{
	pthread_t t;
	int status;
	pid_t child;

	stacked_heap = malloc(HEAP);
	STATE_CHECK(stacked_heap);
	memset(stacked_heap, 'h', HEAP);
	strcpy(stacked_data, "changed since");
	stacked_shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	STATE_CHECK(stacked_shared != MAP_FAILED);
	stacked_shared[1024] = 4242;
	child = fork();
	STATE_CHECK(child >= 0);
	if (child == 0) {
		signal(SIGUSR1, handler);
		stacked_shared[1] = 1;
		raise(SIGUSR1);
		_exit(0);
	}
	STATE_CHECK(pthread_create(&t, NULL, thread, NULL) == 0);
	while (!*(volatile int *)&stacked_shared[1])
		usleep(1000);
	state_ready(argc, argv);
	go = 1;
	STATE_CHECK(pthread_join(t, NULL) == 0);
	STATE_CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child);
	STATE_CHECK(stacked_heap[HEAP - 1] == 'h' && stacked_shared[1024] == 4242);
	return state_ok();
}
