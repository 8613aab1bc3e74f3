// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in ask.h. */
#include "ckpt/kinds/ask.h"

#include <asm/prctl.h>
#include <errno.h>
#include <linux/prctl.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/memory/memory.h"
#include "ckpt/remote/i386.h"

/* linux/prctl.h, 6.3 and 6.4; linux/membarrier.h, 6.3 */
#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
#ifndef PR_SET_MEMORY_MERGE
#define PR_SET_MEMORY_MERGE 67
#define PR_GET_MEMORY_MERGE 68
#endif
#define GET_REGISTRATIONS (1 << 9)

/* Commands of membarrier(2) that fail in who has not registered for them; that is the next bit. */
static const int expedited[] = {1 << 3, 1 << 5, 1 << 7}; /* PRIVATE_EXPEDITED, .._SYNC_CORE, .._RSEQ */
#define N_EXPEDITED ((int)(sizeof(expedited) / sizeof(expedited[0])))

#define FEW_GROUPS 64
#define ROOM	   (sizeof(struct ckpt_asked) + FEW_GROUPS * sizeof(uint32_t))
#define AT_ONCE	   32

const struct ckpt_prctl_option ckpt_prctl_options[CKPT_N_PRCTL] = {
	{PR_SET_DUMPABLE, PR_GET_DUMPABLE, false, -1},
	{PR_SET_CHILD_SUBREAPER, PR_GET_CHILD_SUBREAPER, true, 0},
	{PR_SET_THP_DISABLE, PR_GET_THP_DISABLE, false, 0},
	{PR_SET_TSC, PR_GET_TSC, true, PR_TSC_ENABLE},
	{PR_SET_MEMORY_MERGE, PR_GET_MEMORY_MERGE, false, 0},
	{PR_SET_MDWE, PR_GET_MDWE, false, 0},
};

/* A question being asked: where its answers are, and which calls gave them. */
struct question {
	struct remote *r;
	struct ckpt_asked *room; /* remote_data, with FEW_GROUPS groups */
	uint64_t at;
	int *values; /* of prctl options by pointer */
	int mce_kill, cpuid, slack, securebits, groups, prctl, membarrier, brk, keys;
	int wanted; /* calls from the first to this must succeed */
};

static uint64_t at(const struct question *q, size_t offset)
{
	return q->at + offset;
}

#define AT(q, field) at(q, offsetof(struct ckpt_asked, field))

static int ask_thread(struct question *q, bool i386)
{
	struct remote *r = q->r;

	remote_add(r, SYS_sigaltstack, 0, AT(q, altstack), 0, 0, 0, 0);
	remote_add(r, SYS_get_robust_list, 0, AT(q, robust), AT(q, robust_length), 0, 0, 0);
	if (i386)
		remote_add_i386(r, I386_GET_ROBUST_LIST, 0, (uint32_t)AT(q, robust_i386),
			(uint32_t)AT(q, robust_i386_length), 0);
	remote_add(r, SYS_prctl, PR_GET_TID_ADDRESS, AT(q, tid_address), 0, 0, 0, 0);
	remote_add(r, SYS_prctl, PR_GET_PDEATHSIG, AT(q, pdeathsig), 0, 0, 0, 0);
	remote_add(r, SYS_prctl, PR_GET_NAME, AT(q, name), 0, 0, 0, 0);
	remote_add(r, SYS_prctl, PR_GET_TSC, AT(q, tsc), 0, 0, 0, 0);
	q->mce_kill = remote_add(r, SYS_prctl, PR_MCE_KILL_GET, 0, 0, 0, 0, 0);
	q->cpuid = remote_add(r, SYS_arch_prctl, ARCH_GET_CPUID, 0, 0, 0, 0, 0);
	q->securebits = remote_add(r, SYS_prctl, PR_GET_SECUREBITS, 0, 0, 0, 0, 0);
	q->slack = remote_add(r, SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0, 0, 0);
	return q->slack;
}

/* Has @t other ids than the first thread, as far as can be seen from outside? */
static bool has_own_ids(const struct ckpt_thread *t)
{
	const struct proc_status *own = &t->status, *first = &t->proc->threads[0]->status;

	return memcmp(own->uid, first->uid, sizeof(own->uid)) != 0 ||
	       memcmp(own->gid, first->gid, sizeof(own->gid)) != 0;
}

/* In some sessions each of these costs a notification, so not every thread is asked. */
static int ask_ids(struct question *q)
{
	struct remote *r = q->r;

	remote_add(r, SYS_getresuid, AT(q, uid[0]), AT(q, uid[1]), AT(q, uid[2]), 0, 0, 0);
	q->wanted = remote_add(
		r, SYS_getresgid, AT(q, gid[0]), AT(q, gid[1]), AT(q, gid[2]), 0, 0, 0);
	q->groups = remote_add(r, SYS_getgroups, FEW_GROUPS, AT(q, groups), 0, 0, 0, 0);
	return q->groups;
}

