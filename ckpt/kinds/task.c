// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A process: its place in the tree, its threads, how it stood.
 *
 * Dump asks ckpt/restore/tree.c whether the tree as it is can be rebuilt at all, before anything is
 * written.  Restore is not done here: the driver reads these records first (ckpt_task_read) and
 * makes all processes at once (ckpt/restore/grow.c).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/ask.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/nested/list.h"
#include "ckpt/restore/records.h"
#include "ckpt/restore/tree.h"
#include "ckpt/said.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

#define MAX_THREADS (1 << 20)

/* clone(2) takes any byte; one that is no signal is none, as 0 is (wait(2), __WCLONE). */
static int exit_signal_of(const struct ckpt_proc *p)
{
	return p->status.exit_signal > 64 ? 0 : p->status.exit_signal;
}

int ckpt_tree_check(struct ckpt_dump *d, struct err *e)
{
	_cleanup_free_ struct ckpt_tree_node *nodes = calloc(d->n_procs, sizeof(*nodes));
	struct ckpt_tree_op *ops = NULL;
	size_t n;
	int r;

	if (!nodes)
		return err_errno(e, -ENOMEM, "process tree");
	for (size_t i = 0; i < d->n_procs; i++) {
		const struct ckpt_proc *p = d->procs[i];

		nodes[i] = (struct ckpt_tree_node){
			.vpid = p->vpid,
			.ppid = p->vppid,
			.pgid = p->vpgid,
			.sid = p->vsid,
			.exit_signal = exit_signal_of(p),
			.mm = p->mm,
			.sighand = p->sighand,
			.files = p->files,
			.fs = p->fs,
		};
		ckpt_nested_node(d->nested, d->n_nested, &p->ns, &nodes[i]);
	}
	r = ckpt_tree_plan(nodes, d->n_procs, &ops, &n, e);
	free(ops);
	return r < 0 ? err_reclass(e, ERR_UNFREEZABLE) : 0;
}

/*
 * What @parent can still be told of @p by wait(2): that it was stopped, continued, or has ended
 * (@what).  Only the parent can ask.  1: *ret is that.
 */
static int ask_unseen(
	struct ckpt_proc *parent, struct ckpt_proc *p, int what, siginfo_t *ret, struct err *e)
{
	struct remote *remote;
	siginfo_t *si;
	uint64_t at;
	long v;
	int r = ckpt_proc_remote(parent, &remote, e);

	if (r < 0)
		return r;
	si = remote_data(remote, sizeof(*si), &at);
	if (!si)
		return err_errno(e, -ENOMEM, "task");
	r = remote_call(remote, &v, e, SYS_waitid, P_PID, (uint64_t)ckpt_proc_number(parent, p), at,
		(uint64_t)what | WNOHANG | WNOWAIT | __WALL, 0, 0);
	if (r < 0)
		return r;
	*ret = *si;
	return v == 0 && si->si_pid == ckpt_proc_number(parent, p);
}

/* How a zombie ended.  /proc does not always tell it of one that was not dumpable. */
static int fill_end(struct ckpt_dump *d, struct ckpt_proc *p, Pb__Task *m, struct err *e)
{
	struct ckpt_proc *parent = ckpt_proc_by_vpid(d, p->vppid);
	siginfo_t si;
	int r;

	m->wait_status = p->status.exit_code;
	if (m->wait_status || !parent || parent->state == CKPT_ZOMBIE)
		return 0;
	r = ask_unseen(parent, p, WEXITED, &si, e);
	if (r > 0)
		m->wait_status =
			si.si_code == CLD_EXITED ? (si.si_status & 0xff) << 8 : si.si_status;
	return MIN(r, 0);
}

/*
 * What its parent may still wait for.  That one of its children was continued it tells with all
 * else it is asked; of which this is true it is asked only then.
 */
