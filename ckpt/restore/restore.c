// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * restore - rebuilds a session from its image: one table of stages, walked once (ckpt/build.h).
 *
 * Whatever fails, everything made is killed and forgotten.  Should the builder itself die, the
 * kernel does the same: all tasks are traced with PTRACE_O_EXITKILL until the release.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/code.h"
#include "ckpt/filters.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/memory/fillers.h"
#include "ckpt/memory/memory.h"
#include "ckpt/nested/build.h"
#include "ckpt/nested/help.h"
#include "ckpt/remote/trace.h"
#include "ckpt/restore/grow.h"
#include "ckpt/restore/join.h"
#include "ckpt/restore/records.h"
#include "ckpt/said.h"
#include "proto/tasks.pb-c.h"

#define WAIT_NS	     (10 * 1000000000ULL)
#define UNDO_WAIT_NS (5 * 1000000000ULL)
#define MANY	     32 /* files from which on threads are worth it */

/*
 * Where stops of tasks are most of the work, the builder and the tasks stay on one CPU: waking
 * another costs several times what the calls inside take.  The first task takes this over from the
 * builder when it is seized (ckpt/restore/grow.c), all others inherit it.
 */
static void stay_on_one_cpu(struct ckpt_build *b)
{
	cpu_set_t one;

	if (b->cpu < 0) {
		b->cpu = sched_getcpu();
		if (sched_getaffinity(0, sizeof(b->cpus), &b->cpus) < 0 || b->cpu >= CPU_SETSIZE)
			b->cpu = -1;
	}
	if (b->cpu < 0)
		return;
	CPU_ZERO(&one);
	CPU_SET(b->cpu, &one);
	b->one_cpu = sched_setaffinity(0, sizeof(one), &one) == 0;
}

static void use_all_cpus(struct ckpt_build *b)
{
	if (b->one_cpu)
		sched_setaffinity(0, sizeof(b->cpus), &b->cpus);
	b->one_cpu = false;
}

static void give_cpus_back(struct ckpt_build *b)
{
	for (size_t i = 0; i < b->n_procs; i++)
		for (size_t k = 0; k < b->procs[i].n_threads; k++) {
			const struct ckpt_build_thread *t = &b->procs[i].threads[k];

			if (sched_setaffinity(
				    t->tid, sizeof(b->cpus), t->cpus ? t->cpus : &b->cpus) < 0)
				log_info("thread %d may use other CPUs than before", t->vtid);
		}
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Of a kind that makes them with a crew. */
static bool has_many(const struct ckpt_build *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n_records; i++)
		n += b->records[i].kind->many;
	return n >= MANY;
}

static int stage_world(struct ckpt_build *b, struct err *e)
{
	if (ckpt_nested_admit(b, e) < 0)
		return e->error;
	b->self_pidfd = sys_pidfd_open(getpid(), 0);
	if (b->self_pidfd < 0)
		return err_errno(e, -errno, "pidfd_open");
	if (b->options.left || b->options.arrived)
		b->fillers = ckpt_fillers_new();
	b->crew = has_many(b) ? par_crew_new() : NULL;
	return ckpt_join(b, e);
}

static int stage_tasks(struct ckpt_build *b, struct err *e)
{
	uint64_t room = b->options.mapped ? b->options.mapped->room : 0;
	_cleanup_buf_ struct buf ranges = BUF_INIT;
	int r;

	if (!b->n_procs)
		return 0;
	r = ckpt_layout_read(b, &ranges, e);
	if (r == 0 && b->i386)
		r = ckpt_code_host(e);
	if (r < 0)
		return r;
	/* Below 4 GiB there is no room for that: nothing is mapped then (ckpt_mapped_process). */
	if (b->i386)
		room = 0;
	r = ckpt_layout_free(b, &ranges, ALIGN_UP(REMOTE_AREA_SIZE + room, PAGE_SIZE), &b->area, e);
	b->spare = b->area + REMOTE_AREA_SIZE;
	b->spare_end = b->spare + room;
	if (r == 0)
		r = ckpt_grow(b, e);
	for (size_t i = 0; i < b->n_procs; i++)
		b->report.tasks += (uint32_t)b->procs[i].n_threads;
	b->report.processes = (uint32_t)b->n_procs;
	return r;
}

