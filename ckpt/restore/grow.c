// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Pid 1 makes one process, the seed.  It is seized and blanked: its memory is unmapped but for the
 * executor's pages, its descriptors are closed.  All others descend from it by clone3 calls which
 * the executor makes, with the number each must have, in the order of a plan (ckpt/restore/tree.h);
 * they are traced from birth and as blank as the seed.  Children of pid 1 are made with
 * CLONE_PARENT.
 *
 * When all are there, threads are made the same way, stand-ins for dead leaders end, and those
 * that were zombies end as they had ended before.
 */
#include "ckpt/restore/grow.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/kinds/pty.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/lend.h"
#include "ckpt/memory/memory.h"
#include "ckpt/nested/build.h"
#include "ckpt/nested/help.h"
#include "ckpt/nested/list.h"
#include "ckpt/remote/i386.h"
#include "ckpt/remote/trace.h"
#include "ckpt/restore/birth.h"
#include "ckpt/restore/tree.h"
#include "ckpt/said.h"
#include "ckpt/where.h"
#include "proto/memory.pb-c.h"
#include "proto/tasks.pb-c.h"

#define SEIZE_OPTIONS (TRACE_OPTIONS | PTRACE_O_EXITKILL)
#define WAIT_NS	      (10 * 1000000000ULL)
#define USER_END      0x7ffffffff000ULL
#define USER_END_32   0xffffe000ULL
#define USER_END_3GB  0xc0000000ULL
#define LAST_SIGNAL   64

struct growth {
	struct ckpt_build *b;
	struct ckpt_born *procs;     /* parallel to b->procs */
	struct ckpt_born *stand_ins; /* as many as there are operations, at most */
	size_t n_stand_ins;
};

static struct ckpt_born *find(struct growth *g, pid_t vpid)
{
	struct ckpt_build_proc *p = ckpt_build_proc(g->b, vpid);

	if (p)
		return &g->procs[p - g->b->procs];
	for (size_t i = 0; i < g->n_stand_ins; i++)
		if (g->stand_ins[i].vpid == vpid)
			return &g->stand_ins[i];
	return NULL;
}

/* Where a new task of the plan is kept. */
static struct ckpt_born *slot(struct growth *g, pid_t vpid)
{
	struct ckpt_born *t = find(g, vpid);

	if (!t)
		t = &g->stand_ins[g->n_stand_ins++];
	t->vpid = vpid;
	return t;
}

/* ---- numbers without a namespace ------------------------------------------------------------- */

static void tell_ended(const struct ckpt_build *b, const struct ckpt_born *t, bool headless)
{
	const struct ckpt_names *names = b->world->names;

	if (names)
		names->ended(names->ctx, t->pid, headless);
}

/* ---- the seed ------------------------------------------------------------------------------- */

/* Until it has left the memory of pid 1 behind it can't be traced. */
static int seize(const struct ckpt_build *b, pid_t pid, struct err *e)
{
	uint64_t deadline = io_now_ns() + WAIT_NS;

	/* Where names are rewritten it is traced from birth. */
	while (!b->world->names && ptrace(PTRACE_SEIZE, pid, 0, SEIZE_OPTIONS) < 0) {
		if (errno != EPERM || io_now_ns() > deadline)
			return err_errno(e, -errno, "cannot trace the first process");
		usleep(200);
	}
	if (ptrace(PTRACE_INTERRUPT, pid, 0, 0) < 0)
		return err_errno(e, -errno, "cannot stop the first process");
	return 0;
}

static int await_stop(struct ckpt_build *b, pid_t pid, struct err *e)
{
	int status, r;

	do {
		r = trace_wait(b->host_proc, pid, io_now_ns() + WAIT_NS, &status);
		if (r < 0)
			return err_errno(e, r, "the first process does not stop");
		if (trace_event(status) == PTRACE_EVENT_STOP)
			return 0;
	} while (ptrace(PTRACE_CONT, pid, 0, 0) == 0);
	return err_errno(e, -errno, "the first process does not stop");
}

static void raise_limits(pid_t pid)
{
	const struct rlimit no_core = {0, RLIM_INFINITY};
	struct rlimit lim;

	if (prlimit(pid, RLIMIT_NOFILE, NULL, &lim) == 0) {
		lim.rlim_cur = lim.rlim_max;
		prlimit(pid, RLIMIT_NOFILE, &lim, NULL);
	}
	if (prlimit(pid, RLIMIT_CORE, NULL, &lim) == 0) {
		lim.rlim_cur = no_core.rlim_cur;
		prlimit(pid, RLIMIT_CORE, &lim, NULL);
	}
}

