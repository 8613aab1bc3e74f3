// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ahead - a session's memory is copied while it runs.
 *
 * Theory of operation
 *
 *      round 1    everybody is taken up (a stop of some milliseconds), all pages are copied
 *      round 2..  who has come since is taken up; pages that were written to since they were last found are
 *                 found, and copied again
 *      the end    what is found is little enough, and copied: now the session may stop for the rest
 *      the last   all stands still, and is asked about its mappings and files.  Meanwhile a thread finds and
 *                 copies what was written to since; what is not watched comes with the session itself
 *
 * A page is found, and counts as clean, before it is copied: if it is written to while it is
 * copied, it is found again.  So what is clean in the end is as it was last copied.  Pages of zeros
 * are left out as long as nothing was copied there before.
 *
 * A read that goes past the page cache (O_DIRECT, and files of servers) gives its pages to whoever
 * fetches the data, who writes to them without anybody being told.  The kernel counts them as written
 * when they are given; what is found after that may still be on its way, for as long as a disk or a
 * server takes.  So all tasks stand still once more between the two: nobody does as long as he is in
 * such a call.
 *
 * A session that writes faster than the line takes it never gets there.  That is the case when two
 * rounds on end have found nearly as much as the one before, when there have been too many rounds,
 * or when it takes too long.  But a host that is busy with something else for a moment makes rounds
 * longer, and so larger: where an earlier one has found clearly less the session could get there,
 * and to stop now would be to stop at the worst time.  So it takes more rounds on end then.
 */
#include "ckpt/memory/ahead.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/freeze/visit.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/track.h"
#include "ckpt/survey/survey.h"
#include "proto/proto.h"

#define MOST_ROUNDS 30
#define LEAST_REST  (1UL << 20)
#define STOP_PART   50 /* of a second, for the rest */
#define BEAR_PART   4 /* of a second, where it gets no less */
#define LAST_PART   10 /* and for what is sent while it stands still and may have to be let go */
#define SLICE	    (8UL << 20)
#define PROGRESS_NS 200000000ULL
#define STUCK	    2 /* rounds */
#define LONG_STUCK  8 /* where there has been less */
#define PATIENCE_NS 2000000000ULL
#define NAP_US	    5000
#define SECOND_NS   1000000000.0

struct found {
	struct buf runs; /* struct ckpt_run */
	bool again;	 /* something of it was copied before */
};

struct ckpt_ahead {
	const struct ckpt_world *world;
	const struct ckpt_dump_options *dump;
	struct ckpt_ahead_options o;
	struct proto_writer *out;
	struct ckpt_track *track;
	int host_proc;
	struct buf told; /* uint64_t: spaces that have their record */
	struct found *found;
	size_t n_found;
	struct ckpt_ahead_progress now;
	uint64_t began, reported;
	uint64_t copied, copying_ns, bytes;
	struct ckpt_ahead_course course;

	/* The last round; all else belongs to its thread while there is one. */
	bool last;
	pthread_t thread;
	struct err failure;
};

/* ---- what has been written to ---------------------------------------------------------------- */

static void drop_found(struct ckpt_ahead *a)
{
	while (a->n_found)
		buf_fini(&a->found[--a->n_found].runs);
	free(a->found);
	a->found = NULL;
}

static int find(struct ckpt_ahead *a, struct err *e)
{
	size_t n = ckpt_track_count(a->track);
	int r = 0;

	drop_found(a);
	a->found = calloc(n + 1, sizeof(*a->found));
	if (!a->found)
		return err_errno(e, -ENOMEM, "memory");
	a->n_found = n;
	for (size_t i = 0; i < n && r == 0; i++) {
		struct ckpt_space *s = ckpt_track_at(a->track, i);

		a->found[i].again = s->taken;
		r = ckpt_track_take(a->track, s, &a->found[i].runs, e);
	}
	return r;
}

