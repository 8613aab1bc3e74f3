// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in par.h. */
#include "base/par.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "base/cleanup.h"
#include "base/err.h"

#define MAX_THREADS 4u

struct par {
	size_t n;
	int (*each)(void *ctx, size_t i, struct err *e);
	void *ctx;
	atomic_size_t next;

	pthread_mutex_t lock;
	size_t failed; /* the lowest that has; @n: none */
	int r;
	struct err err;
};

static void fail(struct par *p, size_t i, int r, const struct err *e)
{
	pthread_mutex_lock(&p->lock);
	if (i < p->failed) {
		p->failed = i;
		p->r = r;
		p->err = *e;
	}
	pthread_mutex_unlock(&p->lock);
	atomic_store(&p->next, p->n);
}

static void *work(void *arg)
{
	struct par *p = arg;
	size_t i;

	while ((i = atomic_fetch_add(&p->next, 1)) < p->n) {
		struct err e = {0};
		int r = p->each(p->ctx, i, &e);

		if (r < 0)
			fail(p, i, r, &e);
	}
	return NULL;
}

static unsigned wanted(size_t n)
{
	cpu_set_t set;
	unsigned most = sched_getaffinity(0, sizeof(set), &set) < 0 ? 1 : (unsigned)CPU_COUNT(&set);

	most = MIN(most, MAX_THREADS);
	return (unsigned)MIN(n, (size_t)most);
}

int par_each(size_t n, int (*each)(void *ctx, size_t i, struct err *e), void *ctx, struct err *e)
{
	struct par p = {.n = n, .each = each, .ctx = ctx, .failed = n};
	pthread_t threads[MAX_THREADS];
	unsigned want = wanted(n), running = 0;
	sigset_t all, before;

	pthread_mutex_init(&p.lock, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (running + 1 < want && pthread_create(&threads[running], NULL, work, &p) == 0)
		running++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(&p);
	while (running)
		pthread_join(threads[--running], NULL);
	pthread_mutex_destroy(&p.lock);
	if (p.r < 0 && e)
		*e = p.err;
	return p.r;
}