static void add_unmap_all(const struct ckpt_build *b, struct remote *r, uint64_t last)
{
	uint64_t end = b->area + REMOTE_AREA_SIZE;

	remote_add(r, SYS_munmap, 0, b->area, 0, 0, 0, 0);
	remote_add(r, SYS_munmap, end, last - end, 0, 0, 0, 0);
}

static int make_blank(struct ckpt_build *b, struct remote *r, struct err *e)
{
	const uint64_t action[4] = {0};
	uint64_t at = remote_put(r, action, sizeof(action));

	remote_add(r, SYS_close_range, 0, ~0U, 0, 0, 0, 0);
	for (uint64_t sig = 1; sig <= LAST_SIGNAL; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			remote_add(r, SYS_rt_sigaction, sig, at, 0, 8, 0, 0);
	add_unmap_all(b, r, USER_END);
	return ckpt_run_all(r, "cannot blank the first process", e);
}

static int make_seed(struct growth *g, pid_t vpid, struct err *e)
{
	struct ckpt_build *b = g->b;
	struct ckpt_born *t = slot(g, vpid);
	int r;

	t->lend_fd = -1;
	r = b->world->seed(b->world->ctx, vpid, &t->pid, e);

	if (r == 0)
		r = ckpt_birth_note(b, t->pid, e);
	if (r == 0)
		r = seize(b, t->pid, e);
	if (r == 0)
		r = await_stop(b, t->pid, e);
	if (r == 0 && b->world->names) {
		ptrace(PTRACE_SETOPTIONS, t->pid, 0, SEIZE_OPTIONS);
		r = ckpt_birth_tell(b, vpid, t->pid, t->pid, e);
	}
	if (r < 0)
		return r;
	raise_limits(t->pid);
	if (b->one_cpu) {
		cpu_set_t one;

		if (sched_getaffinity(0, sizeof(one), &one) == 0)
			sched_setaffinity(t->pid, sizeof(one), &one);
	}
	r = trace_set_mask(t->pid, ~0ULL);
	if (r < 0)
		return err_errno(e, r, "signal mask of the first process");
	r = remote_open(&t->remote, b->host_proc, t->pid, b->area, e);
	if (r == 0)
		r = make_blank(b, t->remote, e);
	/* Where names are rewritten descriptors are lent without it. */
	if (r == 0 && !b->world->names)
		r = ckpt_lend_bootstrap(b, t->remote, &t->lend_fd, e);
	return r;
}

/* ---- descendants ---------------------------------------------------------------------------- */

/* Ends @t by exit or exit_group; its tracer has seen it when this returns. */
static int end_task(
	const struct ckpt_build *b, struct ckpt_born *t, long call, int code, struct err *e)
{
	int r;

	remote_add(t->remote, call, (uint64_t)code, 0, 0, 0, 0, 0);
	r = remote_run(t->remote, false, e);
	if (r != -ESRCH)
		return r < 0 ? r
			     : err_set(e, ERR_FAILED, -EBUSY, "process %d does not end", t->vpid);
	remote_forget(take_ptr(t->remote));
	tell_ended(b, t, call == SYS_exit);
	return 0;
}

/* @t was made by @parent. */
static int reap(struct ckpt_born *parent, const struct ckpt_born *t, struct err *e)
{
	return remote_must(
		parent->remote, NULL, e, SYS_wait4, (uint64_t)t->told, 0, __WALL, 0, 0, 0);
}

static int make_orphan(
	struct growth *g, const struct ckpt_tree_op *o, uint64_t flags, struct err *e)
{
	struct ckpt_born *maker = find(g, o->who), *adopter = find(g, o->adopter);
	struct ckpt_born helper = {0};
	int r = 0;

	if (o->adopter != 1)
		r = remote_must(
			adopter->remote, NULL, e, SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0, 0);
	if (r == 0)
		r = ckpt_birth_child(g->b, maker, o->user, 0, flags, 0, &helper, e);
	if (r == 0)
		r = ckpt_birth(g->b, o, &helper, flags, SIGCHLD, slot(g, o->target), e);
	if (r == 0)
		r = end_task(g->b, &helper, SYS_exit_group, 0, e);
	if (r == 0)
		r = reap(maker, &helper, e);
	if (r == 0 && o->adopter != 1)
		r = remote_must(
			adopter->remote, NULL, e, SYS_prctl, PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0, 0);
	remote_forget(helper.remote);
	return r;
}

static pid_t said(struct growth *g, pid_t by, pid_t number)
{
	const struct ckpt_build_proc *p = ckpt_build_proc(g->b, by);

	return p ? ckpt_nested_said(g->b, p, number) : ckpt_said(g->b->world, number);
}

static int carry_out(struct growth *g, const struct ckpt_tree_op *o, struct err *e)
{
	struct ckpt_born *who = o->type == CKPT_TREE_SEED ? NULL : find(g, o->who);
	uint64_t flags = (o->share_mm ? CLONE_VM : 0) | (o->share_sighand ? CLONE_SIGHAND : 0) |
			 (o->share_files ? CLONE_FILES : 0) | (o->share_fs ? CLONE_FS : 0);
	int r;

	switch (o->type) {
	case CKPT_TREE_SEED:
		return make_seed(g, o->target, e);
	case CKPT_TREE_CHILD:
		return ckpt_birth(g->b, o, who, flags, o->exit_signal, slot(g, o->target), e);
	case CKPT_TREE_SIBLING:
		return ckpt_birth(g->b, o, who, flags | CLONE_PARENT, 0, slot(g, o->target), e);
	case CKPT_TREE_ORPHAN:
		return make_orphan(g, o, flags, e);
	case CKPT_TREE_SETSID:
		r = remote_must(who->remote, NULL, e, SYS_setsid, 0, 0, 0, 0, 0, 0);
		return r < 0 ? r : ckpt_pty_controlling(g->b, o->who, who->remote, who->lend_fd, e);
	case CKPT_TREE_SETPGID:
		return remote_must(who->remote, NULL, e, SYS_setpgid, 0,
			(uint64_t)(o->who == o->target ? 0 : said(g, o->who, o->target)), 0, 0, 0,
			0);
	case CKPT_TREE_UNSHARE:
		return ckpt_birth_unshare(g->b, o, who, e);
	case CKPT_TREE_END:
		r = end_task(g->b, who, SYS_exit_group, 0, e);
		return r < 0 || o->target == 1 ? r : reap(find(g, o->target), who, e);
	}
	return -EINVAL;
}

/* ---- programs ------------------------------------------------------------------------------- */

static bool shares_memory(const struct ckpt_build *b, const struct ckpt_build_proc *p)
{
	for (size_t i = 0; i < b->n_procs; i++)
		if (&b->procs[i] != p && b->procs[i].mm == p->mm && !b->procs[i].zombie)
			return true;
	return false;
}

/*
 * Where the kernel puts mappings is decided by an exec, and by what the process says of its
 * personality then. Here it may be refused; kind sched says so.
 */
static int set_personality(
	struct ckpt_build *b, struct ckpt_build_proc *p, uint32_t *ret, struct err *e)
{
	struct remote *r = p->threads[0].remote;
	struct ckpt_record *rec = ckpt_build_record(b, PROTO_KIND_SCHED, (uint64_t)p->vpid);
	Pb__Sched *m = rec ? pb__sched__unpack(NULL, rec->len, rec->body) : NULL;
	uint32_t its = m ? m->personality & ~(uint32_t)READ_IMPLIES_EXEC : 0;
	long v;
	int k;

	pb__sched__free_unpacked(m, NULL);
	*ret = (uint32_t)personality(0xffffffff);
	if (its == *ret)
		return 0;
	k = remote_call(r, &v, e, SYS_personality, its, 0, 0, 0, 0, 0);
	if (k == 0 && v >= 0)
		*ret = its;
	return k;
}

static int reexec(struct ckpt_build *b, struct ckpt_build_proc *p, const char *path, struct err *e)
{
	struct remote **r = &p->threads[0].remote;
	const struct ckpt_paths *paths = b->world->paths;
	char room[PATH_MAX], host[PATH_MAX + 2];
	uint64_t last = USER_END;
	uint32_t its;
	int k;

	if (!paths || !paths->program || paths->program(paths->ctx, path, host) < 0)
		snprintf(host, sizeof(host), "/%s", ckpt_where_below(b->world, path, room));
	k = set_personality(b, p, &its, e);
	if (k < 0)
		return k;
	k = remote_reexec(r, host, b->area, SEIZE_OPTIONS, e);
	if (k < 0)
		return k;
	if (i386_runs(remote_regs(*r)))
		last = its & ADDR_LIMIT_3GB ? USER_END_3GB : USER_END_32;
	add_unmap_all(b, *r, last);
	return ckpt_run_all(*r, "cannot blank a process", e);
}

/*
 * It is the program that the process has mapped, too; if it is another one by now, that is not to
 * run.
 */
static int recognise(struct ckpt_build *b, const Pb__Mm *m, struct err *e)
{
	for (size_t i = 0; i < m->n_files; i++)
		if (strcmp(m->files[i]->path, m->exe->path) == 0)
			return ckpt_file_recognise(b, m->files[i], false, e);
	return 0;
}

/*
 * Without capabilities a process runs what it has executed (ckpt/remote/reexec.c); what shares
 * memory runs what its maker ran.
 */
static int execute_programs(struct ckpt_build *b, struct err *e)
{
	for (size_t i = 0; i < b->n_procs; i++) {
		struct ckpt_build_proc *p = &b->procs[i];
		struct ckpt_record *rec = ckpt_build_record(b, PROTO_KIND_MM, (uint64_t)p->vpid);
		Pb__Mm *m;
		int r = 0;

		if (p->zombie || !rec || shares_memory(b, p))
			continue;
		m = pb__mm__unpack(NULL, rec->len, rec->body);
		if (m && m->exe && m->exe->path[0] == '/' && strlen(m->exe->path) < PATH_MAX)
			r = recognise(b, m, e);
		if (r == 0 && m && m->exe && m->exe->path[0] == '/' &&
			strlen(m->exe->path) < PATH_MAX)
			r = reexec(b, p, m->exe->path, e);
		pb__mm__free_unpacked(m, NULL);
		if (r < 0)
			return err_wrap(e, "task %d", p->vpid);
	}
	return 0;
}

/* ---- threads -------------------------------------------------------------------------------- */

/* The threads from number @from on, as many as one batch can tell about. */
static int make_threads(
	struct ckpt_build *b, struct ckpt_build_proc *p, size_t from, size_t n, struct err *e)
{
	struct remote *leader = p->threads[0].remote;
	int r = 0;

	for (size_t i = from; r == 0 && i < from + n; i++)
		r = ckpt_birth_add_thread(b, p, i, leader, e);
	if (r == 0)
		r = ckpt_run_all(leader, "cannot make threads", e);
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct ckpt_build_thread *t = &p->threads[from + i];

		t->tid = remote_born(leader, (int)i);
		r = ckpt_birth_tell(b, t->vtid, t->tid, p->pid, e);
		if (r == 0)
			r = ckpt_nested_check(b, p, from + i, t->tid, b->level, e);
		if (r == 0)
			r = remote_open_thread(&t->remote, t->tid, leader, e);
	}
	return r;
}