static int fill_unseen(struct ckpt_dump *d, struct ckpt_proc *p, Pb__Task *m, struct err *e)
{
	struct ckpt_proc *parent = ckpt_proc_by_vpid(d, p->vppid);
	const struct ckpt_asked *asked;
	siginfo_t si;
	int r;

	if (!parent || parent->state == CKPT_ZOMBIE || p->state == CKPT_ZOMBIE)
		return 0;
	if (p->state == CKPT_STOPPED) {
		r = ask_unseen(parent, p, WSTOPPED, &si, e);
		m->stop_unseen = r > 0;
		return MIN(r, 0);
	}
	r = ckpt_ask_proc(parent, &asked, e);
	if (r == 0 && asked->continued.si_pid)
		r = ask_unseen(parent, p, WCONTINUED, &si, e);
	m->continue_unseen = r > 0;
	return MIN(r, 0);
}

/* Its namespaces, and its numbers in them: behind the session's in each list of the kernel's. */
static int fill_inner(const struct ckpt_dump *d, struct ckpt_proc *p, Pb__Task *m, int32_t **ret)
{
	size_t depth = ckpt_nested_depth(d->nested, d->n_nested, p->ns.ns[CKPT_NS_PID]);
	size_t first = !p->headless;
	int32_t *at;

	if (!ckpt_ns_any(&p->ns))
		return 0;
	at = *ret = calloc((p->n_threads + 2) * (depth + 1), sizeof(*at));
	if (!at)
		return -ENOMEM;
	for (size_t k = 0; k < depth; k++)
		*at++ = p->status.ns_tgid[d->level + 1 + k];
	for (size_t i = first; i < p->n_threads && p->state != CKPT_ZOMBIE; i++)
		for (size_t k = 0; k < depth; k++)
			*at++ = p->threads[i]->status.ns_pid[d->level + 1 + k];
	m->namespaces = p->ns.ns;
	m->n_namespaces = CKPT_N_NS;
	m->inner = *ret;
	m->n_inner = (size_t)(at - *ret);
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	static const Pb__TaskState states[] = {
		[CKPT_RUNNING] = PB__TASK_STATE__TASK_RUNNING,
		[CKPT_STOPPED] = PB__TASK_STATE__TASK_STOPPED,
		[CKPT_ZOMBIE] = PB__TASK_STATE__TASK_ZOMBIE,
	};
	struct ckpt_proc *p = s.proc;
	_cleanup_free_ int32_t *threads = calloc(p->n_threads + 1, sizeof(*threads)), *inner = NULL;
	Pb__Task m = PB__TASK__INIT;
	const struct ckpt_asked *asked;
	int r = 0;

	if (!threads || fill_inner(d, p, &m, &inner) < 0)
		return err_errno(e, -ENOMEM, "task");
	m.ppid = p->vppid;
	m.pgid = p->vpgid;
	m.sid = p->vsid;
	m.state = states[p->state];
	m.exit_signal = exit_signal_of(p);
	m.name = p->status.comm;
	m.mm = p->mm;
	m.files = p->files;
	m.fs = p->fs;
	m.sighand = p->sighand;
	if (p->state == CKPT_ZOMBIE) {
		r = fill_end(d, p, &m, e);
	} else {
		m.headless = p->headless;
		for (size_t i = !p->headless; i < p->n_threads; i++)
			threads[m.n_threads++] = p->threads[i]->vtid;
		m.threads = threads;
		r = ckpt_ask_proc(p, &asked, e);
		m.subreaper = r == 0 && asked->subreaper;
	}
	if (p->state == CKPT_STOPPED)
		m.stop_signal = p->stop_signal;
	if (r == 0)
		r = fill_unseen(d, p, &m, e);
	return r < 0 ? r : ckpt_pack(&m.base, body, e);
}

