// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in pool.h. */
#include "proto/pool.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "proto/proto.h"

#define HUGE_PAGE (2u << 20)

static int worker_init(struct proto_worker *w, struct proto_pool *p, bool thread)
{
	if (!w->sha)
		w->sha = proto_sha_new(p->lanes);
	if (!w->zstd)
		w->zstd = proto_zstd_new();
	w->pool = p;
	w->thread = thread;
	return w->sha && w->zstd ? 0 : -ENOMEM;
}

static void worker_fini(struct proto_worker *w)
{
	proto_digests_fini(&w->digests);
	proto_sha_free(w->sha);
	proto_zstd_free(w->zstd);
	proto_pages_free(w->scratch, PROTO_MAX_DATA);
	*w = (struct proto_worker){0};
}

static unsigned cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (unsigned)CPU_COUNT(&set);
}

int proto_pool_init(struct proto_pool *p, unsigned threads, bool hashes,
	bool (*step)(void *ctx, struct proto_worker *w), void *ctx, struct err *e)
{
	*p = (struct proto_pool){.step = step, .ctx = ctx};
	if (hashes)
		p->lanes = proto_lanes_load();
	pthread_mutex_init(&p->lock, NULL);
	pthread_cond_init(&p->work, NULL);
	pthread_cond_init(&p->done, NULL);
	if (threads == 0)
		threads = cpus();
	p->wanted = threads == PROTO_NO_THREADS ? 0 : MIN(threads, (unsigned)PROTO_POOL_MAX);
	if (worker_init(&p->own, p, false) < 0) {
		proto_pool_fini(p);
		return err_errno(e, -ENOMEM, "image stream");
	}
	return 0;
}

static void *run(void *arg)
{
	struct proto_worker *w = arg;
	struct proto_pool *p = w->pool;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	pthread_mutex_lock(&p->lock);
	while (!p->stop) {
		if (!p->step(p->ctx, w))
			pthread_cond_wait(&p->work, &p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

void proto_pool_start(struct proto_pool *p)
{
	sigset_t all, before;

	if (p->running || !p->wanted)
		return;
	p->stop = false;
	p->pid = getpid();
	/* Signals are for the program, not for these; a broken pipe is told by errno. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (p->running < p->wanted) {
		struct proto_worker *w = &p->workers[p->running];

		if (worker_init(w, p, true) < 0)
			break;
		if (pthread_create(&p->threads[p->running], NULL, run, w) != 0)
			break;
		p->running++;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!p->running)
		p->wanted = 0;
}

static void stop(struct proto_pool *p, bool at_once)
{
	if (!p->running || !proto_pool_usable(p))
		return;
	pthread_mutex_lock(&p->lock);
	p->stop = true;
	pthread_cond_broadcast(&p->work);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; at_once && i < p->running; i++)
		pthread_cancel(p->threads[i]);
	while (p->running)
		pthread_join(p->threads[--p->running], NULL);
}

void proto_pool_settle(struct proto_pool *p)
{
	stop(p, false);
}

void proto_pool_fini(struct proto_pool *p)
{
	if (!p->step)
		return;
	stop(p, true);
	for (size_t i = 0; i < ARRAY_SIZE(p->workers); i++)
		worker_fini(&p->workers[i]);
	worker_fini(&p->own);
	free(take_ptr(p->lanes));
	p->step = NULL;
}

void proto_pool_wait(struct proto_pool *p)
{
	if (p->running)
		pthread_cond_wait(&p->done, &p->lock);
	else
		p->step(p->ctx, &p->own);
}

void proto_pool_kick(struct proto_pool *p)
{
	pthread_cond_signal(&p->work);
}

void proto_pool_did(struct proto_pool *p)
{
	pthread_cond_signal(&p->done);
}

bool proto_pool_usable(const struct proto_pool *p)
{
	return !p->running || p->pid == getpid();
}

void proto_worker_may_block(struct proto_worker *w)
{
	if (w->thread)
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

void proto_worker_blocked(struct proto_worker *w)
{
	if (w->thread)
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
}

uint8_t *proto_worker_scratch(struct proto_worker *w)
{
	if (!w->scratch) {
		w->scratch = proto_pages_alloc(PROTO_MAX_DATA);
		proto_pages_expect(w->scratch, PROTO_MAX_DATA);
	}
	return w->scratch;
}

void *proto_pages_alloc(size_t len)
{
	const size_t huge = HUGE_PAGE;
	uint8_t *p =
		mmap(NULL, len + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t before;

	if (p == MAP_FAILED)
		return NULL;
	before = (size_t)(ALIGN_UP((uintptr_t)p, huge) - (uintptr_t)p);
	if (before)
		munmap(p, before);
	if (before < huge)
		munmap(p + before + len, huge - before);
	return p + before;
}

void proto_pages_expect(void *p, size_t len)
{
	if (p)
		madvise(p, ALIGN_UP(len, (size_t)HUGE_PAGE), MADV_HUGEPAGE);
}

void proto_pages_free(void *p, size_t len)
{
	if (p)
		munmap(p, len);
}
