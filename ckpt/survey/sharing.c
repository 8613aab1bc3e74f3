// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which processes share memory, descriptor tables, directories and handlers.
 *
 * Threads share all of it with their process.  One that has parted from that (unshare(2), clone(2))
 * is refused: after a resume it would share it.
 *
 * Sharing is found by sorting: kcmp(2) orders kernel objects as well as telling them apart, so n
 * processes need n log n calls rather than n * n.
 *
 * Container engines refuse kcmp(2).  There whoever rewrites the session's names has seen all
 * births, and knows who may share something at all: most often nobody.  Among those it is tried.
 * Something that can be seen from outside is changed in one, with a mark of its own, looked for in
 * the others, and put back, while all stand still:
 *
 *      memory        a note in the pages that are lent to it
 *      descriptors   one more, behind all others
 *      directories   the umask, which goes with them
 *      handlers      that of the last signal; only those who share memory can share them
 *
 * So are the threads of a process in which one may have parted from the others.
 *
 * A tracer that dies in between leaves nothing: with it end all whose names it gives.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include "base/base.h"
#include "ckpt/lend.h"
#include "ckpt/survey/same.h"
#include "ckpt/survey/survey.h"
#include "ckpt/survey/take.h"

#define WORTH_THREADS 16 /* processes, to be compared by more than one thread */

static int compare_vpid(const void *a, const void *b)
{
	const struct ckpt_proc *x = *(struct ckpt_proc *const *)a;
	const struct ckpt_proc *y = *(struct ckpt_proc *const *)b;

	return (x->vpid > y->vpid) - (x->vpid < y->vpid);
}

/* ---- by kcmp -------------------------------------------------------------------------------- */

static const struct {
	enum sys_kcmp_type type;
	size_t offset; /* in struct ckpt_proc */
} shared[] = {
	{SYS_KCMP_VM, offsetof(struct ckpt_proc, mm)},
	{SYS_KCMP_FILES, offsetof(struct ckpt_proc, files)},
	{SYS_KCMP_FS, offsetof(struct ckpt_proc, fs)},
	{SYS_KCMP_SIGHAND, offsetof(struct ckpt_proc, sighand)},
};

static int order_by(const void *a, const void *b, void *type)
{
	const struct ckpt_proc *x = *(struct ckpt_proc *const *)a;
	const struct ckpt_proc *y = *(struct ckpt_proc *const *)b;

	switch (sys_kcmp(x->look, y->look, *(enum sys_kcmp_type *)type, 0, 0)) {
	case 0:
		return 0;
	case 1:
		return -1;
	case 2:
		return 1;
	default: /* can't be told: not shared */
		return compare_vpid(a, b);
	}
}

/* Sorted, equals stand together: each gets the lowest virtual pid among them. */
static void name_owners(struct ckpt_proc **list, size_t n, size_t k)
{
	for (size_t i = 0, end; i < n; i = end) {
		pid_t first = list[i]->vpid;

		for (end = i + 1;
			end < n && order_by(&list[i], &list[end], (void *)&shared[k].type) == 0;
			end++)
			first = MIN(first, list[end]->vpid);
		for (; i < end; i++)
			*(pid_t *)((char *)list[i] + shared[k].offset) = first;
	}
}

static int refuse_thread(
	const struct ckpt_proc *p, const struct ckpt_thread *t, const char *what, struct err *e)
{
	return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "task %d (%s): thread %d has %s of its own",
		p->vpid, p->status.comm, t->vtid, what);
}

static int refuse_parted(const struct ckpt_proc *p, struct err *e)
{
	static const struct {
		enum sys_kcmp_type type;
		const char *what;
	} own[] = {
		{SYS_KCMP_FILES, "descriptors"},
		{SYS_KCMP_FS, "a working directory"},
	};

	for (size_t i = 0; i < p->n_threads; i++)
		for (size_t k = 0; k < ARRAY_SIZE(own); k++) {
			const struct ckpt_thread *t = p->threads[i];

			if (t->tid != p->look && sys_kcmp(p->look, t->tid, own[k].type, 0, 0) > 0)
				return refuse_thread(p, t, own[k].what, e);
		}
	return 0;
}