static int create_one(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	struct ckpt_build_file *f;
	int fd = -1, rc;

	if (!r->kind->create)
		return 0;
	if (r->kind->scope != CKPT_FILE)
		return r->kind->create(b, r, NULL, e);
	rc = r->kind->create(b, r, &fd, e);
	f = ckpt_build_file(b, (uint32_t)r->subject);
	if (rc >= 0 && f->fd < 0)
		f->fd = fd;
	return rc;
}

/*
 * A frame's data, which may have been left in the file.  That of memory is taken from there
 * also where it is short and has been read, for then it stays.
 */
static int find_left(struct ckpt_build *b, struct proto_frame *f, struct err *e)
{
	if (f->data && (!b->options.left || f->kind != PROTO_KIND_MM || f->file_offset < 0))
		return 0;
	if (!b->options.left || (uint64_t)f->file_offset + f->len > b->options.left_len)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the image has become shorter");
	f->data = b->options.left + f->file_offset;
	return 0;
}

static int put_data(
	struct ckpt_build *b, struct ckpt_record *rec, struct proto_frame *f, struct err *e)
{
	int r = f->data ? 0 : ckpt_mm_left(b, rec, f, e);

	if (r == 0)
		r = find_left(b, f, e);
	if (r == 0)
		r = rec->kind->data(b, rec, f->offset, f->data, f->len, e);
	return r < 0 ? ckpt_records_wrap(b, rec, e) : 0;
}

/* The record of a frame of data, or NULL. */
static struct ckpt_record *data_record(struct ckpt_build *b, const struct proto_frame *f)
{
	struct ckpt_record *rec =
		f->type == PROTO_DATA ? ckpt_build_record(b, f->kind, f->subject) : NULL;

	return rec && rec->kind->data ? rec : NULL;
}

/*
 * While the rest is being made, data of what has been made, records up to @made: as long as
 * others copy it meanwhile.  Data asks for no more than its own record's create.
 */
static int data_ahead(struct ckpt_build *b, const struct ckpt_record *made, struct err *e)
{
	struct proto_frame f;

	/* Then something else must come first (stage_data). */
	if (b->options.mapped || b->options.arrived)
		return 0;
	while (ckpt_fillers_room(b->fillers)) {
		struct ckpt_record *rec;

		if (proto_read(b->in, &f, e) < 0)
			return e->error;
		rec = data_record(b, &f);
		if (!rec || rec > made) {
			proto_unread(b->in);
			return 0;
		}
		if (put_data(b, rec, &f, e) < 0)
			return e->error;
	}
	return 0;
}

static int stage_create(struct ckpt_build *b, struct err *e)
{
	for (size_t i = 0; i < b->n_records; i++) {
		struct ckpt_record *r = &b->records[i];

		if (create_one(b, r, e) < 0 || fault_at(FAULT_RESTORE_RECORD, e) < 0)
			return ckpt_records_wrap(b, r, e);
		if (r->kind == &ckpt_kind_mm && data_ahead(b, r, e) < 0)
			return e->error;
	}
	return 0;
}

/* The bulk data, up to the end of the image, which proves that all was genuine. */
static int stage_data(struct ckpt_build *b, struct err *e)
{
	struct proto_frame f;
	int r;

	for (size_t i = 0; i < b->n_records; i++)
		if (ckpt_mm_fill_kept(b, &b->records[i], e) < 0)
			return ckpt_records_wrap(b, &b->records[i], e);
	/* what comes now is put in place of some of it */
	if (ckpt_mapped_flush(b, e) < 0)
		return e->error;
	for (;;) {
		struct ckpt_record *rec;

		r = proto_read(b->in, &f, e);
		if (r == 0 && f.type == PROTO_END)
			r = ckpt_fillers_wait(b->fillers, e);
		if (r == 0 && f.type == PROTO_END)
			r = ckpt_mapped_flush(b, e);
		if (r < 0 || f.type == PROTO_END)
			break;
		rec = data_record(b, &f);
		if (!rec)
			return err_set(e, ERR_IMAGE, -EINVAL,
				"the image has something of kind %u where it should not be",
				f.kind);
		if (put_data(b, rec, &f, e) < 0)
			return e->error;
	}
	ckpt_fillers_free(take_ptr(b->fillers));
	return r;
}

