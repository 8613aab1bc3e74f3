// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in par.h. */
#include "base/par.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/err.h"

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

	most = MIN(most, 1u + PAR_MOST);
	return (unsigned)MIN(n, (size_t)most);
}

/* At most @most; a signal is for the caller. */
static unsigned start(pthread_t *threads, unsigned most, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	unsigned n = 0;

	if (!most)
		return 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (n < most && pthread_create(&threads[n], NULL, run, arg) == 0)
		n++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return n;
}

static int end(struct par *p, struct err *e)
{
	pthread_mutex_destroy(&p->lock);
	if (p->r < 0 && e)
		*e = p->err;
	return p->r;
}

int par_each(size_t n, int (*each)(void *ctx, size_t i, struct err *e), void *ctx, struct err *e)
{
	struct par p = {.n = n, .each = each, .ctx = ctx, .failed = n};
	pthread_t threads[PAR_MOST];
	unsigned want = wanted(n), running;

	pthread_mutex_init(&p.lock, NULL);
	running = start(threads, want ? want - 1 : 0, work, &p);
	work(&p);
	while (running)
		pthread_join(threads[--running], NULL);
	return end(&p, e);
}

/* ---- a crew --------------------------------------------------------------------------------- */

struct par_crew {
	pthread_t threads[PAR_MOST];
	unsigned want, n;
	sem_t go, done;
	struct par *work; /* NULL: it is over */
};

static void wait_for(sem_t *what)
{
	while (sem_wait(what) < 0 && errno == EINTR)
		;
}

static void *serve(void *arg)
{
	struct par_crew *c = arg;

	for (;;) {
		wait_for(&c->go);
		if (!c->work)
			return NULL;
		work(c->work);
		sem_post(&c->done);
	}
}

struct par_crew *par_crew_new(void)
{
	unsigned want = wanted(1u + PAR_MOST);
	struct par_crew *c = want > 1 ? calloc(1, sizeof(*c)) : NULL;

	if (!c)
		return NULL;
	c->want = want - 1;
	sem_init(&c->go, 0, 0);
	sem_init(&c->done, 0, 0);
	return c;
}

void par_crew_start(struct par_crew *c)
{
	if (c)
		c->n = start(c->threads, c->want, serve, c);
}

/* Each takes one of the posts: all are awaited, also who came too late to find anything to do. */
int par_crew_each(struct par_crew *c, size_t n, int (*each)(void *ctx, size_t i, struct err *e),
	void *ctx, struct err *e)
{
	struct par p = {.n = n, .each = each, .ctx = ctx, .failed = n};
	unsigned helped = c && n > 1 ? c->n : 0;

	pthread_mutex_init(&p.lock, NULL);
	if (helped)
		c->work = &p;
	for (unsigned i = 0; i < helped; i++)
		sem_post(&c->go);
	work(&p);
	for (unsigned i = 0; i < helped; i++)
		wait_for(&c->done);
	return end(&p, e);
}

void par_crew_free(struct par_crew *c)
{
	if (!c)
		return;
	c->work = NULL;
	for (unsigned i = 0; i < c->n; i++)
		sem_post(&c->go);
	while (c->n)
		pthread_join(c->threads[--c->n], NULL);
	sem_destroy(&c->go);
	sem_destroy(&c->done);
	free(c);
}
