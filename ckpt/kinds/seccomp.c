// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Seccomp filters that programs have installed for themselves.  ckpt/filters.h says how they come
 * to be known.
 *
 * Dump: each task is asked for the number of its newest filter; that it has as many filters as
 * this one has ancestors proves that none is missing.  One record has all filters in use.
 *
 * Restore: filters come last of all, when nothing but loading the registers is left to be done in a
 * task, and in the order in which it had them.  What all threads of a process have in common is
 * installed by the first of them for all (SECCOMP_FILTER_FLAG_TSYNC): then it is the same filter
 * for the kernel, too, and the program can synchronize its threads later.  Beyond that, threads and
 * processes that had shared a filter have one each that is equal.
 */
#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/filters.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

#define FLAGS (SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW)

struct holder {
	pid_t vtid;
	uint32_t filter;
};

struct holders {
	size_t n;
	struct holder list[];
};

/* ---- dump --------------------------------------------------------------------------------- */

static int ask(struct ckpt_dump *d, struct ckpt_thread *t, struct holders *h, struct err *e)
{
	struct remote *r;
	uint32_t number;
	int k = ckpt_thread_remote(t, &r, e);

	if (k == 0)
		k = ckpt_filter_ask(r, &number, e);
	if (k == 0 && ckpt_filters_depth(d->options.filters, number) != (size_t)t->own_filters)
		k = err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"it has a seccomp filter that is not known");
	if (k < 0)
		return err_wrap(e, "task %d (%s)", t->vtid, t->status.comm);
	h->list[h->n++] = (struct holder){t->vtid, number};
	return 0;
}

static int check(struct ckpt_dump *d, union ckpt_subject s, struct err *e)
{
	struct holders *h = calloc(1, sizeof(*h) + d->report.tasks * sizeof(struct holder));
	int r = 0;

	if (!h)
		return err_errno(e, -ENOMEM, "seccomp filters");
	d->kind_state[PROTO_KIND_SECCOMP] = h;
	for (size_t i = 0; i < d->n_procs; i++) {
		struct ckpt_proc *p = d->procs[i];

		for (size_t k = 0; r == 0 && k < p->n_threads; k++)
			if (p->threads[k]->own_filters)
				r = ask(d, p->threads[k], h, e);
	}
	return r;
}

/* A record under construction; the code is the table's. */
struct record {
	Pb__Seccomp m;
	Pb__SeccompProgram *programs, **program_list;
	Pb__SeccompFilter *filters, **filter_list;
	Pb__SeccompTask *tasks, **task_list;
};

static void record_fini(struct record *r)
{
	free(r->programs);
	free(r->program_list);
	free(r->filters);
	free(r->filter_list);
	free(r->tasks);
	free(r->task_list);
}

static int record_init(struct record *r, size_t n_filters, size_t n_tasks)
{
	*r = (struct record){.m = PB__SECCOMP__INIT,
		.programs = calloc(n_filters, sizeof(*r->programs)),
		.program_list = calloc(n_filters, sizeof(*r->program_list)),
		.filters = calloc(n_filters, sizeof(*r->filters)),
		.filter_list = calloc(n_filters, sizeof(*r->filter_list)),
		.tasks = calloc(n_tasks, sizeof(*r->tasks)),
		.task_list = calloc(n_tasks, sizeof(*r->task_list))};
	r->m.programs = r->program_list;
	r->m.filters = r->filter_list;
	r->m.tasks = r->task_list;
	return r->programs && r->program_list && r->filters && r->filter_list && r->tasks &&
			       r->task_list
		       ? 0
		       : -ENOMEM;
}

/* Equal programs are one in the table. */
static uint32_t put_program(struct record *r, const struct ckpt_filter *f)
{
	uint8_t *code = (uint8_t *)(uintptr_t)f->code;
	Pb__SeccompProgram *p;

	for (size_t i = 0; i < r->m.n_programs; i++)
		if (r->programs[i].code.data == code)
			return (uint32_t)i;
	p = r->program_list[r->m.n_programs] = &r->programs[r->m.n_programs];
	pb__seccomp_program__init(p);
	p->code.data = code;
	p->code.len = f->n * sizeof(*f->code);
	return (uint32_t)r->m.n_programs++;
}