static int grow_threads(struct ckpt_build *b, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < b->n_procs; i++) {
		struct ckpt_build_proc *p = &b->procs[i];
		/* What comes next is chosen for one at a time. */
		size_t step = ckpt_ns_any(&p->ns) ? 1 : REMOTE_MAX_BORN;

		for (size_t k = 1; r == 0 && k < p->n_threads; k += step)
			r = make_threads(b, p, k, MIN(p->n_threads - k, step), e);
		if (r < 0)
			return err_wrap(e, "task %d", p->vpid);
	}
	return 0;
}

/* ---- zombies -------------------------------------------------------------------------------- */

static int wait_status(const struct ckpt_build_proc *p)
{
	Pb__Task *m = pb__task__unpack(NULL, p->record->len, p->record->body);
	int status = m ? m->wait_status : 0;

	pb__task__free_unpacked(m, NULL);
	return status;
}

/* Ends @t by a signal: it is sent while blocked, unblocked with the last registers, and kills the
 * task before its first instruction. */
static int end_by_signal(const struct ckpt_build *b, struct ckpt_born *t, int sig, struct err *e)
{
	int status;
	_cleanup_close_ int pidfd = sys_pidfd_open(t->pid, 0);
	struct pollfd p = {pidfd, POLLIN, 0};
	struct remote *remote = take_ptr(t->remote);
	int r;

	if (pidfd < 0 || kill(t->pid, sig) < 0)
		return err_errno(e, -errno, "process %d", t->vpid);
	*remote_sigmask(remote) = 0;
	r = remote_close(remote, e);
	if (r < 0 && sig != SIGKILL)
		return r;
	ptrace(b->world->names ? PTRACE_CONT : PTRACE_DETACH, t->pid, 0, 0);
	while (b->world->names &&
		trace_wait(b->host_proc, t->pid, io_now_ns() + WAIT_NS, &status) == 0)
		ptrace(PTRACE_CONT, t->pid, 0, trace_event(status) ? 0 : WSTOPSIG(status));
	tell_ended(b, t, false);
	if (poll(&p, 1, WAIT_NS / 1000000) != 1)
		return err_set(e, ERR_FAILED, -EBUSY, "process %d does not end", t->vpid);
	waitpid(t->pid, NULL, __WALL | WNOHANG);
	return 0;
}

