// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * System V semaphore sets.
 *
 * Values are there to be read.  What a process has promised to undo at its end (SEM_UNDO) is not:
 * no call shows it.  But the kernel refuses a promise that is too large, and it does or refuses all
 * operations of one semop(2) together.  So one is made that can't succeed, in which D is promised
 * on top of what there is, and taken back without a promise:
 *
 *      -value, then (+n SEM_UNDO, -n) until the n are D, then -1      all with IPC_NOWAIT
 *
 *      ERANGE   adjust - D would be below -32768, the least there can be
 *      EAGAIN   it is not; the last operation would have had to wait
 *
 * Nothing has changed either way, and some sixteen of them find the number.  A process that may not
 * use the set is made to undo, by unshare(2), and to promise again: possible without threads.
 *
 * KCMP_SYSVSEM tells which processes have promised anything at all, or could: all with threads;
 * where kcmp(2) is denied all are asked, and of two that have promised the very same one promises
 * more, to see if that is the other's, too.  Threads of a process share their promises; processes
 * that share them otherwise are refused.
 *
 * Lost: who changed a semaphore last, and when (sem_otime is not 0 again where it was not 0).
 */
#include <errno.h>
#include <linux/sched.h>
#include <string.h>
#include <sys/sem.h>

#include "ckpt/answers.h"
#include "ckpt/build.h"
#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "ckpt/kinds/sysv.h"
#include "ckpt/survey/same.h"
#include "ckpt/survey/survey.h"
#include "proto/ipc.pb-c.h"

#define MAX_SEMAPHORES 32000 /* of one set: SEMMSL */
#define MAX_VALUE      32767 /* SEMVMX */
#define MAX_UNDOS      65536
#define MIN_ADJUST     (-MAX_VALUE - 1) /* -SEMAEM - 1 */
#define MAX_OPS	       8		/* of one question */
#define HUNTED	       128		/* semaphores at a time */

union semun {
	int val;
	struct semid_ds *buf;
	unsigned short *array;
	struct seminfo *__buf;
};

/* ---- dump: values --------------------------------------------------------------------------- */

/* One set as the helper tells it; followed by its values. */
struct told {
	int host; /* the id to make calls with */
	struct semid_ds ds;
};

static int tell_set(const struct ckpt_world *w, struct buf *answer, const struct ckpt_ipc_object *o,
	struct err *e)
{
	struct told t = {.host = o->host};
	unsigned short values[MAX_SEMAPHORES];

	if (semctl(o->host, 0, IPC_STAT, (union semun){.buf = &t.ds}) < 0)
		return err_errno(e, -errno, "semaphore set %d", o->id);
	if (t.ds.sem_nsems > MAX_SEMAPHORES)
		return err_set(e, ERR_UNFREEZABLE, -E2BIG, "semaphore set %d is too large", o->id);
	if (semctl(o->host, 0, GETALL, (union semun){.array = values}) < 0)
		return err_errno(e, -errno, "semaphore set %d", o->id);
	sysv_name(w, o, &t.ds.sem_perm);
	buf_put(answer, &t, sizeof(t));
	buf_put(answer, values, t.ds.sem_nsems * sizeof(*values));
	return 0;
}

static int ask(const struct ckpt_world *w, struct buf *answer, struct err *e)
{
	_cleanup_free_ struct ckpt_ipc_object *all = NULL;
	ssize_t n = sysv_list(w, CKPT_IPC_SEM, &all, e);
	int r = (int)MIN(n, 0);

	for (ssize_t i = 0; i < n && r >= 0; i++)
		r = tell_set(w, answer, &all[i], e);
	return r;
}

static void free_set(Pb__SemSet *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_undos; i++)
		free(s->undos[i]);
	free(s->undos);
	free(s->values);
	free(s->perm);
	free(s);
}

static void free_all(Pb__SysvSem *m)
{
	for (size_t i = 0; i < m->n_sets; i++)
		free_set(m->sets[i]);
	free(m->sets);
}

static Pb__SemSet *make_set(const struct told *t, const unsigned short *values)
{
	Pb__SemSet *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	pb__sem_set__init(s);
	s->perm = sysv_perm_dump(t->host, &t->ds.sem_perm);
	s->used = t->ds.sem_otime != 0;
	s->values = calloc(t->ds.sem_nsems, sizeof(*s->values));
	if (!s->perm || !s->values) {
		free_set(s);
		return NULL;
	}
	for (size_t i = 0; i < t->ds.sem_nsems; i++)
		s->values[s->n_values++] = values[i];
	return s;
}