static int stage_link(struct ckpt_build *b, struct err *e)
{
	for (size_t i = 0; i < b->n_records; i++) {
		struct ckpt_record *r = &b->records[i];

		if (r->kind->link && r->kind->link(b, r, e) < 0)
			return ckpt_records_wrap(b, r, e);
		if (fault_at(FAULT_RESTORE_RECORD, e) < 0)
			return ckpt_records_wrap(b, r, e);
	}
	return 0;
}

/* ---- finish ---------------------------------------------------------------------------------- */

enum pass { PASS_OBJECTS, PASS_STOPPED, PASS_RUNNING, PASS_LAST };

static enum pass pass_of(struct ckpt_build *b, const struct ckpt_record *r)
{
	const struct ckpt_build_proc *p = NULL;
	const struct ckpt_build_thread *t;

	if (r->kind->last)
		return PASS_LAST;
	if (r->kind->scope == CKPT_PROC) {
		p = ckpt_build_proc(b, (pid_t)r->subject);
	} else if (r->kind->scope == CKPT_THREAD) {
		t = ckpt_build_thread(b, (pid_t)r->subject);
		p = t ? t->proc : NULL;
	} else {
		return PASS_OBJECTS;
	}
	return p && p->stopped ? PASS_STOPPED : PASS_RUNNING;
}

static int finish_pass(struct ckpt_build *b, enum pass pass, struct err *e)
{
	for (size_t i = 0; i < b->n_records; i++) {
		struct ckpt_record *r = &b->records[i];

		if (r->kind->finish && pass_of(b, r) == pass && r->kind->finish(b, r, e) < 0)
			return ckpt_records_wrap(b, r, e);
	}
	return 0;
}

/* What the rebuilding itself has left pending: the ends of zombies, the stops of children. */
static int drain_pass(struct ckpt_build *b, bool stopped, struct err *e)
{
	for (size_t i = 0; i < b->n_procs; i++) {
		const struct ckpt_build_proc *p = &b->procs[i];
		int r;

		if (p->zombie || p->stopped != stopped)
			continue;
		r = ckpt_pending_drain(p->threads[0].remote, e);
		if (r < 0)
			return err_wrap(e, "task %d", p->vpid);
	}
	return 0;
}

/* Loads the registers: from here on the tasks are their own. */
static int close_pass(struct ckpt_build *b, bool stopped, struct err *e)
{
	if (ckpt_filters_restore(b, stopped, e) < 0)
		return e->error;
	for (size_t i = 0; i < b->n_procs; i++) {
		struct ckpt_build_proc *p = &b->procs[i];

		if (p->zombie || p->stopped != stopped)
			continue;
		for (size_t k = 0; k < p->n_threads; k++) {
			int r = remote_close(take_ptr(p->threads[k].remote), e);

			if (r < 0)
				return err_wrap(e, "task %d", p->vpid);
		}
	}
	return 0;
}

/* One thread of a process with a stop signal goes on until it has stopped again.  Whatever else is
 * pending for it stays so: nothing but SIGSTOP comes through a full mask. */
static int into_stop(struct ckpt_build *b, pid_t tid, struct err *e)
{
	uint64_t mask, deadline = io_now_ns() + WAIT_NS;
	int status, deliver = 0, r = trace_get_mask(tid, &mask);

	if (r == 0)
		r = trace_set_mask(tid, ~0ULL);
	while (r == 0) {
		if (ptrace(PTRACE_CONT, tid, 0, deliver) < 0)
			return err_errno(e, -errno, "stop");
		r = trace_wait(b->host_proc, tid, deadline, &status);
		if (r == 0 && trace_event(status) == PTRACE_EVENT_STOP &&
			WSTOPSIG(status) == SIGSTOP) {
			r = trace_set_mask(tid, mask);
			break;
		}
		deliver = r == 0 && trace_event(status) == 0 ? WSTOPSIG(status) : 0;
	}
	return r < 0 ? err_errno(e, r, "stop") : 0;
}