static int make_zombies(struct growth *g, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < g->b->n_procs; i++) {
		const struct ckpt_build_proc *p = &g->b->procs[i];
		int status;

		if (!p->zombie)
			continue;
		status = wait_status(p);
		if (WIFSIGNALED(status))
			r = end_by_signal(g->b, &g->procs[i], WTERMSIG(status), e);
		else
			r = end_task(g->b, &g->procs[i], SYS_exit_group, WEXITSTATUS(status), e);
	}
	return r;
}

/* ---- first threads that end ------------------------------------------------------------------ */

/* By exit(2), which ends one thread only; under the name it had. */
static int end_head(const struct ckpt_build *b, struct ckpt_build_proc *p, struct err *e)
{
	struct ckpt_born head = {
		.vpid = p->vpid, .pid = p->pid, .remote = take_ptr(p->threads[0].remote)};
	Pb__Task *m = pb__task__unpack(NULL, p->record->len, p->record->body);
	char name[16] = "";
	int r;

	strncpy(name, m ? m->name : "", sizeof(name) - 1);
	pb__task__free_unpacked(m, NULL);
	remote_add(head.remote, SYS_prctl, PR_SET_NAME, remote_put(head.remote, name, sizeof(name)),
		0, 0, 0, 0);
	r = end_task(b, &head, SYS_exit, 0, e);
	remote_forget(head.remote);
	free(p->threads[0].cpus);
	p->n_threads--;
	memmove(p->threads, p->threads + 1, p->n_threads * sizeof(*p->threads));
	return r;
}