static int fill(Pb__SysvSem *m, const struct buf *answer, struct err *e)
{
	struct cursor c = cursor_of(answer->data, answer->len);

	m->sets = calloc(answer->len / sizeof(struct told) + 1, sizeof(*m->sets));
	while (m->sets && cursor_left(&c)) {
		const void *head = cursor_take(&c, sizeof(struct told));
		const void *values;
		struct told t;

		if (!head)
			return err_set(e, ERR_FAILED, -EPROTO, "semaphores");
		memcpy(&t, head, sizeof(t));
		values = cursor_take(&c, t.ds.sem_nsems * sizeof(unsigned short));
		if (!values)
			return err_set(e, ERR_FAILED, -EPROTO, "semaphores");
		m->sets[m->n_sets] = make_set(&t, values);
		if (!m->sets[m->n_sets++])
			return err_errno(e, -ENOMEM, "semaphores");
	}
	return m->sets ? 0 : err_errno(e, -ENOMEM, "semaphores");
}

/* ---- dump: promises ------------------------------------------------------------------------- */

/*
 * True if the process has promised to undo something, at some time, or nobody says.  Who is in an
 * ipc namespace of his own has promised nothing here: coming into it has undone all.
 */
static bool has_promised(const struct ckpt_proc *p)
{
	return !p->ns.ns[CKPT_NS_IPC] && p->state != CKPT_ZOMBIE &&
	       sys_kcmp(p->look, getpid(), SYS_KCMP_SYSVSEM, 0, 0) != 0;
}

