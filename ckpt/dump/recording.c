// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in recording.h. */
#include "ckpt/dump/recording.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ckpt/kinds/ask.h"
#include "ckpt/memory/memory.h"
#include "ckpt/survey/openfiles.h"
#include "ckpt/survey/same.h"
#include "ckpt/survey/survey.h"

/* Beside the thread: a child that it takes, and that one's own (enter.h), one at a time, or others
 * who make records with it (par.h); the tracer's own. */
#define WANTED (1 + PAR_MOST)
#define MANY   16 /* records from which on it is worth it */

struct recording {
	struct ckpt_dump *d;
	struct ckpt_item *items;
	size_t n;
	pthread_t other;
	bool two;	     /* there is another */
	bool many;	     /* who is beside may have others make records with him */
	sem_t judged;	     /* who knows whether he may stay */
	bool crowded;	     /* he may not, and ends */
	sem_t asked;	     /* the tracer has no more records to make, or has failed */
	sem_t childless;     /* who is beside takes no more children */
	_Atomic bool failed; /* one of the two: the other need not go on */
	int r;		     /* of who is beside */
	struct err e;
};

static bool is_apart(const struct ckpt_kind *k)
{
	return k->apart || k->scope == CKPT_FILE;
}

static int wrap(const struct ckpt_item *i, struct err *e)
{
	const struct ckpt_proc *proc = i->s.proc;

	switch (i->kind->scope) {
	case CKPT_FILE:
		return ckpt_file_wrap(i->s.file, e);
	case CKPT_THREAD:
		return err_wrap(e, "task %d (%s)", i->s.thread->vtid, i->s.thread->status.comm);
	case CKPT_SESSION:
		return e->error;
	case CKPT_PROC:
		break;
	}
	return err_wrap(e, "task %d (%s)", proc->vpid, proc->status.comm);
}

/* ---- single steps -------------------------------------------------------------------------- */

static int make(struct ckpt_dump *d, struct ckpt_item *i, struct err *e)
{
	int r = i->kind->dump ? i->kind->dump(d, i->s, &i->body, e) : 1;

	if (r == 0)
		r = fault_at(FAULT_WRITE_RECORD, e);
	if (r == 0 && buf_error(&i->body) < 0)
		r = err_errno(e, -ENOMEM, "%s", i->kind->name);
	i->none = r > 0;
	/* All are kept until the last is made. */
	buf_trim(&i->body);
	return r < 0 ? wrap(i, e) : 0;
}

static int put(struct ckpt_dump *d, struct ckpt_item *i, struct err *e)
{
	int r = proto_write_record(d->out, i->kind->number, i->id, i->body.data, i->body.len, e);

	buf_fini(&i->body);
	i->data = i->kind->dump_data != NULL;
	return r < 0 ? wrap(i, e) : 0;
}

int ckpt_item_data(struct ckpt_dump *d, struct ckpt_item *i, struct err *e)
{
	int r = i->kind->dump_data(d, i->s, e);

	i->data = false;
	return r < 0 ? wrap(i, e) : 0;
}

struct run {
	struct recording *w;
	struct ckpt_item *items;
};

static int make_one_of(void *ctx, size_t i, struct err *e)
{
	struct run *run = ctx;

	return run->w->failed ? 0 : make(run->w->d, &run->items[i], e);
}

/* How many from @i on may be made at the same time. */
static size_t run_from(const struct recording *w, size_t i)
{
	const struct ckpt_kind *k = w->items[i].kind;
	size_t n = 1;

	while (w->many && k->many && i + n < w->n && w->items[i + n].kind == k)
		n++;
	return n < MANY ? 1 : n;
}

/* Those that are @apart, or those that are not; fewer when the other thread has failed. */
static int make_some(struct recording *w, bool apart, struct err *e)
{
	size_t n;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < w->n && !w->failed; i += n) {
		n = apart ? run_from(w, i) : 1;
		if (is_apart(w->items[i].kind) == apart)
			r = par_each(n, make_one_of, &(struct run){w, &w->items[i]}, e);
	}
	if (r < 0)
		w->failed = true;
	return r;
}