static int fill_threads(const Pb__Task *m, struct ckpt_build_proc *p, struct err *e)
{
	p->threads = calloc(m->n_threads + 1, sizeof(*p->threads));
	if (!p->threads)
		return err_errno(e, -ENOMEM, "threads");
	p->n_threads = m->n_threads + 1;
	p->threads[0].vtid = p->vpid;
	for (size_t i = 1; i < p->n_threads; i++)
		p->threads[i].vtid = m->threads[i - 1];
	for (size_t i = 0; i < p->n_threads; i++) {
		p->threads[i].proc = p;
		if (p->threads[i].vtid < 2)
			return err_set(e, ERR_IMAGE, -EINVAL, "thread %d", p->threads[i].vtid);
	}
	return 0;
}

static int take_inner(const Pb__Task *m, struct ckpt_build_proc *p, struct err *e)
{
	size_t n = m->n_threads + 1;

	if (!m->n_namespaces && !m->n_inner)
		return 0;
	if (m->n_namespaces != CKPT_N_NS || m->n_inner % n || m->n_inner / n > CKPT_MAX_INNER)
		return err_set(
			e, ERR_IMAGE, -EINVAL, "the numbers of process %d make no sense", p->vpid);
	for (size_t i = 0; i < m->n_inner; i++)
		if (m->inner[i] < 1)
			return err_set(e, ERR_IMAGE, -EINVAL, "number %d", m->inner[i]);
	memcpy(p->ns.ns, m->namespaces, sizeof(p->ns.ns));
	p->depth = m->n_inner / n;
	p->inner = calloc(m->n_inner + 1, sizeof(*p->inner));
	if (!p->inner)
		return err_errno(e, -ENOMEM, "numbers");
	if (m->n_inner)
		memcpy(p->inner, m->inner, m->n_inner * sizeof(*p->inner));
	return 0;
}

int ckpt_task_read(struct ckpt_record *rec, struct ckpt_build_proc *p, struct err *e)
{
	Pb__Task *m = pb__task__unpack(NULL, rec->len, rec->body);
	int r = 0;

	if (!m || rec->subject < 2 || rec->subject > INT32_MAX || m->n_threads > MAX_THREADS ||
		m->ppid < 0 || m->pgid < 0 || m->sid < 0 || m->exit_signal < 0 ||
		m->exit_signal > 64 || m->stop_signal < 0 || m->stop_signal > 64 ||
		(m->state == PB__TASK_STATE__TASK_ZOMBIE && m->n_threads) ||
		(m->headless && !m->n_threads) ||
		(m->continue_unseen && m->state != PB__TASK_STATE__TASK_RUNNING)) {
		r = ckpt_record_bad(rec, e);
		goto out;
	}
	*p = (struct ckpt_build_proc){
		.vpid = (pid_t)rec->subject,
		.zombie = m->state == PB__TASK_STATE__TASK_ZOMBIE,
		.headless = m->headless,
		.stopped = m->state == PB__TASK_STATE__TASK_STOPPED,
		.continued = m->continue_unseen,
		.mm = m->mm,
		.files = m->files,
		.fs = m->fs,
		.sighand = m->sighand,
		.lend_fd = -1,
	};
	r = take_inner(m, p, e);
	if (r == 0 && !p->zombie)
		r = fill_threads(m, p, e);
out:
	pb__task__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	static const char *const states[] = {"running", "stopped", "zombie"};
	Pb__Task *m = pb__task__unpack(NULL, len, body);

	if (m)
		fprintf(out, "%s, parent %d group %d session %d, %s, %zu threads%s", m->name,
			m->ppid, m->pgid, m->sid,
			(unsigned)m->state < ARRAY_SIZE(states) ? states[m->state] : "?",
			m->state == PB__TASK_STATE__TASK_ZOMBIE ? 0 : m->n_threads + !m->headless,
			m->headless ? " without the first" : "");
	pb__task__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_task = {
	.number = PROTO_KIND_TASK,
	.name = "task",
	.scope = CKPT_PROC,
	.dump = dump,
	.show = show,
};
