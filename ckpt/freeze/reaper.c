// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in reaper.h. */
#include "ckpt/freeze/reaper.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include "base/base.h"

#define PATIENCE_MS 3

struct ckpt_reaper {
	pthread_t thread;
	int host_proc;
	int stop; /* an eventfd */
	_Atomic pid_t pid;
};

/*
 * A wait for ends only would take the stops of traced tasks as well, and those are for the thread
 * that freezes: so it looks first.
 */
static bool has_ended(pid_t tid)
{
	siginfo_t si = {0};

	if (waitid(P_PID, (id_t)tid, &si, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		return false;
	return si.si_pid == tid && (si.si_code == CLD_EXITED || si.si_code == CLD_KILLED ||
					   si.si_code == CLD_DUMPED);
}

static void reap_threads(int host_proc, pid_t pid)
{
	_cleanup_free_ int *tids = NULL;
	char path[32];
	size_t n;

	snprintf(path, sizeof(path), "%d/task", pid);
	if (proc_list_numbers(host_proc, path, &tids, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (tids[i] != pid && has_ended(tids[i]))
			waitpid(tids[i], NULL, WNOHANG | __WALL);
}

static void *run(void *arg)
{
	struct ckpt_reaper *r = arg;
	struct pollfd stop = {.fd = r->stop, .events = POLLIN};
	pid_t last = 0;

	while (poll(&stop, 1, PATIENCE_MS) == 0) {
		pid_t now = atomic_load(&r->pid);

		if (now && now == last)
			reap_threads(r->host_proc, now);
		last = now;
	}
	return NULL;
}

struct ckpt_reaper *ckpt_reaper_start(int host_proc)
{
	struct ckpt_reaper *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->host_proc = host_proc;
	r->stop = eventfd(0, EFD_CLOEXEC);
	if (r->stop < 0 || pthread_create(&r->thread, NULL, run, r)) {
		close_fd(r->stop);
		free(r);
		return NULL;
	}
	return r;
}

void ckpt_reaper_watch(struct ckpt_reaper *r, pid_t pid)
{
	if (r)
		atomic_store(&r->pid, pid);
}

void ckpt_reaper_stop(struct ckpt_reaper *r)
{
	if (!r)
		return;
	eventfd_write(r->stop, 1);
	pthread_join(r->thread, NULL);
	close_fd(r->stop);
	free(r);
}