/* By one of them; in a list of its own, as others are sorted at the same time. */
struct sorting {
	struct ckpt_proc **list;
	size_t n;
};

static int sort_by(void *ctx, size_t k, struct err *e)
{
	const struct sorting *s = ctx;
	_cleanup_free_ struct ckpt_proc **list = calloc(s->n + 1, sizeof(struct ckpt_proc *));

	if (!list)
		return err_errno(e, -ENOMEM, "survey");
	memcpy(list, s->list, s->n * sizeof(struct ckpt_proc *));
	if (s->n > 1)
		qsort_r(list, s->n, sizeof(*list), order_by, (void *)&shared[k].type);
	name_owners(list, s->n, k);
	return 0;
}

static int by_kcmp(struct ckpt_proc **list, size_t n, struct err *e)
{
	struct sorting s = {list, n};
	int r = 0;

	for (size_t i = 0; i < n; i++)
		if (refuse_parted(list[i], e) < 0)
			return e->error;
	if (n >= WORTH_THREADS)
		return par_each(ARRAY_SIZE(shared), sort_by, &s, e);
	for (size_t k = 0; k < ARRAY_SIZE(shared) && r == 0; k++)
		r = sort_by(&s, k, e);
	return r;
}

/* ---- marks ---------------------------------------------------------------------------------- */

/* One way of seeing that something is shared. */
struct trick {
	size_t offset; /* in struct ckpt_proc */
	int n_marks;   /* so many different ones can be made at a time */
	/* Of one thread, where threads may differ. */
	int (*see)(struct ckpt_dump *d, pid_t thread, long *ret, struct err *e);
	int (*look)(struct ckpt_dump *d, struct ckpt_proc *p, long *ret, struct err *e);
	/* @before: what was seen before any mark. */
	long (*mark)(long before, int k);
	int (*put)(
		struct ckpt_dump *d, struct ckpt_proc *p, long before, long value, struct err *e);
};

/* The umask is nine bits. */
static int see_umask(struct ckpt_dump *d, pid_t thread, long *ret, struct err *e)
{
	struct proc_status status;
	int r = proc_read_status(d->host_proc, thread, &status, e);

	*ret = (long)status.umask;
	return r;
}

static int look_at_umask(struct ckpt_dump *d, struct ckpt_proc *p, long *ret, struct err *e)
{
	return see_umask(d, p->look, ret, e);
}

#define UMASKS 512
static long mark_umask(long before, int k)
{
	return (before + 1 + k) % UMASKS;
}

static int put_umask(
	struct ckpt_dump *d, struct ckpt_proc *p, long before, long value, struct err *e)
{
	struct remote *r;
	int k = ckpt_proc_remote(p, &r, e);

	return k < 0 ? k : remote_must(r, NULL, e, SYS_umask, (uint64_t)value, 0, 0, 0, 0, 0);
}

/* The highest descriptor, -1 of none. */
static int see_table(struct ckpt_dump *d, pid_t thread, long *ret, struct err *e)
{
	_cleanup_free_ int *list = NULL;
	char path[32];
	size_t n;
	int r;

	snprintf(path, sizeof(path), "%d/fd", thread);
	r = proc_list_numbers(d->host_proc, path, &list, &n, e);
	*ret = -1;
	for (size_t i = 0; r == 0 && i < n; i++)
		*ret = MAX(*ret, (long)list[i]);
	return r;
}

static int look_at_table(struct ckpt_dump *d, struct ckpt_proc *p, long *ret, struct err *e)
{
	return see_table(d, p->look, ret, e);
}

/* What is lent to make it comes to stand before it. */
static long mark_table(long before, int k)
{
	return before + 2 + k;
}

