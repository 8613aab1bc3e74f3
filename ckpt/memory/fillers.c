// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in fillers.h. */
#include "ckpt/memory/fillers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"

#define MAX_FILLERS 3
#define RING	    1024u

struct ckpt_fillers {
	pthread_mutex_t lock;
	pthread_cond_t work, done;
	unsigned wanted, n;
	pthread_t threads[MAX_FILLERS];

	/* under the lock */
	struct ckpt_filling ring[RING];
	uint64_t first, next; /* to be begun: modulo RING */
	unsigned active, idle;
	bool stop, waited_for;
	/* What could not be written, with its place in the order.  No more than can be active. */
	struct {
		uint64_t at;
		struct ckpt_filling what;
	} failed[MAX_FILLERS + 1];
	unsigned n_failed;
};

struct ckpt_fillers *ckpt_fillers_new(void)
{
	struct ckpt_fillers *f;
	cpu_set_t cpus;
	unsigned n;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) < 0)
		return NULL;
	n = (unsigned)CPU_COUNT(&cpus) - 1;
	f = n ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	f->wanted = MIN(n, (unsigned)MAX_FILLERS);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->work, NULL);
	pthread_cond_init(&f->done, NULL);
	return f;
}

/* Begins the next, with the lock; what of it could not be written is kept in @failed. */
static void do_one(struct ckpt_fillers *f)
{
	uint64_t at = f->first++;
	struct ckpt_filling w = f->ring[at % RING];
	bool ok;

	f->active++;
	pthread_mutex_unlock(&f->lock);
	ok = ckpt_fill_part(&w);
	pthread_mutex_lock(&f->lock);
	f->active--;
	if (!ok) {
		f->failed[f->n_failed].at = at;
		f->failed[f->n_failed++].what = w;
	}
	if (f->waited_for)
		pthread_cond_signal(&f->done);
}

static bool may_begin(const struct ckpt_fillers *f)
{
	return f->first < f->next && !f->n_failed;
}

static void *run(void *arg)
{
	struct ckpt_fillers *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->stop) {
		if (may_begin(f)) {
			do_one(f);
			continue;
		}
		f->idle++;
		pthread_cond_wait(&f->work, &f->lock);
		f->idle--;
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

void ckpt_fillers_start(struct ckpt_fillers *f)
{
	sigset_t all, before;

	if (!f)
		return;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (f->n < f->wanted && pthread_create(&f->threads[f->n], NULL, run, f) == 0)
		f->n++;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

bool ckpt_fillers_room(struct ckpt_fillers *f)
{
	bool room = false;

	if (f && f->n) {
		pthread_mutex_lock(&f->lock);
		room = f->next - f->first < RING;
		pthread_mutex_unlock(&f->lock);
	}
	return room;
}

int ckpt_fillers_add(struct ckpt_fillers *f, const struct ckpt_filling *w, struct err *e)
{
	int r = 0;

	if (!f || !f->n)
		return ckpt_fill(w->pid, w->proc_fd, w->vpid, w->mem, w->addr, w->data, w->len,
			w->writable, e);
	/* Nobody else adds. */
	if (!ckpt_fillers_room(f))
		r = ckpt_fillers_wait(f, e);
	pthread_mutex_lock(&f->lock);
	f->ring[f->next++ % RING] = *w;
	if (f->idle)
		pthread_cond_signal(&f->work);
	pthread_mutex_unlock(&f->lock);
	return r;
}

/* The first that failed, once more, without the lock that is held. */
static int once_more(struct ckpt_fillers *f, struct err *e)
{
	struct ckpt_filling w;
	unsigned first = 0;
	int r;

	for (unsigned i = 1; i < f->n_failed; i++)
		if (f->failed[i].at < f->failed[first].at)
			first = i;
	w = f->failed[first].what;
	pthread_mutex_unlock(&f->lock);
	r = ckpt_fill(w.pid, w.proc_fd, w.vpid, w.mem, w.addr, w.data, w.len, w.writable, e);
	pthread_mutex_lock(&f->lock);
	f->failed[first] = f->failed[--f->n_failed];
	if (!f->n_failed)
		pthread_cond_broadcast(&f->work);
	return r;
}

int ckpt_fillers_wait(struct ckpt_fillers *f, struct err *e)
{
	int r = 0;

	if (!f || !f->n)
		return 0;
	pthread_mutex_lock(&f->lock);
	f->waited_for = true;
	while (r == 0) {
		if (may_begin(f))
			do_one(f);
		else if (f->active)
			pthread_cond_wait(&f->done, &f->lock);
		else if (f->n_failed)
			r = once_more(f, e);
		else
			break;
	}
	f->waited_for = false;
	pthread_mutex_unlock(&f->lock);
	return r;
}

void ckpt_fillers_free(struct ckpt_fillers *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = true;
	pthread_cond_broadcast(&f->work);
	pthread_mutex_unlock(&f->lock);
	while (f->n)
		pthread_join(f->threads[--f->n], NULL);
	pthread_cond_destroy(&f->work);
	pthread_cond_destroy(&f->done);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
