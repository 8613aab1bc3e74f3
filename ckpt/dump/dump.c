// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The dump side: freezing, finding out, writing, letting go.
 *
 * ckpt_freeze walks the table of stages; each has an undo, and whatever fails, the undos of the
 * stages begun so far are walked backwards.  ckpt_thaw does the same from the end: a session that
 * runs on after a dump and one whose dump failed are let go by the same code.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <protobuf-c/protobuf-c.h>

#include "base/base.h"
#include "ckpt/answers.h"
#include "ckpt/dump/recording.h"
#include "ckpt/freeze/foreseen.h"
#include "ckpt/freeze/freeze.h"
#include "ckpt/freeze/visit.h"
#include "ckpt/kinds/find.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/sock.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/kinds/tcp.h"
#include "ckpt/kinds/tcp_drain.h"
#include "ckpt/kinds/tcp_list.h"
#include "ckpt/memory/ahead.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/stash.h"
#include "ckpt/nested/survey.h"
#include "ckpt/survey/openfiles.h"
#include "ckpt/survey/program.h"
#include "ckpt/survey/walks.h"

#define DEFAULT_PATIENCE_MS 2000
#define FIRST_NAP_US	    2000
#define LONGEST_NAP_US	    50000
#define WALKS_PART	    5  /* of the patience, for who reads directories */
#define UNREAD_PART	    50 /* and for who reads events */

#define ROOM (32UL << 20) /* for what is written in the pause, at most */

/* ---- all subjects of a kind --------------------------------------------------------------- */

typedef int subject_op(struct ckpt_dump *d, const struct ckpt_kind *k, union ckpt_subject s,
	uint64_t id, void *ctx, struct err *e);

static int each_proc(
	struct ckpt_dump *d, const struct ckpt_kind *k, subject_op *op, void *ctx, struct err *e)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		struct ckpt_proc *p = d->procs[i];

		if (op(d, k, (union ckpt_subject){.proc = p}, (uint64_t)p->vpid, ctx, e) < 0)
			return err_wrap(e, "task %d (%s)", p->vpid, p->status.comm);
	}
	return 0;
}

static int each_thread(
	struct ckpt_dump *d, const struct ckpt_kind *k, subject_op *op, void *ctx, struct err *e)
{
	for (size_t i = 0; i < d->n_procs; i++) {
		for (size_t n = 0; n < d->procs[i]->n_threads; n++) {
			struct ckpt_thread *t = d->procs[i]->threads[n];

			if (op(d, k, (union ckpt_subject){.thread = t}, (uint64_t)t->vtid, ctx, e) <
				0)
				return err_wrap(e, "task %d (%s)", t->vtid, t->status.comm);
		}
	}
	return 0;
}

static int each_file(
	struct ckpt_dump *d, const struct ckpt_kind *k, subject_op *op, void *ctx, struct err *e)
{
	for (size_t i = 0; i < d->n_files; i++) {
		struct ckpt_file *f = d->files[i];

		if (f->kind == k && op(d, k, (union ckpt_subject){.file = f}, f->id, ctx, e) < 0)
			return ckpt_file_wrap(f, e);
	}
	return 0;
}

static int each_session(
	struct ckpt_dump *d, const struct ckpt_kind *k, subject_op *op, void *ctx, struct err *e)
{
	return op(d, k, (union ckpt_subject){0}, 0, ctx, e);
}