static bool can_have_action(int sig)
{
	return sig != SIGKILL && sig != SIGSTOP;
}

/* /proc/PID/status says which actions are worth asking for.  SIGCHLD's is: its flags matter even
 * with the default action. */
static void ask_actions(struct question *q, const struct proc_status *st)
{
	uint64_t some = st->sig_ignored | st->sig_caught | (1UL << (SIGCHLD - 1));

	for (int sig = 1; sig <= CKPT_LAST_SIGNAL; sig++)
		if (can_have_action(sig) && (some & (1UL << (sig - 1))))
			remote_add(q->r, SYS_rt_sigaction, (uint64_t)sig, 0, AT(q, actions[sig]),
				8, 0, 0);
}

/* Before Linux 6.3 a process can't be asked what it has registered for, but tried. */
static bool registrations_told(void)
{
	static _Thread_local int told = -1;

	if (told < 0)
		told = syscall(SYS_membarrier, GET_REGISTRATIONS, 0, 0) >= 0 || errno != EINVAL;
	return told;
}

static int ask_membarrier(struct remote *r)
{
	int first;

	if (registrations_told())
		return remote_add(r, SYS_membarrier, GET_REGISTRATIONS, 0, 0, 0, 0, 0);
	first = remote_add(r, SYS_membarrier, (uint64_t)expedited[0], 0, 0, 0, 0, 0);
	for (int i = 1; i < N_EXPEDITED; i++)
		remote_add(r, SYS_membarrier, (uint64_t)expedited[i], 0, 0, 0, 0, 0);
	return first;
}

static uint32_t take_membarrier(const struct question *q)
{
	long told = remote_result(q->r, q->membarrier);
	uint32_t bits = 0;

	if (registrations_told())
		return told > 0 ? (uint32_t)told : 0;
	for (int i = 0; i < N_EXPEDITED; i++)
		if (remote_result(q->r, q->membarrier + i) == 0)
			bits |= (uint32_t)expedited[i] << 1;
	return bits;
}

static int ask_process(struct question *q, const struct proc_status *st)
{
	struct remote *r = q->r;
	uint64_t values;

	ask_actions(q, st);
	for (int i = 0; i < 3; i++)
		remote_add(r, SYS_getitimer, (uint64_t)i, AT(q, itimers[i]), 0, 0, 0, 0);
	ask_ids(q);
	q->values = remote_data(r, CKPT_N_PRCTL * sizeof(*q->values), &values);
	for (int i = 0; i < CKPT_N_PRCTL; i++) {
		const struct ckpt_prctl_option *o = &ckpt_prctl_options[i];
		uint64_t where = values + (uint64_t)i * sizeof(*q->values);
		int k = remote_add(r, SYS_prctl, (uint64_t)o->get, o->by_pointer ? where : 0, 0, 0,
			0, 0);

		q->prctl = i ? q->prctl : k;
	}
	remote_add(r, SYS_waitid, P_ALL, 0, AT(q, continued),
		WCONTINUED | WNOHANG | WNOWAIT | __WALL, 0, 0);
	q->membarrier = ask_membarrier(r);
	q->brk = remote_add(r, SYS_brk, 0, 0, 0, 0, 0, 0);
	if (q->brk < 0 || !ckpt_keys_here())
		return q->brk;
	q->keys = ckpt_keys_ask(r);
	return q->keys;
}

static void take_process(const struct question *q, const struct ckpt_proc *p, struct ckpt_asked *a)
{
	a->membarrier = take_membarrier(q);
	a->brk = (uint64_t)remote_result(q->r, q->brk);
	a->keys = q->keys ? ckpt_keys_asked(q->r, q->keys) : 0;
	for (int i = 0; i < CKPT_N_PRCTL; i++) {
		a->prctl[i] = remote_result(q->r, q->prctl + i);
		if (a->prctl[i] >= 0 && ckpt_prctl_options[i].by_pointer)
			a->prctl[i] = q->values[i];
		if (ckpt_prctl_options[i].set == PR_SET_DUMPABLE && p->closed)
			a->prctl[i] = 0;
		if (ckpt_prctl_options[i].set == PR_SET_CHILD_SUBREAPER)
			a->subreaper = a->prctl[i] > 0;
	}
}

/* More groups than fit beside the rest: asked for by themselves. */
static int many_groups(struct remote *r, struct ckpt_asked **a, struct err *e)
{
	uint64_t where;
	uint32_t *list = remote_data(r, CKPT_MAX_GROUPS * sizeof(*list), &where);
	struct ckpt_asked *more;
	long n;
	int k;

	if (!list)
		return err_errno(e, -ENOMEM, "groups");
	k = remote_must(r, &n, e, SYS_getgroups, CKPT_MAX_GROUPS, where, 0, 0, 0, 0);
	if (k < 0)
		return k;
	more = realloc(*a, sizeof(**a) + (size_t)n * sizeof(*list));
	if (!more)
		return err_errno(e, -ENOMEM, "groups");
	more->n_groups = (uint32_t)n;
	memcpy(more->groups, list, (size_t)n * sizeof(*list));
	*a = more;
	return 0;
}