static void put_filter(struct record *r, uint32_t number, const struct ckpt_filter *f)
{
	Pb__SeccompFilter *p = r->filter_list[r->m.n_filters] = &r->filters[r->m.n_filters];

	pb__seccomp_filter__init(p);
	p->number = number;
	p->parent = f->parent;
	p->program = put_program(r, f);
	p->flags = f->flags & FLAGS;
	r->m.n_filters++;
}

static void put_task(struct record *r, const struct holder *h)
{
	Pb__SeccompTask *p = r->task_list[r->m.n_tasks] = &r->tasks[r->m.n_tasks];

	pb__seccomp_task__init(p);
	p->tid = h->vtid;
	p->filter = h->filter;
	r->m.n_tasks++;
}

static int by_tid(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	return (x->vtid > y->vtid) - (x->vtid < y->vtid);
}

/* used[i]: is i the number of a filter that some task has?  Returns how many are. */
static size_t mark_used(const struct ckpt_filters *table, const struct holders *h, bool *used)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++) {
		uint32_t number = h->list[i].filter;
		struct ckpt_filter f;

		while (!used[number] && ckpt_filters_read(table, number, &f)) {
			used[number] = true;
			n++;
			number = f.parent;
		}
	}
	return n;
}

static uint32_t highest(const struct holders *h)
{
	uint32_t max = 0;

	for (size_t i = 0; i < h->n; i++)
		max = MAX(max, h->list[i].filter);
	return max;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	struct holders *h = d->kind_state[PROTO_KIND_SECCOMP];
	const struct ckpt_filters *table = d->options.filters;
	_cleanup_(record_fini) struct record r = {0};
	_cleanup_free_ bool *used = NULL;
	uint32_t max;

	if (!h || !h->n)
		return 1;
	max = highest(h);
	used = calloc(max + 1, sizeof(*used));
	if (!used || record_init(&r, mark_used(table, h, used), h->n) < 0)
		return err_errno(e, -ENOMEM, "seccomp filters");
	qsort(h->list, h->n, sizeof(h->list[0]), by_tid);
	for (uint32_t i = 1; i <= max; i++) {
		struct ckpt_filter f;

		if (used[i] && ckpt_filters_read(table, i, &f))
			put_filter(&r, i, &f);
	}
	for (size_t i = 0; i < h->n; i++)
		put_task(&r, &h->list[i]);
	return ckpt_pack(&r.m.base, body, e);
}

/* ---- restore ------------------------------------------------------------------------------ */

static int load_one(struct ckpt_filters *f, const Pb__Seccomp *m, const Pb__SeccompFilter *p)
{
	const ProtobufCBinaryData *code;
	const struct sock_filter *insns;
	size_t n;
	int r;

	if (p->program >= m->n_programs || p->flags & ~(uint32_t)FLAGS)
		return -EINVAL;
	code = &m->programs[p->program]->code;
	insns = (const struct sock_filter *)code->data;
	n = code->len / sizeof(*insns);
	if (code->len % sizeof(*insns))
		return -EINVAL;
	r = ckpt_filters_try(insns, n);
	return r < 0 ? r : ckpt_filters_put(f, p->number, p->parent, p->flags, insns, n);
}

static int load(struct ckpt_filters *f, const Pb__Seccomp *m, struct err *e)
{
	int r = m ? 0 : -EBADMSG;

	for (size_t i = 0; r == 0 && i < m->n_filters; i++)
		r = load_one(f, m, m->filters[i]);
	for (size_t i = 0; r == 0 && i < m->n_tasks; i++)
		if (!ckpt_filters_depth(f, m->tasks[i]->filter))
			r = -EINVAL;
	return r < 0 ? err_set(e, ERR_IMAGE, r, "the image has a seccomp filter that is none") : 0;
}

int ckpt_filters_load(struct ckpt_filters *f, const void *record, size_t len, struct err *e)
{
	Pb__Seccomp *m = pb__seccomp__unpack(NULL, len, record);
	int r = load(f, m, e);

	pb__seccomp__free_unpacked(m, NULL);
	return r;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	struct ckpt_filters *f = ckpt_filters_new();
	int k = f ? ckpt_filters_load(f, r->body, r->len, e)
		  : err_errno(e, -ENOMEM, "seccomp filters");

	ckpt_filters_free(f);
	if (k == 0 && b->world->filters)
		k = b->world->filters(b->world->ctx, r->body, r->len, e);
	return k;
}

