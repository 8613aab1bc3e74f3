// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A worker is made by clone(CLONE_FILES): it and the keeper have one table of descriptors, so what
 * the worker opens the keeper has too, without a message, and nothing is closed when the worker is
 * killed.  Memory is copied as by fork, but for the arena, which is shared.  What a worker did last
 * may be half done; the next one finds out (worker.c).
 *
 * A worker that dies again and again at once is started more and more rarely, and in the end no
 * more: what is wrong on this host then, or with the arena, does not pass by itself.  While there
 * are sessions with something to lose that takes half a minute; those who have just come are told
 * why (main.c), and supervisors start another gateway.
 */
#include "vnet/gateway/keeper.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "vnet/gateway/arena.h"

#define QUICK_NS     100000000ull /* whoever lived shorter died at once */
#define QUICK_DEATHS 8		  /* that are not waited for */
#define MAX_WAIT_MS  1000u
#define GIVE_UP	     44 /* quick deaths */
#define NO_SESSIONS  3	/* the same where nobody has anything to lose */

static pid_t start_worker(struct gateway_arena *a, int (*work)(struct gateway_arena *a))
{
	pid_t pid = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0);

	if (pid == 0) {
		a->worker = getpid();
		_exit(work(a));
	}
	return pid;
}

/* Waits so long, but for SIGTERM: true. */
static bool told_to_end(const sigset_t *signals, unsigned ms)
{
	struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	int sig = ms ? sigtimedwait(signals, NULL, &t) : sigwaitinfo(signals, NULL);

	return sig == SIGTERM;
}

static unsigned wait_before_next(unsigned deaths)
{
	if (deaths <= QUICK_DEATHS)
		return 0;
	deaths -= QUICK_DEATHS;
	return deaths > 7 ? MAX_WAIT_MS : 5u << deaths;
}

static bool has_sessions(const struct gateway_arena *a)
{
	for (size_t i = 0; i < GATEWAY_MAX_SESSIONS; i++)
		if (a->sessions[i].state != GATEWAY_SESSION_FREE)
			return true;
	return false;
}

/* The worker's exit status, or -1 for SIGTERM. */
static int wait_for(pid_t pid, const sigset_t *signals)
{
	int status;

	for (;;) {
		pid_t r = waitpid(pid, &status, WNOHANG);

		if (r == pid)
			return status;
		if (told_to_end(signals, 0)) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
	}
}

int gateway_keeper_run(struct gateway_arena *a, int (*work)(struct gateway_arena *a))
{
	sigset_t signals;
	unsigned deaths = 0;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	a->keeper = getpid();
	for (;;) {
		uint64_t since = io_now_ns();
		pid_t pid = start_worker(a, work);
		int status = pid < 0 ? 1 : wait_for(pid, &signals);
		unsigned ms;

		if (status <= 0)
			return status ? 1 : 0;
		deaths = io_now_ns() - since < QUICK_NS ? deaths + 1 : 0;
		a->restarts++;
		if (deaths >= (has_sessions(a) ? GIVE_UP : NO_SESSIONS)) {
			log_error("the worker ended at once %u times, the gateway ends", deaths);
			return 1;
		}
		ms = wait_before_next(deaths);
		log_warn("the worker ended (status 0x%x), another one starts in %u ms", status, ms);
		if (ms && told_to_end(&signals, ms))
			return 1;
	}
}