/*
 * Puts a process into the state of being stopped by a signal, with all its threads, none of which
 * executes an instruction.  It is always SIGSTOP, which can't be blocked or handled.  If the parent
 * had been told, it is told again now and forgets it.
 */
static int stop_process(struct ckpt_build *b, struct ckpt_build_proc *p, struct err *e)
{
	Pb__Task *m = pb__task__unpack(NULL, p->record->len, p->record->body);
	struct ckpt_build_proc *parent = m ? ckpt_build_proc(b, m->ppid) : NULL;
	bool seen = m && !m->stop_unseen;
	int r = 0;

	pb__task__free_unpacked(m, NULL);
	if (kill(p->pid, SIGSTOP) < 0)
		r = err_errno(e, -errno, "stop");
	for (size_t i = 0; r == 0 && i < p->n_threads; i++)
		r = into_stop(b, p->threads[i].tid, e);
	if (r == 0 && seen && parent && !parent->zombie && parent->threads[0].remote) {
		long v;

		r = remote_call(parent->threads[0].remote, &v, e, SYS_wait4,
			(uint64_t)ckpt_nested_said(b, parent, p->vpid), 0, WUNTRACED | WNOHANG | __WALL, 0,
			0, 0);
	}
	return r < 0 ? err_wrap(e, "task %d", p->vpid) : 0;
}

/*
 * What a process was continued from comes to pass for it once more, and it is continued; it tells
 * its parent on its way to the next call.  What both are sent for that is taken from their queues
 * with the rest.
 */
static int continue_process(struct ckpt_build *b, struct ckpt_build_proc *p, struct err *e)
{
	long v;
	int r = kill(p->pid, SIGSTOP) < 0 ? err_errno(e, -errno, "stop") : 0;

	if (r == 0)
		r = into_stop(b, p->threads[0].tid, e);
	if (r == 0 && kill(p->pid, SIGCONT) < 0)
		r = err_errno(e, -errno, "continue");
	if (r == 0)
		r = remote_call(p->threads[0].remote, &v, e, SYS_getpid, 0, 0, 0, 0, 0, 0);
	return r < 0 ? err_wrap(e, "task %d", p->vpid) : 0;
}

static int continue_all(struct ckpt_build *b, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < b->n_procs; i++)
		if (b->procs[i].continued)
			r = continue_process(b, &b->procs[i], e);
	return r;
}

static int finish_stopped(struct ckpt_build *b, struct err *e)
{
	int r = drain_pass(b, true, e);

	if (r == 0)
		r = finish_pass(b, PASS_STOPPED, e);
	if (r == 0)
		r = close_pass(b, true, e);
	for (size_t i = 0; r == 0 && i < b->n_procs; i++)
		if (b->procs[i].stopped)
			r = stop_process(b, &b->procs[i], e);
	return r;
}

static int stage_finish(struct ckpt_build *b, struct err *e)
{
	int r = finish_pass(b, PASS_OBJECTS, e);

	/* Before signals of dying parents are asked for. */
	if (r == 0)
		r = ckpt_grow_heads(b, e);
	if (r == 0)
		r = continue_all(b, e);
	if (r == 0)
		r = finish_stopped(b, e);
	if (r == 0)
		r = drain_pass(b, false, e);
	if (r == 0)
		r = finish_pass(b, PASS_RUNNING, e);
	if (r == 0)
		r = close_pass(b, false, e);
	if (r == 0)
		r = finish_pass(b, PASS_LAST, e);
	if (r == 0)
		give_cpus_back(b);
	ckpt_helpers_end(b);
	par_crew_free(take_ptr(b->crew));
	return r;
}