static uint64_t found_bytes(const struct ckpt_ahead *a)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < a->n_found; i++) {
		const struct ckpt_run *v = (const struct ckpt_run *)a->found[i].runs.data;

		for (size_t k = 0; k < a->found[i].runs.len / sizeof(*v); k++)
			sum += v[k].end - v[k].start;
	}
	return sum;
}

static int take_up(void *ctx, struct ckpt_dump *d, struct err *e)
{
	struct ckpt_ahead *a = ctx;
	int r = ckpt_track_arm(a->track, d, e);

	return r == 0 && !ckpt_track_way(a->track)->while_running ? find(a, e) : r;
}

/* Somebody may be in the way for the moment. */
static int visit(struct ckpt_ahead *a, int (*see)(void *ctx, struct ckpt_dump *d, struct err *e),
	bool may_fail, const char *why, struct err *e)
{
	uint64_t until = io_now_ns() + PATIENCE_NS, ns;
	int r;

	while ((r = ckpt_visit(a->world, a->dump, see, a, &ns, e)) < 0) {
		if (may_fail)
			break;
		if (io_now_ns() > until)
			return r;
		usleep(NAP_US);
		*e = (struct err){0};
	}
	if (r == 0)
		log_debug("round %u: stopped for %.1f ms%s", a->now.round, (double)ns / 1e6, why);
	*e = (struct err){0};
	return 0;
}

static int see_nothing(void *ctx, struct ckpt_dump *d, struct err *e)
{
	return 0;
}

/* In a later round nobody new is taken up when somebody is in the way. */
static int look(struct ckpt_ahead *a, struct err *e)
{
	bool running = ckpt_track_way(a->track)->while_running;
	int r = visit(a, take_up, a->now.round > 1 && running, "", e);

	if (r == 0 && running)
		r = find(a, e);
	if (r == 0 && running && found_bytes(a))
		r = visit(a, see_nothing, false, ", for what was on its way", e);
	return r;
}

/* ---- copying it ------------------------------------------------------------------------------ */

static void report(struct ckpt_ahead *a, bool now)
{
	uint64_t then = io_now_ns();

	if (!a->o.progress || a->last || (!now && then - a->reported < PROGRESS_NS))
		return;
	a->reported = then;
	a->o.progress(a->o.ctx, &a->now);
}

static bool is_told(const struct ckpt_ahead *a, uint64_t id)
{
	for (size_t i = 0; i < a->told.len / sizeof(id); i++)
		if (((const uint64_t *)a->told.data)[i] == id)
			return true;
	return false;
}

static int copy_run(struct ckpt_ahead *a, struct ckpt_pages *pages, uint64_t id,
	struct ckpt_run run, bool zeros, struct err *e)
{
	int r = 0;

	for (uint64_t at = run.start; at < run.end && r == 0; at += SLICE) {
		struct ckpt_run part = {at, MIN(at + SLICE, run.end)};

		r = ckpt_pages_write(pages, a->out, PROTO_KIND_AHEAD, id, part, 0, zeros, e);
		a->now.done += part.end - part.start;
		report(a, false);
	}
	return r;
}

/* Memory that can't be opened: of one that has ended, or is another's now, which the next look finds out. */
static bool is_no_loss(const struct ckpt_ahead *a, int r)
{
	if (a->last)
		return r == -ENOENT || r == -ESRCH;
	return r != -EMFILE && r != -ENFILE && r != -ENOMEM;
}

static int copy_space(
	struct ckpt_ahead *a, const struct ckpt_space *s, const struct found *f, struct err *e)
{
	_cleanup_pages_ struct ckpt_pages pages = CKPT_PAGES_INIT;
	const struct ckpt_run *v = (const struct ckpt_run *)f->runs.data;
	size_t n = f->runs.len / sizeof(*v);
	struct err why = {0};
	int r = 0;