static int add_undo(Pb__SemSet *s, pid_t vpid, size_t number, int adjust)
{
	Pb__SemUndo **more = realloc(s->undos, (s->n_undos + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->undos = more;
	more[s->n_undos] = malloc(sizeof(**more));
	if (!more[s->n_undos])
		return -ENOMEM;
	pb__sem_undo__init(more[s->n_undos]);
	more[s->n_undos]->pid = vpid;
	more[s->n_undos]->number = (uint32_t)number;
	more[s->n_undos++]->adjust = adjust;
	return 0;
}

/* Makes the process promise again to add @adjust at its end. */
static int promise(struct remote *r, int id, size_t number, int adjust, struct err *e)
{
	struct sembuf op = {.sem_num = (unsigned short)number,
		.sem_op = (short)-adjust,
		.sem_flg = SEM_UNDO | IPC_NOWAIT};

	if (remote_must(r, NULL, e, SYS_semop, (uint64_t)id, remote_put(r, &op, sizeof(op)), 1, 0,
		    0, 0) == 0)
		return 0;
	/* a value that the semaphore can't have had with this promise */
	return e->error == -EAGAIN ? err_reclass(e, ERR_IMAGE) : e->error;
}

static int renew(
	struct remote *r, pid_t vpid, Pb__SemSet *before, const Pb__SemSet *after, struct err *e)
{
	for (size_t i = 0; i < before->n_values && i < after->n_values; i++) {
		int adjust = (int)after->values[i] - (int)before->values[i];
		int rc;

		if (!adjust)
			continue;
		rc = promise(r, before->perm->id, i, adjust, e);
		if (rc >= 0 && add_undo(before, vpid, i, adjust) < 0)
			rc = err_errno(e, -ENOMEM, "semaphores");
		if (rc < 0)
			return rc;
	}
	return 0;
}

/*
 * The same by having it undone.  For a process that may not use a set (any more), so that it can't
 * be asked; without threads it can be made to promise again.
 */
static int probe_by_undoing(struct ckpt_dump *d, struct ckpt_proc *p, Pb__SysvSem *m,
	struct remote *remote, struct err *e)
{
	_cleanup_buf_ struct buf answer = BUF_INIT;
	Pb__SysvSem after = PB__SYSV_SEM__INIT;
	int r;

	if (p->n_threads > 1) {
		err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"what is to be undone of a semaphore set which it may not use can't be found "
			"out of a process with several threads");
		return err_hint(e, "remove the set, or let the process use it");
	}
	r = remote_must(remote, NULL, e, SYS_unshare, CLONE_SYSVSEM, 0, 0, 0, 0, 0);
	if (r >= 0)
		r = ckpt_answer_anew(d, &ckpt_kind_sysv_sem, &answer, e);
	if (r >= 0)
		r = fill(&after, &answer, e);
	for (size_t i = 0; r >= 0 && i < m->n_sets && i < after.n_sets; i++)
		r = renew(remote, p->vpid, m->sets[i], after.sets[i], e);
	free_all(&after);
	return r;
}

/* A semaphore whose promise is being looked for: it is in [low, high]. */
struct hunt {
	size_t number;
	int value, low, high;
};

/* Adds the call that tells whether the promise is below @bound; returns its index. */
static int add_question(struct remote *r, int id, const struct hunt *h, int bound)
{
	struct sembuf ops[MAX_OPS];
	const unsigned short number = (unsigned short)h->number;
	int left = bound - MIN_ADJUST, n = 0;
	uint64_t at;

	if (h->value)
		ops[n++] = (struct sembuf){number, (short)-h->value, IPC_NOWAIT};
	while (left) {
		short step = (short)MIN(left, MAX_VALUE);

		ops[n++] = (struct sembuf){number, step, IPC_NOWAIT | SEM_UNDO};
		ops[n++] = (struct sembuf){number, (short)-step, IPC_NOWAIT};
		left -= step;
	}
	ops[n++] = (struct sembuf){number, -1, IPC_NOWAIT};
	at = remote_put(r, ops, (size_t)n * sizeof(ops[0]));
	return at ? remote_add(r, SYS_semop, (uint64_t)id, at, (uint64_t)n, 0, 0, 0) : -ENOSPC;
}

/* Most often nothing is promised: is it below 0, is it below 1? */
static int next_bound(const struct hunt *h)
{
	if (h->low == MIN_ADJUST && h->high == MAX_VALUE)
		return 0;
	if (h->low == 0 && h->high == MAX_VALUE)
		return 1;
	return h->low + (h->high - h->low + 1) / 2;
}

/* One question about each of @n semaphores.  -EACCES without a story: none may be asked. */
static int ask_all(struct remote *r, int id, struct hunt *h, size_t n, struct err *e)
{
	int bounds[HUNTED], rc;

	for (size_t i = 0; i < n; i++) {
		bounds[i] = next_bound(&h[i]);
		if (add_question(r, id, &h[i], bounds[i]) < 0)
			return err_errno(e, -ENOSPC, "SEM_UNDO");
	}
	rc = remote_run(r, false, e);
	for (size_t i = 0; i < n && rc >= 0; i++) {
		long answer = remote_result(r, (int)i);

		if (answer == -ERANGE && bounds[i] > h[i].low)
			h[i].high = bounds[i] - 1;
		else if (answer == -EAGAIN)
			h[i].low = bounds[i];
		else
			rc = answer == -EACCES
				     ? -EACCES
				     : err_errno(e, answer < 0 ? (int)answer : -EPROTO,
					       "what is to be undone of semaphore set %d", id);
	}
	return rc;
}

static int find_promises(
	struct remote *r, pid_t vpid, Pb__SemSet *s, size_t from, size_t n, struct err *e)
{
	struct hunt h[HUNTED];
	bool busy = true;
	int rc = 0;

	for (size_t i = 0; i < n; i++)
		h[i] = (struct hunt){from + i, (int)s->values[from + i], MIN_ADJUST, MAX_VALUE};
	while (busy && rc >= 0) {
		rc = ask_all(r, s->perm->id, h, n, e);
		busy = false;
		for (size_t i = 0; i < n; i++)
			busy |= h[i].low != h[i].high;
	}
	for (size_t i = 0; i < n && rc >= 0; i++)
		if (h[i].low && add_undo(s, vpid, h[i].number, h[i].low) < 0)
			rc = err_errno(e, -ENOMEM, "semaphores");
	return rc;
}

/* True if a promise of @p is also another's, who is not its thread. */
static bool shares_promises(const struct ckpt_dump *d, const struct ckpt_proc *p)
{
	for (size_t i = 0; i < d->n_procs; i++)
		if (d->procs[i] != p && d->procs[i]->state != CKPT_ZOMBIE &&
			sys_kcmp(p->look, d->procs[i]->look, SYS_KCMP_SYSVSEM, 0, 0) == 0)
			return true;
	/* Or its threads do not. */
	for (size_t i = 1; i < p->n_threads; i++)
		if (sys_kcmp(p->look, p->threads[i]->tid, SYS_KCMP_SYSVSEM, 0, 0) > 0)
			return true;
	return false;
}

/* ---- dump: promises that are shared, without kcmp -------------------------------------------- */

static const Pb__SemUndo *undo_of(const Pb__SemSet *s, pid_t vpid, uint32_t number)
{
	for (size_t i = 0; i < s->n_undos; i++)
		if (s->undos[i]->pid == vpid && s->undos[i]->number == number)
			return s->undos[i];
	return NULL;
}

/* Whoever shares one shares all.  *ret is one of @a's that @b has as well. */
static bool equal_promises(
	const Pb__SysvSem *m, pid_t a, pid_t b, const Pb__SemSet **ret_set, const Pb__SemUndo **ret)
{
	size_t left = 0;

	for (size_t i = 0; i < m->n_sets; i++) {
		const Pb__SemSet *s = m->sets[i];

		for (size_t k = 0; k < s->n_undos; k++) {
			const Pb__SemUndo *u = s->undos[k], *other;

			left -= u->pid == b;
			if (u->pid != a)
				continue;
			other = undo_of(s, b, u->number);
			if (!other || other->adjust != u->adjust)
				return false;
			left++;
			*ret_set = s;
			*ret = u;
		}
	}
	return left == 0;
}

/* Adds @by to what the process has promised of a semaphore, whose value stays. */
static int disturb(struct remote *r, const Pb__SemSet *s, uint32_t number, int by, struct err *e)
{
	const unsigned short n = (unsigned short)number;
	const struct sembuf promised = {n, (short)-by, IPC_NOWAIT | SEM_UNDO},
			    back = {n, (short)by, IPC_NOWAIT};
	bool up_first = s->values[number] < MAX_VALUE;
	const struct sembuf ops[] = {
		(by < 0) == up_first ? promised : back, (by < 0) == up_first ? back : promised};

	return remote_must(r, NULL, e, SYS_semop, (uint64_t)s->perm->id,
		remote_put(r, ops, sizeof(ops)), ARRAY_SIZE(ops), 0, 0, 0);
}

/* 1 if what @r has promised is below @bound, 0 if not. */
static int is_below(
	struct remote *r, const Pb__SemSet *s, uint32_t number, int bound, struct err *e)
{
	const struct hunt h = {.number = number, .value = (int)s->values[number]};
	int rc = add_question(r, s->perm->id, &h, bound);
	long answer;

	if (rc >= 0)
		rc = remote_run(r, false, e);
	if (rc < 0)
		return err_is(e) ? rc : err_errno(e, rc, "SEM_UNDO");
	answer = remote_result(r, 0);
	if (answer != -ERANGE && answer != -EAGAIN)
		return err_errno(e, answer < 0 ? (int)answer : -EPROTO, "SEM_UNDO");
	return answer == -ERANGE;
}

/*
 * Two processes that have promised the very same: one promises one more, the other is asked, and it
 * is taken back.
 */
static int try_pair(const Pb__SysvSem *m, struct ckpt_proc *p, struct ckpt_proc *q, struct err *e)
{
	const Pb__SemSet *s = NULL;
	const Pb__SemUndo *u = NULL;
	struct remote *one, *other;
	int r, by, back;

	if (!equal_promises(m, p->vpid, q->vpid, &s, &u) || !u)
		return 0;
	by = u->adjust > MIN_ADJUST ? -1 : 1;
	r = ckpt_proc_remote(p, &one, e);
	if (r >= 0)
		r = ckpt_proc_remote(q, &other, e);
	if (r >= 0)
		r = disturb(one, s, u->number, by, e);
	if (r < 0)
		return r;
	r = is_below(other, s, u->number, u->adjust + (by > 0), e);
	back = disturb(one, s, u->number, -by, r < 0 ? &(struct err){0} : e);
	if (r < 0 || back < 0)
		return MIN(r, back);
	return r == (by < 0);
}

/* Only those which were born to share something can. */
static int share_without_kcmp(
	struct ckpt_dump *d, const Pb__SysvSem *m, struct ckpt_proc *p, struct err *e)
{
	const struct ckpt_names *names = d->world->names;
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->n_procs && d->procs[i] != p; i++) {
		struct ckpt_proc *q = d->procs[i];

		if (q->state == CKPT_ZOMBIE ||
			(names && names->kin(names->ctx, p->pid) != names->kin(names->ctx, q->pid)))
			continue;
		r = try_pair(m, p, q, e);
	}
	return r;
}