/* Prepares the question, and has the thread begin with it. */
static int start(struct question *q, struct ckpt_thread *t, struct err *e)
{
	int k = ckpt_thread_remote(t, &q->r, e);

	if (k < 0)
		return k;
	q->room = remote_data(q->r, ROOM, &q->at);
	if (!q->room)
		return err_errno(e, -ENOMEM, "state of a thread");
	k = q->wanted = ask_thread(q, t->proc->i386);
	if (t == t->proc->threads[0] && k >= 0)
		k = ask_process(q, &t->proc->status);
	else if (has_own_ids(t) && k >= 0)
		k = ask_ids(q);
	if (k < 0)
		return err_errno(e, k, "state of a thread");
	return remote_start(q->r, false, e);
}

static int take(const struct question *q, struct ckpt_thread *t, struct err *e)
{
	_cleanup_free_ struct ckpt_asked *a = malloc(ROOM);
	int k = remote_wait(q->r, e);
	long n;

	if (k < 0)
		return k;
	if (!a)
		return err_errno(e, -ENOMEM, "state of a thread");
	for (int i = 0; i <= q->wanted; i++)
		if (remote_result(q->r, i) < 0)
			return err_errno(e, (int)remote_result(q->r, i), "state of a thread");
	memcpy(a, q->room, ROOM);
	a->timer_slack = (uint64_t)remote_result(q->r, q->slack);
	a->mce_kill = (int)remote_result(q->r, q->mce_kill);
	a->cpuid = (int)remote_result(q->r, q->cpuid);
	a->securebits = (uint32_t)remote_result(q->r, q->securebits);
	a->has_ids = q->groups > 0;
	if (t == t->proc->threads[0])
		take_process(q, t->proc, a);
	if (a->has_ids) {
		n = remote_result(q->r, q->groups);
		a->n_groups = n > 0 ? (uint32_t)n : 0;
		k = n < 0 ? many_groups(q->r, &a, e) : 0;
	}
	if (k == 0)
		t->asked = take_ptr(a);
	return k;
}

int ckpt_ask(struct ckpt_thread *t, const struct ckpt_asked **ret, struct err *e)
{
	struct question q = {0};
	int k = t->asked ? 0 : start(&q, t, e);

	if (k == 0 && !t->asked)
		k = take(&q, t, e);
	if (k == 0)
		*ret = t->asked;
	return k;
}

/* ---- all of them ---------------------------------------------------------------------------- */

/* The next one of @p to be asked, from *at on. */
static struct ckpt_thread *next_of(const struct ckpt_proc *p, size_t *at)
{
	while (p->state != CKPT_ZOMBIE && *at < p->n_threads) {
		struct ckpt_thread *t = p->threads[(*at)++];

		if (!t->asked && t->status.state != 'Z')
			return t;
	}
	return NULL;
}

/* Those who share memory share the pages a batch is in. */
static bool is_busy(struct ckpt_thread *const *asked, size_t n, const struct ckpt_thread *t)
{
	for (size_t i = 0; i < n; i++)
		if (asked[i]->proc->mm == t->proc->mm)
			return true;
	return false;
}

/*
 * Asks some, one of each memory at most.  @at: of each process, how many have had their turn.  1:
 * there are more.
 */
static int ask_some(struct ckpt_dump *d, size_t *at, struct err *e)
{
	struct ckpt_thread *asked[AT_ONCE];
	struct question q[AT_ONCE] = {0};
	int r = 0, more = 0;
	size_t n = 0;

	for (size_t i = 0; i < d->n_procs && n < AT_ONCE && r >= 0; i++) {
		struct ckpt_thread *t = next_of(d->procs[i], &at[i]);

		if (t && is_busy(asked, n, t)) {
			at[i]--;
			more = 1;
			continue;
		}
		if (!t)
			continue;
		r = start(&q[n], t, e);
		if (r >= 0)
			asked[n++] = t;
		else
			err_wrap(e, "task %d (%s)", t->vtid, t->status.comm);
		more = 1;
	}
	for (size_t i = 0; i < n; i++) {
		int k = take(&q[i], asked[i], r < 0 ? NULL : e);

		if (k < 0 && r >= 0)
			r = err_wrap(e, "task %d (%s)", asked[i]->vtid, asked[i]->status.comm);
	}
	return r < 0 ? r : more;
}

int ckpt_ask_all(struct ckpt_dump *d, struct err *e)
{
	_cleanup_free_ size_t *at = calloc(d->n_procs + 1, sizeof(*at));
	int r = at ? 1 : err_errno(e, -ENOMEM, "state of threads");

	ckpt_survey_enter(d);
	while (r > 0)
		r = ask_some(d, at, e);
	return r;
}