/* Of a new object, so that nobody notices when it is closed. */
static int add_descriptor(const struct ckpt_dump *d, struct remote *r, long number, struct err *e)
{
	_cleanup_close_ int fd = eventfd(0, EFD_CLOEXEC);
	int lent = ckpt_lend_call(d->world->names, r, fd), made, k;
	const struct remote_arg dup[6] = {
		REMOTE_RESULT(lent), REMOTE_ARG(F_DUPFD_CLOEXEC), REMOTE_ARG(number)};
	const struct remote_arg alone[6] = {REMOTE_RESULT(lent)};
	struct rlimit limit;

	made = remote_add_args(r, SYS_fcntl, dup);
	remote_add_args(r, SYS_close, alone);
	k = ckpt_take_raise(remote_tid(r), &limit);
	if (k < 0)
		return err_errno(e, k, "limits of task %d", remote_tid(r));
	k = remote_run(r, false, e);
	ckpt_take_lower(remote_tid(r), &limit);
	if (k == 0 && remote_result(r, made) < 0)
		k = err_errno(
			e, (int)remote_result(r, made), "a descriptor for task %d", remote_tid(r));
	return k;
}

static int put_descriptor(
	struct ckpt_dump *d, struct ckpt_proc *p, long before, long value, struct err *e)
{
	struct remote *r;
	long now;
	int k = ckpt_proc_remote(p, &r, e);

	if (k == 0)
		k = look_at_table(d, p, &now, e);
	if (k < 0)
		return k;
	if (value != before)
		return add_descriptor(d, r, value, e);
	return now == before ? 0 : remote_must(r, NULL, e, SYS_close, (uint64_t)now, 0, 0, 0, 0, 0);
}

/* rt_sigaction(2) of the last signal. */
struct action {
	uint64_t handler, flags, restorer, mask;
};
#define LAST_SIGNAL (_NSIG - 1)

static int ask_action(struct remote *r, struct action *ret, struct err *e)
{
	uint64_t at;
	struct action *there = remote_data(r, sizeof(*there), &at);
	int k = there ? remote_must(r, NULL, e, SYS_rt_sigaction, LAST_SIGNAL, 0, at,
				sizeof(ret->mask), 0, 0)
		      : err_errno(e, -ENOSPC, "rt_sigaction");

	if (k == 0)
		*ret = *there;
	return k;
}

static int look_at_handler(struct ckpt_dump *d, struct ckpt_proc *p, long *ret, struct err *e)
{
	struct action action = {0};
	struct remote *r;
	int k = ckpt_proc_remote(p, &r, e);

	if (k == 0)
		k = ask_action(r, &action, e);
	*ret = (long)action.handler;
	return k;
}

/* Not SIG_IGN, which would take away what waits. */
static long mark_handler(long before, int k)
{
	return 4096 + k + (before >= 4096 && before <= 4096 + k);
}

static int put_handler(
	struct ckpt_dump *d, struct ckpt_proc *p, long before, long value, struct err *e)
{
	struct action action;
	struct remote *r;
	int k = ckpt_proc_remote(p, &r, e);

	if (k == 0)
		k = ask_action(r, &action, e);
	if (k < 0)
		return k;
	action.handler = (uint64_t)value;
	return remote_must(r, NULL, e, SYS_rt_sigaction, LAST_SIGNAL,
		remote_put(r, &action, sizeof(action)), 0, sizeof(action.mask), 0, 0);
}

static const struct trick umask_trick = {.offset = offsetof(struct ckpt_proc, fs),
	.n_marks = UMASKS - 1,
	.see = see_umask,
	.look = look_at_umask,
	.mark = mark_umask,
	.put = put_umask};
static const struct trick table_trick = {.offset = offsetof(struct ckpt_proc, files),
	.n_marks = 32,
	.see = see_table,
	.look = look_at_table,
	.mark = mark_table,
	.put = put_descriptor};
static const struct trick handler_trick = {.offset = offsetof(struct ckpt_proc, sighand),
	.n_marks = 4096,
	.look = look_at_handler,
	.mark = mark_handler,
	.put = put_handler};

/* ---- trying --------------------------------------------------------------------------------- */

/* A process in question. */
struct suspect {
	struct ckpt_proc *proc;
	long before;
	bool told, marked;
};

static pid_t *owner_of(const struct trick *t, struct ckpt_proc *p)
{
	return (pid_t *)((char *)p + t->offset);
}

/* The one whose mark number @k is. */
static const struct suspect *whose_mark(const struct suspect *v, size_t i, int k)
{
	for (size_t at = 0; at < i; at++)
		if (v[at].marked && k-- == 0)
			return &v[at];
	return NULL;
}