/* 1 if promises of @p, which has been asked last, are also another's. */
static int are_shared(struct ckpt_dump *d, const Pb__SysvSem *m, struct ckpt_proc *p, struct err *e)
{
	return ckpt_same_by_kcmp() ? shares_promises(d, p) : share_without_kcmp(d, m, p, e);
}

static size_t count_undos(const Pb__SysvSem *m)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_sets; i++)
		n += m->sets[i]->n_undos;
	return n;
}

/* Forgets what has been found of @vpid, the one looked at last. */
static void forget_undos(Pb__SysvSem *m, pid_t vpid)
{
	for (size_t i = 0; i < m->n_sets; i++) {
		Pb__SemSet *s = m->sets[i];

		while (s->n_undos && s->undos[s->n_undos - 1]->pid == vpid)
			free(s->undos[--s->n_undos]);
	}
}

/* All promises of @p. */
static int probe(struct ckpt_dump *d, struct ckpt_proc *p, Pb__SysvSem *m, struct err *e)
{
	size_t had = count_undos(m);
	struct remote *remote;
	int r = ckpt_proc_remote(p, &remote, e);

	for (size_t i = 0; i < m->n_sets; i++) {
		Pb__SemSet *s = m->sets[i];

		for (size_t at = 0; r >= 0 && s->used && at < s->n_values; at += HUNTED)
			r = find_promises(
				remote, p->vpid, s, at, MIN(s->n_values - at, (size_t)HUNTED), e);
	}
	if (r == -EACCES) {
		forget_undos(m, p->vpid);
		r = probe_by_undoing(d, p, m, remote, e);
	}
	if (r >= 0 && count_undos(m) > had)
		r = are_shared(d, m, p, e);
	if (r > 0) {
		r = err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"SEM_UNDO that is shared otherwise than by threads is not supported");
		err_hint(e, "release the semaphores first");
	}
	return r < 0 ? err_wrap(e, "task %d (%s)", p->vpid, p->status.comm) : 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct buf *answer;
	Pb__SysvSem m = PB__SYSV_SEM__INIT;
	int r = ckpt_answer(d, &ckpt_kind_sysv_sem, &answer, e);

	if (r < 0)
		return r;
	if (!answer->len)
		return 1;
	r = fill(&m, answer, e);
	for (size_t i = 0; r >= 0 && i < d->n_procs; i++)
		if (has_promised(d->procs[i]))
			r = probe(d, d->procs[i], &m, e);
	/* So far they have the names that calls are made with. */
	for (size_t i = 0; r >= 0 && i < m.n_sets; i++) {
		m.sets[i]->perm->id = sysv_id(d->world, CKPT_IPC_SEM, m.sets[i]->perm->id);
		if (m.sets[i]->perm->id < 0)
			r = err_set(e, ERR_FAILED, -EPROTO, "semaphores");
	}
	if (r >= 0)
		r = ckpt_pack(&m.base, body, e);
	free_all(&m);
	return r;
}