static const struct stage {
	const char *name;
	int (*run)(struct ckpt_build *b, struct err *e);
	bool one_cpu;
	enum fault_point fault;
} stages[] = {
	{"read", ckpt_records_read, false, FAULT_RESTORE_READ},
	{"world", stage_world, false, FAULT_RESTORE_WORLD},
	{"tasks", stage_tasks, true, FAULT_RESTORE_TASKS},
	{"create", stage_create, true, FAULT_RESTORE_CREATE},
	/* memory is filled by several threads */
	{"data", stage_data, false, FAULT_RESTORE_DATA},
	{"link", stage_link, true, FAULT_RESTORE_LINK},
	{"finish", stage_finish, true, FAULT_RESTORE_FINISH},
};

#define WITHOUT_WORLD 1 /* of them */
static_assert(ARRAY_SIZE(stages) <= CKPT_MAX_STAGES, "report");

/* The builder changes its monotonic clock when it joins the session's time namespace. */
static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ULL + (uint64_t)ts.tv_nsec;
}

/* ---- the room's interface -------------------------------------------------------------------- */

static void build_free(struct ckpt_build *b)
{
	if (!b)
		return;
	ckpt_helpers_end(b);
	ckpt_fillers_free(b->fillers);
	par_crew_free(b->crew);
	for (size_t i = 0; i < b->n_procs; i++) {
		for (size_t k = 0; k < b->procs[i].n_threads; k++) {
			remote_forget(b->procs[i].threads[k].remote);
			free(b->procs[i].threads[k].cpus);
		}
		free(b->procs[i].threads);
		free(b->procs[i].inner);
	}
	for (size_t i = 0; i < b->n_files; i++)
		close_fd(b->files[i].fd);
	for (size_t i = 0; i < b->n_records; i++) {
		free((void *)b->records[i].body);
		free(b->records[i].state);
	}
	for (size_t i = 0; i < PROTO_KIND_MAX; i++)
		free(b->kind_state[i]);
	buf_fini(&b->pieces);
	for (size_t i = 0; i < b->lent.len / sizeof(int); i++)
		close(((const int *)b->lent.data)[i]);
	buf_fini(&b->lent);
	close_fd(b->host_proc);
	close_fd(b->self_pidfd);
	free(b->procs);
	free(b->files);
	free(b->records);
	free(b->made);
	free(b->nested);
	free(b);
}

/* On failure @b is undone. */
static int run_stages(struct ckpt_build *b, size_t from, size_t to, struct err *e)
{
	for (size_t i = from; i < to; i++) {
		uint64_t then = now_ns();
		int r;

		if (stages[i].one_cpu)
			stay_on_one_cpu(b);
		r = stages[i].run(b, e);
		use_all_cpus(b);
		if (r == 0 && b->world)
			r = fault_at(stages[i].fault, e);
		b->report.stages[i].name = stages[i].name;
		b->report.stages[i].ns = now_ns() - then;
		b->report.n_stages = i + 1;
		b->report.total_ns += now_ns() - then;
		log_debug("%s: %.1f ms", stages[i].name, (double)b->report.stages[i].ns / 1e6);
		if (r < 0) {
			log_info("restore failed in stage %s", stages[i].name);
			ckpt_restore_undo(b);
			return r;
		}
	}
	return 0;
}

int ckpt_restore_begin(struct ckpt_build **ret, struct proto_reader *in,
	const struct ckpt_restore_options *o, struct err *e)
{
	struct ckpt_build *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return err_errno(e, -ENOMEM, "restore");
	b->options = *o;
	b->in = in;
	b->self_pidfd = b->cpu = -1;
	b->host_proc = proc_open(e);
	if (b->host_proc < 0) {
		build_free(b);
		return e->error;
	}
	r = run_stages(b, 0, WITHOUT_WORLD, e);
	if (r == 0)
		*ret = b;
	return r;
}