/* One of them, @n_marked before it have marks now that could be its own. */
static int suspect_one(struct ckpt_dump *d, const struct trick *t, struct suspect *v, size_t i,
	int *n_marked, struct err *e)
{
	struct suspect *s = &v[i];
	long now;
	int r = t->look(d, s->proc, &now, e);

	for (int k = 0; r == 0 && k < *n_marked && now != s->before; k++)
		if (t->mark(s->before, k) == now) {
			*owner_of(t, s->proc) = *owner_of(t, whose_mark(v, i, k)->proc);
			s->told = true;
		}
	if (r < 0 || s->told || *n_marked == t->n_marks)
		return r;
	s->told = s->marked = true; /* also when it fails: it may be half done */
	return t->put(d, s->proc, s->before, t->mark(s->before, (*n_marked)++), e);
}

/*
 * Marks as many as can be of those like the first that is not told yet.  Of equal kin in the same
 * state the first has the lowest number.
 */
static int one_round(
	struct ckpt_dump *d, const struct trick *t, struct suspect *v, size_t n, struct err *e)
{
	size_t first = 0;
	int n_marked = 0, r = 0;

	while (v[first].told)
		first++;
	for (size_t i = first; i < n && r == 0; i++)
		if (!v[i].told && v[i].before == v[first].before)
			r = suspect_one(d, t, v, i, &n_marked, e);
	for (size_t i = first; i < n; i++) {
		int x = 0;

		if (v[i].marked)
			x = t->put(d, v[i].proc, v[i].before, v[i].before, r < 0 ? NULL : e);
		v[i].marked = false;
		r = r < 0 ? r : x;
	}
	return r;
}

/* By one trick, of processes in order of their numbers. */
static int try_all(struct ckpt_dump *d, const struct trick *t, struct ckpt_proc **list, size_t n,
	struct err *e)
{
	_cleanup_free_ struct suspect *v = calloc(n, sizeof(*v));
	size_t left = n;
	int r = v ? 0 : err_errno(e, -ENOMEM, "survey");

	for (size_t i = 0; i < n && r == 0; i++) {
		v[i].proc = list[i];
		r = t->look(d, list[i], &v[i].before, e);
	}
	while (r == 0 && left) {
		r = one_round(d, t, v, n, e);
		left = 0;
		for (size_t i = 0; i < n; i++)
			left += !v[i].told;
	}
	return r;
}

/* The note is at the same place in all that share the pages. */
static int try_memory(struct ckpt_dump *d, struct ckpt_proc **list, size_t n, struct err *e)
{
	uint64_t note = 0;
	int r = 0;

	if (getrandom(&note, sizeof(note), 0) != sizeof(note))
		return err_errno(e, -errno, "getrandom");
	for (size_t i = 0; i < n && r == 0; i++)
		r = ckpt_survey_open_up(d, list[i], e);
	for (size_t i = 0; i < n && r == 0; i++) {
		struct remote *remote;

		if (list[i]->mm != list[i]->vpid)
			continue;
		r = ckpt_proc_remote(list[i], &remote, e);
		if (r == 0)
			r = remote_note(remote, ++note, e);
		for (size_t k = i + 1; k < n && r == 0; k++)
			if (remote_left_note(list[k]->look, remote_address(remote)) == note)
				list[k]->mm = list[i]->vpid;
		if (r == 0)
			r = remote_note(remote, list[i]->closed ? CKPT_NOTE_CLOSED : 0, e);
	}
	return r;
}

/* Handlers, of those who share memory. */
static int try_handlers(struct ckpt_dump *d, struct ckpt_proc **list, size_t n, struct err *e)
{
	_cleanup_free_ struct ckpt_proc **some = calloc(n, sizeof(*some));
	int r = some ? 0 : err_errno(e, -ENOMEM, "survey");

	for (size_t i = 0; i < n && r == 0; i++) {
		size_t count = 0;

		for (size_t k = i; list[i]->mm == list[i]->vpid && k < n; k++)
			if (list[k]->mm == list[i]->vpid)
				some[count++] = list[k];
		if (count > 1)
			r = try_all(d, &handler_trick, some, count, e);
	}
	return r;
}