static uint32_t filter_of(const Pb__Seccomp *m, pid_t vtid)
{
	for (size_t i = 0; i < m->n_tasks; i++)
		if (m->tasks[i]->tid == vtid)
			return m->tasks[i]->filter;
	return 0;
}

/* The ancestor of @number that has @depth filters up to itself. */
static uint32_t ancestor(const struct ckpt_filters *f, uint32_t number, size_t depth)
{
	struct ckpt_filter what;

	for (size_t n = ckpt_filters_depth(f, number); n > depth; n--)
		number = ckpt_filters_read(f, number, &what) ? what.parent : 0;
	return number;
}

static uint32_t common(const struct ckpt_filters *f, uint32_t a, uint32_t b)
{
	size_t depth = MIN(ckpt_filters_depth(f, a), ckpt_filters_depth(f, b));

	for (; depth; depth--)
		if (ancestor(f, a, depth) == ancestor(f, b, depth))
			return ancestor(f, a, depth);
	return 0;
}

/* Those of @number that are not among those of @have. */
static int install(struct ckpt_build_thread *t, const struct ckpt_filters *f, uint32_t have,
	uint32_t number, uint32_t flags, struct err *e)
{
	size_t from = ckpt_filters_depth(f, have), to = ckpt_filters_depth(f, number);
	long v = 0;
	int r = 0;

	if (to > from)
		remote_set_guarded(t->remote);
	for (size_t depth = from + 1; r == 0 && v == 0 && depth <= to; depth++)
		r = ckpt_filter_put(t->remote, f, ancestor(f, number, depth), flags, &v, e);
	if (r == 0 && v != 0)
		r = err_errno(e, v < 0 ? (int)v : -EBUSY, "cannot install a seccomp filter");
	return r < 0 ? err_wrap(e, "task %d", t->vtid) : 0;
}

static int install_all(struct ckpt_build_proc *p, const struct ckpt_filters *f,
	const Pb__Seccomp *m, struct err *e)
{
	uint32_t all = filter_of(m, p->threads[0].vtid);
	int r;

	for (size_t i = 1; i < p->n_threads; i++)
		all = common(f, all, filter_of(m, p->threads[i].vtid));
	r = install(&p->threads[0], f, 0, all, p->n_threads > 1 ? SECCOMP_FILTER_FLAG_TSYNC : 0, e);
	for (size_t i = 0; r == 0 && i < p->n_threads; i++) {
		if (all)
			remote_set_guarded(p->threads[i].remote);
		r = install(&p->threads[i], f, all, filter_of(m, p->threads[i].vtid), 0, e);
	}
	return r;
}

int ckpt_filters_restore(struct ckpt_build *b, bool stopped, struct err *e)
{
	const struct ckpt_record *record = ckpt_build_record(b, PROTO_KIND_SECCOMP, 0);
	struct ckpt_filters *f;
	Pb__Seccomp *m;
	int r;

	if (!record)
		return 0;
	f = ckpt_filters_new();
	m = pb__seccomp__unpack(NULL, record->len, record->body);
	r = f ? load(f, m, e) : err_errno(e, -ENOMEM, "seccomp filters");
	if (r == 0 && b->world->names)
		ckpt_filters_set_untraced(f);
	for (size_t i = 0; r == 0 && i < b->n_procs; i++)
		if (!b->procs[i].zombie && b->procs[i].stopped == stopped)
			r = install_all(&b->procs[i], f, m, e);
	pb__seccomp__free_unpacked(m, NULL);
	ckpt_filters_free(f);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Seccomp *m = pb__seccomp__unpack(NULL, len, body);
	size_t insns = 0;

	for (size_t i = 0; m && i < m->n_programs; i++)
		insns += m->programs[i]->code.len / sizeof(struct sock_filter);
	if (m)
		fprintf(out, "%zu filters of %zu programs (%zu instructions) on %zu tasks",
			m->n_filters, m->n_programs, insns, m->n_tasks);
	pb__seccomp__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_seccomp = {
	.number = PROTO_KIND_SECCOMP,
	.name = "seccomp",
	.scope = CKPT_SESSION,
	.check = check,
	.dump = dump,
	.create = create,
	.show = show,
};