	if (!s->taken || s->refused)
		return 0;
	if (!is_told(a, s->id)) {
		buf_put(&a->told, &s->id, sizeof(s->id));
		r = proto_write_record(a->out, PROTO_KIND_AHEAD, s->id, "", 0, e);
	}
	if (r == 0 && n)
		r = ckpt_pages_open(&pages, a->host_proc, s->pid, &why);
	if (r < 0 && err_is(&why)) {
		if (is_no_loss(a, r))
			return 0;
		*e = why;
	}
	for (size_t k = 0; k < n && r == 0; k++)
		r = copy_run(a, &pages, s->id, v[k], f->again, e);
	if (r == 0 && a->last && pages.gone)
		r = err_set(e, ERR_UNFREEZABLE, -ESRCH, "a task was killed while its memory was written");
	a->bytes += pages.written * PAGE_SIZE;
	return r;
}

/* Until all of it has left our hands. */
static int copy(struct ckpt_ahead *a, struct err *e)
{
	uint64_t then = io_now_ns();
	int r = 0;

	for (size_t i = 0; i < a->n_found && r == 0; i++)
		r = copy_space(a, ckpt_track_at(a->track, i), &a->found[i], e);
	if (r == 0)
		r = proto_writer_settle(a->out, e);
	a->copying_ns += io_now_ns() - then;
	a->copied += a->now.done;
	if (a->copied)
		a->now.rate =
			(uint64_t)((double)a->copied * SECOND_NS / (double)MAX(a->copying_ns, 1UL));
	return r;
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static uint64_t little(const struct ckpt_ahead *a)
{
	return a->o.rest ? a->o.rest : MAX(LEAST_REST, a->now.rate / STOP_PART);
}

static void mib(uint64_t bytes, char ret[32])
{
	snprintf(ret, 32, "%.1f MiB", (double)bytes / (1 << 20));
}

static int give_up(struct ckpt_ahead *a, const char *why, struct err *e)
{
	char left[32], dirty[32], rate[32];

	mib(a->now.all, left);
	mib(a->now.dirty, dirty);
	mib(a->now.rate, rate);
	/* Nobody would rather have it stay here than stand still for so short. */
	if (a->o.force || (!a->o.rest && a->now.all <= a->now.rate / BEAR_PART)) {
		log_info("%s: %s are left", why, left);
		return 1;
	}
	err_set(e, ERR_FAILED, -ETIMEDOUT,
		"%s: %s are left after %u rounds; it writes to %s in a second, the line takes %s",
		why, left, a->now.round - 1, dirty, rate);
	return err_hint(e, "--force stops it all the same, for some %.1f s",
		(double)a->now.all / (double)MAX(a->now.rate, 1UL));
}

bool ckpt_ahead_stuck(struct ckpt_ahead_course *c, uint64_t found)
{
	bool less = c->least && found > c->least + c->least / 8;

	c->stuck = c->before && found > c->before - c->before / 8 ? c->stuck + 1 : 0;
	c->before = found;
	c->least = c->least ? MIN(c->least, found) : found;
	return c->stuck >= (less ? LONG_STUCK : STUCK);
}

/* 1: it is time to stop, 0: another round. */
static int judge(struct ckpt_ahead *a, struct err *e)
{
	uint32_t most = a->o.rounds ? a->o.rounds : MOST_ROUNDS;
	bool stuck = ckpt_ahead_stuck(&a->course, a->now.all);

	if (a->now.all <= little(a))
		return 1;
	if (a->now.round == 1)
		return 0;
	if (stuck)
		return give_up(a, "it does not get less", e);
	if (a->now.round > most)
		return give_up(a, "too many rounds", e);
	if (a->o.seconds && io_now_ns() - a->began > a->o.seconds * 1000000000ULL)
		return give_up(a, "it takes too long", e);
	return 0;
}

static int do_rounds(struct ckpt_ahead *a, struct err *e)
{
	uint64_t since = io_now_ns();
	int r, last;

	for (a->now.round = 1;; a->now.round++) {
		uint64_t now;

		r = look(a, e);
		if (r < 0)
			return r;
		now = io_now_ns();
		a->now.done = 0;
		a->now.all = found_bytes(a);
		if (a->now.round > 1)
			a->now.dirty = (uint64_t)((double)a->now.all * SECOND_NS /
						  (double)MAX(now - since, 1UL));
		since = now;
		last = judge(a, e);
		if (last < 0)
			return last;
		report(a, true);
		r = copy(a, e);
		if (r == 0)
			r = fault_at(FAULT_AHEAD_ROUND, e);
		if (r < 0 || last)
			return r;
	}
}

/* ---- the last ------------------------------------------------------------------------------ */

static void *do_last(void *arg)
{
	struct ckpt_ahead *a = arg;

	if (find(a, &a->failure) == 0)
		copy(a, &a->failure);
	return NULL;
}

/*
 * Where a take makes the whole process count as clean it must follow an arm: the session may have new
 * mappings since.  And who is to run again, for something is in the way, waits for all of it.
 */
static bool is_worth_it(const struct ckpt_ahead *a)
{
	return ckpt_track_way(a->track)->while_running &&
	       a->now.all <= MAX(LEAST_REST, a->now.rate / LAST_PART);
}

void ckpt_ahead_begin_last(struct ckpt_ahead *a)
{
	sigset_t all, before;

	if (!a || a->last || err_is(&a->failure) || !is_worth_it(a))
		return;
	a->now.done = 0;
	a->last = true;
	/* A signal is for the tracer.  Without a thread it comes with the session. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&a->thread, NULL, do_last, a) != 0)
		a->last = false;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int ckpt_ahead_end_last(struct ckpt_ahead *a, struct err *e)
{
	if (!a)
		return 0;
	if (a->last)
		pthread_join(a->thread, NULL);
	a->last = false;
	/* what counts as clean may never have been sent: nothing comes of this image any more */
	if (err_is(&a->failure))
		*e = a->failure;
	return a->failure.error;
}

int ckpt_ahead_copy(struct ckpt_ahead **ret, const struct ckpt_world *w,
	const struct ckpt_dump_options *o, const struct ckpt_ahead_options *ao,
	struct proto_writer *out, struct err *e)
{
	struct ckpt_ahead *a = calloc(1, sizeof(*a));
	int r;

	if (!a)
		return err_errno(e, -ENOMEM, "memory");
	*a = (struct ckpt_ahead){.world = w, .dump = o, .o = *ao, .out = out, .began = io_now_ns()};
	a->host_proc = proc_open(e);
	r = a->host_proc < 0 ? a->host_proc : 0;
	if (r == 0)
		r = ckpt_track_new(&a->track, ao->tracker && *ao->tracker ? ao->tracker : NULL, e);
	if (r == 0)
		r = do_rounds(a, e);
	drop_found(a);
	if (r < 0)
		ckpt_ahead_free(a);
	else
		*ret = a;
	return r;
}

void ckpt_ahead_sum(
	const struct ckpt_ahead *a, uint32_t *ret_rounds, uint64_t *ret_bytes, const char **ret_way)
{
	*ret_rounds = a->now.round;
	*ret_bytes = a->bytes;
	*ret_way = ckpt_track_way(a->track)->name;
}

void ckpt_ahead_free(struct ckpt_ahead *a)
{
	if (!a)
		return;
	ckpt_ahead_end_last(a, &(struct err){0});
	drop_found(a);
	buf_fini(&a->told);
	ckpt_track_free(a->track);
	close_fd(a->host_proc);
	free(a);
}

/* ---- for the dump ---------------------------------------------------------------------------- */

uint64_t ckpt_ahead_space(const struct ckpt_ahead *a, const struct ckpt_proc *p)
{
	const struct ckpt_space *s = a ? ckpt_track_of(a->track, p) : NULL;

	return s ? s->id : 0;
}

bool ckpt_ahead_watches(const struct ckpt_ahead *a, const struct proc_vma *v)
{
	return a && ckpt_track_watches(a->track, v);
}

int ckpt_ahead_look(const struct ckpt_ahead *a, int pagemap, const struct proc_vma *v,
	struct buf *pages, struct buf *kept, struct buf *guards, struct err *e)
{
	return ckpt_track_look(a->track, pagemap, v, pages, kept, guards, e);
}