/* ---- restore -------------------------------------------------------------------------------- */

static int set_values(int id, const Pb__SemSet *s, struct err *e)
{
	struct sembuf up = {.sem_op = 1}, down = {.sem_op = -1};
	unsigned short values[MAX_SEMAPHORES];

	for (size_t i = 0; i < s->n_values; i++) {
		if (s->values[i] > MAX_VALUE)
			return err_set(e, ERR_IMAGE, -EBADMSG, "bad semaphore value");
		values[i] = (unsigned short)s->values[i];
	}
	/* A time of last use: many programs wait for the first one. */
	if (s->used && (semop(id, &up, 1) < 0 || semop(id, &down, 1) < 0))
		return err_errno(e, -errno, "semop");
	if (semctl(id, 0, SETALL, (union semun){.array = values}) < 0)
		return err_errno(e, -errno, "cannot set the values of semaphore set %d", id);
	return 0;
}

static int make(struct ckpt_build *b, const Pb__SemSet *s, struct err *e)
{
	struct semid_ds ds;
	int id, r;

	if (!s->perm || !s->n_values || s->n_values > MAX_SEMAPHORES || s->n_undos > MAX_UNDOS)
		return err_set(e, ERR_IMAGE, -EBADMSG, "bad semaphore set");
	id = r = sysv_make(b, CKPT_IPC_SEM, s->perm, s->n_values, e);
	if (r >= 0)
		r = set_values(id, s, e);
	if (r < 0)
		return r;
	if (semctl(id, 0, IPC_STAT, (union semun){.buf = &ds}) < 0)
		return err_errno(e, -errno, "semaphore set %d", id);
	sysv_set_owner(b, s->perm, &ds.sem_perm);
	if (semctl(id, 0, IPC_SET, (union semun){.buf = &ds}) < 0)
		return err_errno(e, -errno, "cannot set the owner of semaphore set %d", id);
	return 0;
}