/* Children that will tell contents: copies are to find what these leave of a limit. */
static int send_out_all(struct recording *w, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < w->n; i++) {
		struct ckpt_item *item = &w->items[i];

		if (!item->none && item->kind->send_out)
			r = item->kind->send_out(w->d, item->s, e);
		if (r < 0)
			wrap(item, e);
	}
	if (r == 0)
		r = fault_at(FAULT_WRITE_SENT, e);
	if (r < 0)
		w->failed = true;
	return r;
}

static int put_all(struct recording *w, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < w->n; i++)
		if (!w->items[i].none)
			r = put(w->d, &w->items[i], e);
	for (size_t i = 0; r >= 0 && i < w->n; i++)
		if (w->items[i].data && w->items[i].kind->data_apart)
			r = ckpt_item_data(w->d, &w->items[i], e);
	return r < 0 ? r : fault_at(FAULT_WRITE_PUT, e);
}

/* ---- two threads --------------------------------------------------------------------------- */

static void wait_for(sem_t *what)
{
	while (sem_wait(what) < 0 && errno == EINTR)
		;
}

static void beside(struct recording *w)
{
	w->r = make_some(w, true, &w->e);
	wait_for(&w->asked);
	if (w->r >= 0 && !w->failed)
		w->r = send_out_all(w, &w->e);
	sem_post(&w->childless);
	if (w->r >= 0 && !w->failed)
		w->r = put_all(w, &w->e);
}

/* Is there room for @n processes below whatever limit there is?  Dead ones take it, too. */
static bool has_room(int n)
{
	pid_t pids[WANTED];
	int born = 0;

	while (born < n) {
		pids[born] = vfork();
		if (pids[born] == 0)
			_exit(0);
		if (pids[born] < 0)
			break;
		born++;
	}
	for (int i = 0; i < born; i++)
		while (waitpid(pids[i], NULL, __WALL) < 0 && errno == EINTR)
			;
	return born == n;
}

/* Tasks are asked meanwhile, which takes no children of ours. */
static void *begin_beside(void *arg)
{
	struct recording *w = arg;

	w->crowded = !has_room(WANTED);
	sem_post(&w->judged);
	w->many = true;
	if (!w->crowded)
		beside(w);
	return NULL;
}

static void await_judgement(struct recording *w)
{
	wait_for(&w->judged);
	if (!w->crowded)
		return;
	pthread_join(w->other, NULL);
	w->two = false;
}

static int by_tracer(struct recording *w, struct err *e)
{
	int r = ckpt_ask_all(w->d, e);

	if (w->two)
		await_judgement(w);
	if (r == 0)
		r = make_some(w, false, e);
	if (r >= 0)
		r = fault_at(FAULT_WRITE_ASKED, e);
	if (r < 0)
		w->failed = true;
	sem_post(&w->asked);
	return r;
}

/* Steps that only one of two comes by can fail beside the other. */
static bool one_may_fail(void)
{
	return fault_may_fail(FAULT_WRITE_ASKED) || fault_may_fail(FAULT_WRITE_SENT) ||
	       fault_may_fail(FAULT_WRITE_PUT);
}

/* Without kcmp(2) files are changed for a moment to be told apart (same.h): that is for one. */
static bool can_be_two(const struct ckpt_dump *d)
{
	return !d->world->names && (!fault_armed || one_may_fail()) && ckpt_same_by_kcmp();
}

/* A signal is for the tracer. */
static int start(struct recording *w)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->other, NULL, begin_beside, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int ckpt_record_all(struct ckpt_dump *d, struct ckpt_item *items, size_t n, struct err *e)
{
	struct recording w = {.d = d, .items = items, .n = n};
	int r;

	sem_init(&w.judged, 0, 0);
	sem_init(&w.asked, 0, 0);
	sem_init(&w.childless, 0, 0);
	w.two = can_be_two(d) && start(&w) == 0;
	r = by_tracer(&w, e);
	if (w.two)
		wait_for(&w.childless);
	else if (r >= 0)
		beside(&w);
	/* Copies take what children of ours have left of a limit. */
	if (r >= 0 && d->options.snapshot && !w.failed)
		ckpt_fork_make(d);
	if (w.two)
		pthread_join(w.other, NULL);
	sem_destroy(&w.judged);
	sem_destroy(&w.asked);
	sem_destroy(&w.childless);
	if (r >= 0 && w.r < 0) {
		r = w.r;
		if (e)
			*e = w.e;
	}
	return r < 0 ? r : 0;
}