static int try_kin(struct ckpt_dump *d, struct ckpt_proc **list, size_t n, struct err *e)
{
	int r = try_memory(d, list, n, e);

	if (r == 0)
		r = try_handlers(d, list, n, e);
	if (r == 0)
		r = try_all(d, &umask_trick, list, n, e);
	if (r == 0)
		r = try_all(d, &table_trick, list, n, e);
	return r;
}

/* The first thread that does not show @value as its process does; NULL. */
static int who_differs(struct ckpt_dump *d, const struct trick *t, const struct ckpt_proc *p,
	long value, const struct ckpt_thread **ret, struct err *e)
{
	int r = 0;

	*ret = NULL;
	for (size_t i = 0; i < p->n_threads && r == 0 && !*ret; i++) {
		long now;

		r = t->see(d, p->threads[i]->tid, &now, e);
		if (r == 0 && now != value)
			*ret = p->threads[i];
	}
	return r;
}

/* Do all threads show a mark that is made in one? */
static int refuse_unmarked(struct ckpt_dump *d, const struct trick *t, struct ckpt_proc *p,
	const char *what, struct err *e)
{
	const struct ckpt_thread *other = NULL;
	long before, mark;
	int r = t->look(d, p, &before, e), x;

	if (r == 0)
		r = who_differs(d, t, p, before, &other, e);
	if (r < 0 || other)
		return r < 0 ? r : refuse_thread(p, other, what, e);
	mark = t->mark(before, 0);
	r = t->put(d, p, before, mark, e);
	if (r == 0)
		r = who_differs(d, t, p, mark, &other, e);
	x = t->put(d, p, before, before, r < 0 ? NULL : e);
	r = r < 0 ? r : x;
	return r < 0 || !other ? r : refuse_thread(p, other, what, e);
}

static int try_threads(struct ckpt_dump *d, struct ckpt_proc *p, struct err *e)
{
	int r;

	if (p->n_threads < 2 || !d->world->names->parted(d->world->names->ctx, p->pid))
		return 0;
	r = ckpt_survey_open_up(d, p, e);
	if (r == 0)
		r = refuse_unmarked(d, &table_trick, p, "descriptors", e);
	return r < 0 ? r : refuse_unmarked(d, &umask_trick, p, "a working directory", e);
}

static int compare_kin(const void *a, const void *b, void *names)
{
	const struct ckpt_proc *x = *(struct ckpt_proc *const *)a;
	const struct ckpt_proc *y = *(struct ckpt_proc *const *)b;
	const struct ckpt_names *w = names;
	pid_t p = w->kin(w->ctx, x->pid), q = w->kin(w->ctx, y->pid);

	return p == q ? compare_vpid(a, b) : (p > q) - (p < q);
}

static int by_trying(struct ckpt_dump *d, struct ckpt_proc **list, size_t n, struct err *e)
{
	const struct ckpt_names *w = d->world->names;
	size_t count;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		list[i]->mm = list[i]->files = list[i]->fs = list[i]->sighand = list[i]->vpid;
	for (size_t i = 0; i < n && r == 0; i++)
		r = try_threads(d, list[i], e);
	if (n > 1)
		qsort_r(list, n, sizeof(*list), compare_kin, (void *)w);
	for (size_t i = 0; i < n && r == 0; i += count) {
		for (count = 1; i + count < n; count++)
			if (w->kin(w->ctx, list[i]->pid) != w->kin(w->ctx, list[i + count]->pid))
				break;
		if (count > 1)
			r = try_kin(d, list + i, count, e);
	}
	return r;
}

/* ---- interface ------------------------------------------------------------------------------ */

int ckpt_survey_sharing(struct ckpt_dump *d, struct err *e)
{
	_cleanup_free_ struct ckpt_proc **list = calloc(d->n_procs + 1, sizeof(*list));
	size_t n = 0;

	if (!list)
		return err_errno(e, -ENOMEM, "survey");
	for (size_t i = 0; i < d->n_procs; i++)
		if (d->procs[i]->state != CKPT_ZOMBIE)
			list[n++] = d->procs[i];
	if (ckpt_same_by_kcmp() || !d->world->names)
		return by_kcmp(list, n, e);
	return by_trying(d, list, n, e);
}