/* Brings a semaphore from @*value to @to without a promise. */
static int shift(int id, size_t number, int *value, int to, struct err *e)
{
	struct sembuf op = {.sem_num = (unsigned short)number,
		.sem_op = (short)(to - *value),
		.sem_flg = IPC_NOWAIT};

	if (to != *value && semop(id, &op, 1) < 0)
		return err_errno(e, -errno, "cannot set a value of semaphore set %d", id);
	*value = to;
	return 0;
}

/*
 * What is promised and what a semaphore is have nothing to do with each other: others have changed
 * it since.  So it is given room for the step, and its value afterwards.
 */
static int make_promise(struct remote *r, int id, const Pb__SemUndo *u, int value, struct err *e)
{
	const int last = value;
	int rc = 0;

	for (int left = u->adjust; left && rc >= 0;) {
		int step = MAX(left, -MAX_VALUE);

		if (value - step < 0 || value - step > MAX_VALUE)
			rc = shift(id, u->number, &value, MAX(step, 0), e);
		if (rc >= 0)
			rc = promise(r, id, u->number, step, e);
		value -= step;
		left -= step;
	}
	return rc < 0 ? rc : shift(id, u->number, &value, last, e);
}

static int make_promises(struct ckpt_build *b, const Pb__SemSet *s, struct err *e)
{
	int id = s->n_undos ? sysv_host(b->world, CKPT_IPC_SEM, s->perm->id) : -1;

	for (size_t i = 0; i < s->n_undos; i++) {
		const Pb__SemUndo *u = s->undos[i];
		struct ckpt_build_proc *p = ckpt_build_proc(b, u->pid);
		int r;

		if (!p || p->zombie || u->number >= s->n_values || u->adjust < MIN_ADJUST ||
			u->adjust > MAX_VALUE)
			return err_set(e, ERR_IMAGE, -EBADMSG, "bad SEM_UNDO");
		r = make_promise(p->threads[0].remote, id, u, (int)s->values[u->number], e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int each_set(struct ckpt_build *b, struct ckpt_record *r,
	int (*run)(struct ckpt_build *b, const Pb__SemSet *s, struct err *e), struct err *e)
{
	Pb__SysvSem *m = pb__sysv_sem__unpack(NULL, r->len, r->body);
	int rc = 0;

	if (!m || m->n_sets > SYSV_MAX_OBJECTS)
		rc = ckpt_common_bad(r, e);
	for (size_t i = 0; rc >= 0 && i < m->n_sets; i++)
		rc = run(b, m->sets[i], e);
	pb__sysv_sem__free_unpacked(m, NULL);
	return rc;
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	return each_set(b, r, make, e);
}

static int link_promises(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	return each_set(b, r, make_promises, e);
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__SysvSem *m = pb__sysv_sem__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_sets; i++)
		if (m->sets[i]->perm)
			fprintf(out, "%sid %d key 0x%x %zu semaphores", i ? ", " : "",
				m->sets[i]->perm->id, (unsigned)m->sets[i]->perm->key,
				m->sets[i]->n_values);
	pb__sysv_sem__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_sysv_sem = {
	.number = PROTO_KIND_SYSV_SEM,
	.name = "sysv sem",
	.scope = CKPT_SESSION,
	.ask = ask,
	.dump = dump,
	.create = create,
	.link = link_promises,
	.show = show,
};
