// SPDX-License-Identifier: GPL-2.0-or-later
#include "ckpt/careful.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/remote/trace.h"

struct outcome {
	bool done;
	int r;
	struct err e;
};

void *ckpt_careful_alloc(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void ckpt_careful_free(void *shared, size_t len)
{
	if (shared)
		munmap(shared, len);
}

/* ---- the child ---------------------------------------------------------------------------- */

/* Its next stop as our tracee; negative if there will be none. */
static int next_stop(pid_t tracer, int *ret_status)
{
	pid_t r;

	do
		r = waitpid(tracer, ret_status, __WALL);
	while (r < 0 && errno == EINTR);
	return r == tracer && WIFSTOPPED(*ret_status) ? 0 : -ESRCH;
}

/*
 * From now on @tracer does not end before we do.  That it has stopped for us shows that it was not
 * already past the place where it would be held.  What else it stops for until then is its own; after
 * that it waits.  Negative: it has ended, and its tasks may run.
 */
static int hold(pid_t tracer)
{
	int status;

	if (ptrace(PTRACE_SEIZE, tracer, 0, PTRACE_O_TRACEEXIT) < 0)
		return errno == ESRCH ? -ESRCH : 0;
	for (;;) {
		ptrace(PTRACE_INTERRUPT, tracer, 0, 0);
		if (next_stop(tracer, &status) < 0)
			return -ESRCH;
		if (trace_event(status) == PTRACE_EVENT_EXIT)
			return 0;
		ptrace(PTRACE_CONT, tracer, 0, trace_event(status) ? 0 : WSTOPSIG(status));
		if (trace_event(status) == PTRACE_EVENT_STOP)
			return 0;
	}
}

static _Noreturn void be_careful(struct outcome *o, pid_t parent, pid_t tracer,
	int (*step)(void *shared, struct err *e), void *shared)
{
	sigset_t all;

	/* Nothing but SIGKILL shall come in between. */
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, NULL);
	prctl(PR_SET_NAME, "podrun-careful");
	if ((tracer && hold(tracer) < 0) || getppid() != parent)
		_exit(1);
	o->r = step(shared, &o->e);
	o->done = true;
	_exit(0);
}

/* ---- the caller --------------------------------------------------------------------------- */

int ckpt_careful(pid_t tracer, int (*step)(void *shared, struct err *e), void *shared, struct err *e)
{
	struct outcome *o = ckpt_careful_alloc(sizeof(*o));
	pid_t parent = getpid(), pid;
	int r;

	if (!o)
		return err_errno(e, -ENOMEM, "shared memory");
	/* Where Yama lets nobody trace but those who are above. */
	if (tracer)
		prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	pid = fork();
	if (pid == 0)
		be_careful(o, parent, tracer, step, shared);
	fault_worker_waits();
	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	if (tracer)
		prctl(PR_SET_PTRACER, 0, 0, 0, 0);
	if (pid > 0 && o->done) {
		r = o->r;
		if (r < 0 && e)
			*e = o->e;
	} else {
		if (pid > 0)
			log_warn("a child was killed: doing the rest of its work");
		fault_armed = false; /* it has struck */
		r = step(shared, e);
	}
	ckpt_careful_free(o, sizeof(*o));
	return r;
}