int ckpt_grow_heads(struct ckpt_build *b, struct err *e)
{
	for (size_t i = 0; i < b->n_procs; i++)
		if (b->procs[i].headless && end_head(b, &b->procs[i], e) < 0)
			return err_wrap(e, "task %d", b->procs[i].vpid);
	return 0;
}

/* ---- all together ---------------------------------------------------------------------------- */

static int make_plan(struct ckpt_build *b, struct ckpt_tree_op **ret, size_t *ret_n, struct err *e)
{
	_cleanup_free_ struct ckpt_tree_node *nodes = calloc(b->n_procs + 1, sizeof(*nodes));

	if (!nodes)
		return err_errno(e, -ENOMEM, "process tree");
	for (size_t i = 0; i < b->n_procs; i++) {
		const struct ckpt_build_proc *p = &b->procs[i];
		Pb__Task *m = pb__task__unpack(NULL, p->record->len, p->record->body);

		if (!m)
			return ckpt_record_bad(p->record, e);
		nodes[i] = (struct ckpt_tree_node){
			.vpid = p->vpid,
			.ppid = m->ppid,
			.pgid = m->pgid,
			.sid = m->sid,
			.exit_signal = m->exit_signal,
			.mm = p->mm,
			.sighand = p->sighand,
			.files = p->files,
			.fs = p->fs,
		};
		ckpt_nested_node(b->nested, b->n_nested, &p->ns, &nodes[i]);
		pb__task__free_unpacked(m, NULL);
	}
	return ckpt_tree_plan(nodes, b->n_procs, ret, ret_n, e) < 0 ? err_reclass(e, ERR_IMAGE) : 0;
}

