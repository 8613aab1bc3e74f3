// SPDX-License-Identifier: GPL-2.0-or-later
#include "ckpt/careful.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

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

int ckpt_careful(int (*step)(void *shared, struct err *e), void *shared, struct err *e)
{
	struct outcome *o = ckpt_careful_alloc(sizeof(*o));
	pid_t pid;
	int r;

	if (!o)
		return err_errno(e, -ENOMEM, "shared memory");
	pid = fork();
	if (pid == 0) {
		/* Nothing but SIGKILL shall come in between. */
		sigset_t all;

		sigfillset(&all);
		sigprocmask(SIG_BLOCK, &all, NULL);
		o->r = step(shared, &o->e);
		o->done = true;
		_exit(0);
	}
	fault_worker_waits();
	while (pid > 0 && waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
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