/* Every subject of every kind, in table order. */
static int each_subject(struct ckpt_dump *d, subject_op *op, void *ctx, struct err *e)
{
	static int (*const walk[])(struct ckpt_dump *, const struct ckpt_kind *, subject_op *,
		void *, struct err *) = {
		[CKPT_SESSION] = each_session,
		[CKPT_PROC] = each_proc,
		[CKPT_THREAD] = each_thread,
		[CKPT_FILE] = each_file,
	};

	for (size_t i = 0; i < ckpt_n_kinds; i++) {
		int r = walk[ckpt_kinds[i]->scope](d, ckpt_kinds[i], op, ctx, e);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- stages of the freeze ----------------------------------------------------------------- */

static void tell_phase(struct ckpt_dump *d, enum ckpt_phase phase)
{
	if (d->options.phase)
		d->options.phase(d->options.ctx, phase);
}

static int say_hold(struct ckpt_dump *d, struct err *e)
{
	int r = d->options.hold(d->options.hold_ctx, CKPT_PACKETS_HOLD, e);

	d->hold_said = r == 0;
	return r;
}

static int await_held(struct ckpt_dump *d, struct err *e)
{
	d->hold_said = false;
	return d->options.hold(d->options.hold_ctx, CKPT_PACKETS_HELD, e);
}

static void pass(struct ckpt_dump *d)
{
	struct err e = {0};

	if (d->options.hold(d->options.hold_ctx, CKPT_PACKETS_PASS, &e) < 0)
		log_warn("%s", e.msg);
}

static int quiesce(struct ckpt_dump *d, struct err *e)
{
	struct ckpt_freeze_options o = {
		.host_proc = d->host_proc,
		.session_proc = d->world->names ? -1 : d->world->proc_fd,
		.names = d->world->names,
		.init_pid = d->world->init_pid,
		.foreseen = d->foreseen,
		.deadline_ms = d->options.deadline_ms,
		.notified = d->options.notified,
		.n_notified = d->options.n_notified,
		.unhold = d->options.unhold,
		.ctx = d->options.ctx,
		.ring_workers = d->world->io_uring,
	};
	int r;

	tell_phase(d, CKPT_STOPPING);
	r = ckpt_frozen_make(&d->frozen, &o, e);
	tell_phase(d, r < 0 ? CKPT_RUNS : CKPT_STANDS);
	/*
	 * What comes from now on only makes the image longer, and a gateway on another host takes some
	 * milliseconds.
	 */
	if (r == 0 && d->options.hold && d->hears)
		r = say_hold(d, e);
	return r;
}

static void undo_quiesce(struct ckpt_dump *d)
{
	uint64_t since;

	if (!d->frozen)
		return;
	since = ckpt_frozen_since(d->frozen);
	if (d->hold_said) {
		await_held(d, &(struct err){0});
		pass(d);
	}
	tell_phase(d, CKPT_RUNS);
	ckpt_frozen_release(take_ptr(d->frozen));
	d->report.frozen_ns = io_now_ns() - since;
}

static int survey(struct ckpt_dump *d, struct err *e)
{
	int r = ckpt_survey_tasks(d, d->frozen, e);

	if (r == 0)
		r = ckpt_survey_code(d, e);
	if (r == 0)
		r = ckpt_survey_filters(d, e);
	if (r == 0)
		r = ckpt_survey_sharing(d, e);
	return r;
}

/* To tell what is shared may have taken calls in them. */
static void undo_survey(struct ckpt_dump *d)
{
	ckpt_survey_leave(d);
	ckpt_survey_free(d);
}

/* What processes are made of; their files of /proc can all be read now. */
static int memory(struct ckpt_dump *d, struct err *e)
{
	int r;

	ckpt_ahead_begin_last(d->options.ahead);
	r = ckpt_survey_memory(d, ckpt_openfiles_read, e);
	return r < 0 ? r : ckpt_nested_survey(d, e);
}

static void undo_memory(struct ckpt_dump *d)
{
	struct err ignored = {0};

	ckpt_ahead_end_last(d->options.ahead, &ignored);
	ckpt_openfiles_forget(d);
	ckpt_fork_end(d);
	ckpt_survey_leave(d);
}

/* From here on nothing happens to its connections. */
static int network(struct ckpt_dump *d, struct err *e)
{
	int r = 0;

	if (!d->options.hold)
		return 0;
	if (d->sending)
		tcp_drain(d->diag, d->sending, TCP_DRAIN_NS);
	if (!d->hold_said)
		r = say_hold(d, e);
	return r < 0 ? r : await_held(d, e);
}

static void undo_network(struct ckpt_dump *d)
{
	if (d->options.hold)
		pass(d);
}

/*
 * Connections rest now, and are listed meanwhile.  A failure is found again by who needs the list.
 */
static int files(struct ckpt_dump *d, struct err *e)
{
	bool wanted = d->options.hold || d->has_tcp;
	struct tcp_list *list = wanted ? tcp_list_begin(d->world, d->diag) : NULL;
	int r = ckpt_openfiles_survey(d, e);

	d->tcp = tcp_list_end(list);
	return r;
}

static void undo_files(struct ckpt_dump *d)
{
	ckpt_openfiles_free(d);
	free(take_ptr(d->tcp));
}

static int check_one(struct ckpt_dump *d, const struct ckpt_kind *k, union ckpt_subject s,
	uint64_t id, void *ctx, struct err *e)
{
	return k->check ? k->check(d, s, e) : 0;
}

static int plan(struct ckpt_dump *d, struct err *e)
{
	int r = ckpt_openfiles_claim(d, e);

	if (r == 0)
		r = ckpt_program_take_up(d, e);
	if (r == 0)
		r = ckpt_layout_check(d, e);
	if (r == 0)
		r = ckpt_openfiles_gather(d, e);
	if (r == 0)
		r = tcp_check_closed(d, e);
	if (r == 0)
		r = ckpt_tree_check(d, e);
	if (r == 0)
		r = each_subject(d, check_one, NULL, e);
	if (r == 0)
		r = ckpt_ahead_end_last(d->options.ahead, e);
	return r;
}

static void undo_plan(struct ckpt_dump *d)
{
	ckpt_answers_free(d);
	for (uint32_t i = 0; i < PROTO_KIND_MAX; i++) {
		const struct ckpt_kind *k = ckpt_kind_by_number(i);
		void (*forget)(void *) = k && k->forget ? k->forget : free;

		if (d->kind_state[i])
			forget(d->kind_state[i]);
		d->kind_state[i] = NULL;
	}
}

static const struct stage {
	const char *name;
	int (*run)(struct ckpt_dump *d, struct err *e);
	void (*undo)(struct ckpt_dump *d);
	enum fault_point fault;
} stages[] = {
	{"quiesce", quiesce, undo_quiesce, FAULT_FREEZE_QUIESCE},
	{"survey", survey, undo_survey, FAULT_FREEZE_SURVEY},
	{"memory", memory, undo_memory, FAULT_FREEZE_MEMORY},
	{"network", network, undo_network, FAULT_FREEZE_NETWORK},
	{"files", files, undo_files, FAULT_FREEZE_FILES},
	{"plan", plan, undo_plan, FAULT_FREEZE_PLAN},
};

#define VISIT_STAGES 2 /* who is there */

static void undo(struct ckpt_dump *d, size_t n)
{
	while (n > 0)
		stages[--n].undo(d);
}

void ckpt_report_stage(struct ckpt_report *r, const char *name, uint64_t since)
{
	if (r->n_stages == CKPT_MAX_STAGES)
		return;
	r->stages[r->n_stages].name = name;
	r->stages[r->n_stages++].ns = io_now_ns() - since;
}

static void note_stage(struct ckpt_dump *d, const char *name, uint64_t since)
{
	ckpt_report_stage(&d->report, name, since);
}

static void free_room(void *room)
{
	if (room)
		munmap(room, ROOM);
}

static void free_dump(struct ckpt_dump *d)
{
	ckpt_find_forget(&d->found);
	ckpt_stash_free(d);
	ckpt_foreseen_free(d->spent_foreseen);
	ckpt_before_free(d->spent_before);
	ckpt_reserve_fini(&d->reserve);
	free_room(d->room);
	ckpt_answers_free(d);
	close_fd(d->host_proc);
	free(d);
}

static struct ckpt_dump *new_dump(
	const struct ckpt_world *w, const struct ckpt_dump_options *o, struct err *e)
{
	struct ckpt_dump *d = calloc(1, sizeof(*d));

	if (!d) {
		err_errno(e, -ENOMEM, "freeze");
		return NULL;
	}
	d->world = w;
	d->diag = -1;
	d->tracer = w->names ? 0 : gettid();
	d->options = *o;
	remote_pass_traced(w->names);
	d->host_proc = proc_open(e);
	d->level = proc_level(d->host_proc, w->names ? 0 : w->init_pid);
	if (d->host_proc < 0) {
		free_dump(d);
		return NULL;
	}
	return d;
}

/* What is found out and made while the session still runs. */
struct early {
	struct ckpt_foreseen *foreseen;
	struct buf found;
	struct ckpt_before *before;
	struct ckpt_reserve reserve;
	void *room;
	struct ckpt_answers *answers;
	int diag; /* ckpt_sock_diag_open */
	bool has_tcp;
	struct buf sending; /* these two: tcp_drain_look */
	bool hears;
};

/* The first @n stages. */
static int freeze_once(struct ckpt_dump **ret, const struct ckpt_world *w,
	const struct ckpt_dump_options *o, const struct early *early, size_t n, struct err *e)
{
	uint64_t begin = io_now_ns();
	struct ckpt_dump *d = new_dump(w, o, e);

	if (!d)
		return e->error;
	if (early) {
		d->foreseen = early->foreseen;
		d->before = early->before;
		d->diag = early->diag;
		d->has_tcp = early->has_tcp;
		d->sending = early->sending.len ? &early->sending : NULL;
		d->hears = early->hears;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t then = io_now_ns();
		int r = stages[i].run(d, e);

		note_stage(d, stages[i].name, then);
		if (r == 0)
			r = fault_at(stages[i].fault, e);
		if (r < 0) {
			undo(d, i + 1);
			free_dump(d);
			return r;
		}
	}
	d->report.total_ns = io_now_ns() - begin;
	*ret = d;
	return 0;
}

int ckpt_visit(const struct ckpt_world *w, const struct ckpt_dump_options *o,
	int (*see)(void *ctx, struct ckpt_dump *d, struct err *e), void *ctx, uint64_t *ret_ns,
	struct err *e)
{
	struct ckpt_dump *d;
	int r = freeze_once(&d, w, o, NULL, VISIT_STAGES, e);

	if (r < 0)
		return r;
	r = see(ctx, d, e);
	undo(d, VISIT_STAGES);
	*ret_ns = d->report.frozen_ns;
	free_dump(d);
	return r;
}

static void forget_early(struct early *a)
{
	ckpt_foreseen_free(a->foreseen);
	ckpt_find_forget(&a->found);
	ckpt_before_free(a->before);
	ckpt_reserve_fini(&a->reserve);
	free_room(a->room);
	ckpt_answers_drop(a->answers);
	close_fd(a->diag);
	buf_fini(&a->sending);
}

/*
 * What takes long and can be done while the session runs.  Children first: what is in memory when one
 * is made has to be looked at, page by page, before it can be written to again.
 */
static int look_ahead(const struct ckpt_world *w, const struct ckpt_dump_options *o,
	struct early *ret, struct err *e)
{
	struct ckpt_dump *d = new_dump(w, o, e);
	bool quiet;

	if (!d)
		return e->error;
	if (o->snapshot)
		ret->answers = ckpt_answers_ahead(w);
	ckpt_cpu_ahead();
	/* If not, whoever needs it says why. */
	ret->diag = ckpt_sock_diag_open(w, NULL);
	ret->foreseen = w->names ? NULL : ckpt_foreseen_look(d->host_proc, w->init_pid);
	quiet = ckpt_find_ahead(d, &ret->found);
	ret->before = o->snapshot ? ckpt_before_read(d, quiet) : NULL;
	if (o->snapshot) {
		ckpt_reserve_make(&ret->reserve,
			ckpt_before_unforked(ret->before) + ckpt_before_shared(ret->before));
		ret->room = ckpt_reserve_map(ROOM, ckpt_before_records(ret->before));
		/* where names are rewritten this process has other work, and goes on */
		if (!w->names)
			ckpt_reserve_heap(ckpt_before_heap(ret->before));
	}
	ret->has_tcp = tcp_list_pays(d->host_proc, w);
	/* one that runs on is not to stand still for it */
	if (o->hold && !o->snapshot)
		ret->hears = tcp_drain_look(ret->diag, &ret->sending);
	ckpt_foreseen_refresh(ret->foreseen);
	free_dump(d);
	return 0;
}

/*
 * What is in the way may be a matter of moments: an answer not fetched yet, a connection not
 * accepted yet.  The session runs a little, and it is tried again.  Who goes through a tree of
 * directories is given a part of that time to come to the end (ckpt/survey/walks.c).
 */
int ckpt_freeze(struct ckpt_dump **ret, const struct ckpt_world *w,
	const struct ckpt_dump_options *o, struct err *e)
{
	uint32_t patience = o->deadline_ms ? o->deadline_ms : DEFAULT_PATIENCE_MS;
	_cleanup_(forget_early) struct early early = {.diag = -1};
	uint64_t asked = io_now_ns();
	int r = look_ahead(w, o, &early, e);
	uint64_t begin = io_now_ns(), end = begin + patience * 1000000ULL,
		 walked = begin + patience * 1000000ULL / WALKS_PART,
		 read = begin + patience * 1000000ULL / UNREAD_PART;

	if (r < 0)
		return r;
	for (useconds_t nap = FIRST_NAP_US;; nap = MIN(2 * nap, (useconds_t)LONGEST_NAP_US)) {
		uint64_t then;

		r = freeze_once(ret, w, o, &early, ARRAY_SIZE(stages), e);
		then = io_now_ns() + nap * 1000ULL;
		if (r == 0 && (then > walked || !ckpt_walks(*ret)) &&
			(then > read || !ckpt_unread(*ret))) {
			(*ret)->found = early.found;
			(*ret)->foreseen = NULL;
			(*ret)->before = NULL;
			(*ret)->spent_foreseen = take_ptr(early.foreseen);
			(*ret)->spent_before = take_ptr(early.before);
			(*ret)->reserve = early.reserve;
			(*ret)->room = take_ptr(early.room);
			(*ret)->answers = take_ptr(early.answers);
			(*ret)->diag = -1;
			(*ret)->sending = NULL;
			early.found = BUF_INIT;
			early.reserve = (struct ckpt_reserve){0};
			note_stage(*ret, "ahead", io_now_ns() - (begin - asked));
			return 0;
		}
		if (r == 0)
			ckpt_thaw(take_ptr(*ret), e);
		else if (r != -EAGAIN || then > end)
			return r;
		else
			log_info("%s: trying again", e->msg);
		/* There may be answers in it that nobody has read. */
		early.diag = close_fd(early.diag);
		usleep(nap);
	}
}

void ckpt_let_go(struct ckpt_dump *d)
{
	ckpt_answers_free(d);
	for (size_t i = 0; i < d->n_files; i++)
		if (d->files[i]->kind && !d->files[i]->kind->leave)
			d->files[i]->fd = close_fd(d->files[i]->fd);
}

void ckpt_leave(struct ckpt_dump *d)
{
	/* with the session's own network they are nobody's hindrance, and it is not waited for them */
	if (d->world->vnet)
		return;
	for (size_t i = 0; i < d->n_files; i++)
		if (d->files[i]->kind && d->files[i]->kind->leave)
			d->files[i]->kind->leave(d, d->files[i]);
	ckpt_openfiles_free(d);
}

int ckpt_thaw(struct ckpt_dump *d, struct err *e)
{
	if (!d)
		return 0;
	undo(d, ARRAY_SIZE(stages));
	free_dump(d);
	return 0;
}

const struct ckpt_report *ckpt_dump_report(struct ckpt_dump *d)
{
	if (d->frozen)
		d->report.frozen_ns = io_now_ns() - ckpt_frozen_since(d->frozen);
	return &d->report;
}

/* ---- writing ------------------------------------------------------------------------------ */

static int list_item(struct ckpt_dump *d, const struct ckpt_kind *k, union ckpt_subject s,
	uint64_t id, void *ctx, struct err *e)
{
	struct ckpt_item item = {.kind = k, .s = s, .id = id};

	buf_put(ctx, &item, sizeof(item));
	return buf_error(ctx) < 0 ? err_errno(e, -ENOMEM, "write") : 0;
}

static void free_items(struct buf *list)
{
	struct ckpt_item *items = (struct ckpt_item *)list->data;

	for (size_t i = 0; i < list->len / sizeof(*items); i++)
		buf_fini(&items[i].body);
	buf_fini(list);
}

enum part { REST = 1, MEMORY = 2 };

static int write_data(struct ckpt_dump *d, const struct buf *list, unsigned parts, struct err *e)
{
	struct ckpt_item *items = (struct ckpt_item *)list->data;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < list->len / sizeof(*items); i++) {
		enum part part = items[i].kind->number == PROTO_KIND_MM ? MEMORY : REST;

		if (items[i].data && (parts & part))
			r = ckpt_item_data(d, &items[i], e);
	}
	return MIN(r, 0);
}

void ckpt_meanwhile(const struct ckpt_dump_options *o, void (*work)(void *arg), void *arg)
{
	if (o->meanwhile)
		o->meanwhile(o->meanwhile_ctx, work, arg);
	else
		work(arg);
}

struct copies {
	struct ckpt_dump *d;
	const struct buf *list;
	struct err *e;
	int r;
};

static void write_copies(void *arg)
{
	struct copies *c = arg;

	c->r = proto_writer_take_up(c->d->out, c->e);
	if (c->r == 0)
		c->r = ckpt_stash_write(c->d, c->e);
	if (c->r == 0)
		c->r = ckpt_space_scan_copies(c->d, c->e);
	if (c->r == 0)
		c->r = write_data(c->d, c->list, MEMORY, c->e);
	if (c->r == 0)
		c->r = ckpt_before_check_copies(c->d, c->e);
}

/* The session runs on as soon as there is a copy of its memory to be written at leisure. */
static int write_data_of_copies(struct ckpt_dump *d, const struct buf *list, struct err *e)
{
	uint64_t then = io_now_ns();
	struct copies c = {.d = d, .list = list, .e = e};
	int r = write_data(d, list, REST, e);

	if (r == 0)
		r = ckpt_fork_rest(d, e);
	note_stage(d, "copy", then);
	if (r == 0)
		r = fault_at(FAULT_WRITE_DATA, e);
	if (r < 0)
		return r;
	/* with our duplicates open, readers of pipes would not see their end */
	ckpt_openfiles_close(d);
	ckpt_survey_leave(d);
	undo_quiesce(d);
	if (d->options.thawed)
		d->options.thawed(d->options.thawed_ctx);
	ckpt_openfiles_free(d);
	then = io_now_ns();
	ckpt_meanwhile(&d->options, write_copies, &c);
	ckpt_fork_end(d);
	note_stage(d, "data", then);
	return c.r;
}

static int write_all_data(struct ckpt_dump *d, const struct buf *list, struct err *e)
{
	uint64_t then = io_now_ns();
	int r;

	if (d->options.snapshot)
		return write_data_of_copies(d, list, e);
	r = write_data(d, list, REST | MEMORY, e);
	note_stage(d, "data", then);
	return r < 0 ? r : fault_at(FAULT_WRITE_DATA, e);
}

void *ckpt_dump_room(struct ckpt_dump *d, size_t *ret_size)
{
	*ret_size = ROOM;
	return take_ptr(d->room);
}

void ckpt_dump_set_base(struct ckpt_dump *d, struct ckpt_base *base)
{
	d->options.base = base;
}

void ckpt_dump_set_outside(struct ckpt_dump *d, enum ckpt_outside outside)
{
	d->options.outside = outside;
}

int ckpt_write(struct ckpt_dump *d, struct proto_writer *out, struct err *e)
{
	_cleanup_(free_items) struct buf items = BUF_INIT;
	uint64_t begin = io_now_ns();
	int r;

	d->out = out;
	r = ckpt_answers_begin(d, e);
	if (r == 0)
		r = each_subject(d, list_item, &items, e);
	if (r == 0)
		r = ckpt_record_all(d, (struct ckpt_item *)items.data,
			items.len / sizeof(struct ckpt_item), e);
	note_stage(d, "records", begin);
	if (r == 0)
		r = fault_at(FAULT_WRITE_RECORDS, e);
	if (r == 0)
		r = write_all_data(d, &items, e);
	d->out = NULL;
	d->report.total_ns += io_now_ns() - begin;
	return r;
}

int ckpt_dump_data(struct ckpt_dump *d, const struct ckpt_kind *kind, uint64_t subject,
	uint64_t offset, const void *data, size_t len, struct err *e)
{
	return proto_write_data(d->out, kind->number, subject, offset, data, len, e);
}

int ckpt_pack(const struct ProtobufCMessage *m, struct buf *body, struct err *e)
{
	size_t len = protobuf_c_message_get_packed_size(m);
	uint8_t *p = buf_reserve(body, len + 1);

	if (!p)
		return err_errno(e, -ENOMEM, "pack a record");
	body->len += protobuf_c_message_pack(m, p);
	return 0;
}