/* Closed also if it may not be written to: it would be in the way of what is to come. */
static void write_last(struct remote *r, pid_t last)
{
	struct remote_arg args[6] = {{0}};
	char text[16];
	int at = remote_add(r, SYS_open, remote_put_str(r, "/proc/sys/kernel/ns_last_pid"),
		O_WRONLY | O_CLOEXEC, 0, 0, 0, 0);

	args[0] = REMOTE_RESULT(at);
	snprintf(text, sizeof(text), "%d", last);
	args[1] = REMOTE_ARG(remote_put_str(r, text));
	args[2] = REMOTE_ARG(strlen(text));
	remote_add_args(r, SYS_write, args);
	remote_add_args(r, SYS_close, args);
	remote_run(r, false, NULL);
}

/*
 * Numbers of processes to come go on behind the highest there is, as they would have.  Who is in a
 * sandbox has no right to say so; where all are, a helper does.
 */
static void continue_numbers(struct ckpt_build *b)
{
	struct remote *r = NULL;
	pid_t last = 0;

	for (size_t i = 0; i < b->n_procs; i++) {
		const struct ckpt_build_proc *p = &b->procs[i];

		last = MAX(last, p->vpid);
		for (size_t k = 0; k < p->n_threads; k++)
			last = MAX(last, p->threads[k].vtid);
		if (!p->zombie && !r && !ckpt_ns_any(&p->ns))
			r = p->threads[0].remote;
	}
	if (b->world->names)
		b->world->names->last(b->world->names->ctx, last);
	else if (r)
		write_last(r, last);
	else if (ckpt_scribe_next(b, 0, last + 1, &(struct err){0}) < 0)
		log_info("numbers of processes to come begin anew");
}

/* From here on the processes' remotes belong to the build. */
static void hand_over(struct growth *g)
{
	for (size_t i = 0; i < g->b->n_procs; i++) {
		struct ckpt_build_proc *p = &g->b->procs[i];

		p->pid = g->procs[i].pid;
		if (p->zombie)
			continue;
		p->lend_fd = g->procs[i].lend_fd;
		p->threads[0].tid = p->pid;
		p->threads[0].remote = take_ptr(g->procs[i].remote);
	}
}

static bool shares(const struct ckpt_build_proc *p, const struct ckpt_build_proc *q)
{
	return p->mm == q->mm || p->files == q->files || p->fs == q->fs || p->sighand == q->sighand;
}

/* So that the next freeze need not try who shares what (ckpt/survey/sharing.c). */
static void tell_who_is_alone(const struct ckpt_build *b)
{
	const struct ckpt_names *names = b->world->names;

	for (size_t i = 0; names && i < b->n_procs; i++) {
		const struct ckpt_build_proc *p = &b->procs[i];
		bool alone = !p->zombie;

		for (size_t k = 0; alone && k < b->n_procs; k++)
			alone = k == i || b->procs[k].zombie || !shares(p, &b->procs[k]);
		if (alone)
			names->alone(names->ctx, p->pid);
	}
}

int ckpt_grow(struct ckpt_build *b, struct err *e)
{
	struct growth g = {.b = b};
	_cleanup_free_ struct ckpt_born *procs = NULL, *stand_ins = NULL;
	_cleanup_free_ struct ckpt_tree_op *ops = NULL;
	size_t n_ops = 0;
	int r = make_plan(b, &ops, &n_ops, e);

	if (r < 0)
		return r;
	b->level = proc_level(b->host_proc, b->world->init_pid);
	procs = g.procs = calloc(b->n_procs + 1, sizeof(*procs));
	stand_ins = g.stand_ins = calloc(n_ops + 1, sizeof(*stand_ins));
	if (!procs || !stand_ins)
		return err_errno(e, -ENOMEM, "process tree");
	for (size_t i = 0; r == 0 && i < n_ops; i++)
		r = carry_out(&g, &ops[i], e);
	if (r == 0)
		r = make_zombies(&g, e);
	hand_over(&g);
	for (size_t i = 0; i < b->n_procs; i++)
		remote_forget(procs[i].remote);
	for (size_t i = 0; i < g.n_stand_ins; i++)
		remote_forget(stand_ins[i].remote);
	if (r == 0 && b->world->names)
		r = execute_programs(b, e);
	if (r == 0)
		r = grow_threads(b, e);
	if (r == 0)
		continue_numbers(b);
	if (r == 0)
		tell_who_is_alone(b);
	return r;
}