int ckpt_restore(struct ckpt_build *b, const struct ckpt_world *w, struct err *e)
{
	b->world = w;
	remote_pass_traced(w->names);
	if (fault_at(stages[0].fault, e) < 0) {
		ckpt_restore_undo(b);
		return e->error;
	}
	return run_stages(b, WITHOUT_WORLD, ARRAY_SIZE(stages), e);
}

/* From now on the builder's death lets the tasks run, too: a part of them may already. */
static void no_more_exitkill(struct ckpt_build *b)
{
	for (size_t i = 0; i < b->n_procs; i++)
		for (size_t k = 0; k < b->procs[i].n_threads; k++)
			ptrace(PTRACE_SETOPTIONS, b->procs[i].threads[k].tid, 0, TRACE_OPTIONS);
}

/* They belong to their tracer, who goes on tracing them. */
static void hand_over(struct ckpt_build *b)
{
	const struct ckpt_names *names = b->world->names;

	for (size_t i = 0; i < b->n_procs; i++) {
		const struct ckpt_build_proc *p = &b->procs[i];

		if (p->stop_pending && !p->stopped)
			kill(p->pid, SIGSTOP);
		for (size_t k = 0; k < p->n_threads && p->stopped; k++)
			names->stopped(names->ctx, p->threads[k].tid, SIGSTOP);
	}
	names->release(names->ctx);
	build_free(b);
}

int ckpt_restore_release(struct ckpt_build *b, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < b->n_records; i++)
		if (b->records[i].kind && b->records[i].kind->release)
			b->records[i].kind->release(b, &b->records[i]);
	if (b->world->names) {
		if (b->options.going)
			*b->options.going = true;
		hand_over(b);
		return 0;
	}
	no_more_exitkill(b);
	if (b->options.going)
		*b->options.going = true;
	for (size_t i = 0; i < b->n_procs; i++) {
		const struct ckpt_build_proc *p = &b->procs[i];

		if (i == b->n_procs / 2)
			fault_at(FAULT_RELEASE_HALF, NULL);
		if (p->stop_pending && !p->stopped)
			kill(p->pid, SIGSTOP);
		/*
		 * Those that run already may have killed it, or have called exec in another thread
		 * of it.
		 */
		for (size_t k = 0; k < p->n_threads; k++)
			if (ptrace(PTRACE_DETACH, p->threads[k].tid, 0, 0) < 0 && errno != ESRCH &&
				r == 0)
				r = err_errno(e, -errno, "cannot let task %d go", p->vpid);
	}
	build_free(b);
	return r;
}

/* The rewriter of a session has others to trace: pid 1. */
static bool all_gone(const struct ckpt_build *b)
{
	for (size_t i = 0; i < b->n_made; i++)
		if (waitid(P_PID, (id_t)b->made[i], &(siginfo_t){0},
			    WEXITED | WNOHANG | WNOWAIT | __WALL) == 0 ||
			errno != ECHILD)
			return false;
	return true;
}

void ckpt_restore_undo(struct ckpt_build *b)
{
	uint64_t deadline = io_now_ns() + UNDO_WAIT_NS;

	if (!b)
		return;
	ckpt_fillers_free(take_ptr(b->fillers));
	/* A number of one that has ended may be another's by now: only what we trace. */
	for (size_t i = 0; i < b->n_made; i++)
		trace_kill(b->made[i]);
	/* Traced tasks are ours to reap before their parents can. */
	while (b->n_made && !all_gone(b) && io_now_ns() < deadline) {
		pid_t pid = waitpid(-1, NULL, __WALL | WNOHANG);

		if (pid < 0 && errno != EINTR)
			break;
		if (pid == 0)
			usleep(500);
	}
	build_free(b);
}

void ckpt_build_note(struct ckpt_build *b, const char *fmt, ...)
{
	char text[sizeof(b->note)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_warn("%s", text);
	/* Of many the first will do: the log has them all. */
	if (!b->report.note)
		memcpy(b->note, text, sizeof(b->note));
	b->report.note = b->note;
}

const struct ckpt_report *ckpt_build_report(const struct ckpt_build *b)
{
	return &b->report;
}
