// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in hold.h. */
#include "supervisor/rewrite/hold.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/ipc/ckpt.h"
#include "supervisor/rewrite/pts.h"
#include "supervisor/rewrite/rewriter_state.h"
#include "supervisor/rewrite/robust.h"
#include "supervisor/rewrite/signals.h"
#include "supervisor/rewrite/users/caps.h"
#include "supervisor/rewrite/users/users.h"
#include "supervisor/rewrite/view/calls.h"
#include "supervisor/rewrite/view/later.h"
#include "supervisor/rewrite/view/view.h"

#define NAP_NS (1000 * 1000L)

/* What a held task is traced with: births are told to whoever makes calls in it, its end is not. */
#define HELD_OPTIONS                                                           \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | \
		PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL)

/* One that can be held. */
static bool lives(const struct rewriter *w, const struct task *task)
{
	return task && !task->gone && !task->headless && task->host != w->init;
}

static pid_t number(void *rewriter, pid_t host)
{
	return numbers_virtual(((struct rewriter *)rewriter)->rw.tasks.numbers, host);
}

static pid_t host_of(void *rewriter, pid_t number)
{
	return numbers_host(((struct rewriter *)rewriter)->rw.tasks.numbers, number);
}

static pid_t kin(void *rewriter, pid_t host)
{
	const struct task *task = tasks_find(&((struct rewriter *)rewriter)->rw.tasks, host);

	return task ? task->kin : 0;
}

static bool parted(void *rewriter, pid_t host)
{
	const struct task *task = tasks_find(&((struct rewriter *)rewriter)->rw.tasks, host);

	return !task || task->parted;
}

static bool caps(void *rewriter, pid_t host, struct ckpt_caps *ret)
{
	const struct tasks *t = &((struct rewriter *)rewriter)->rw.tasks;
	const struct task *task = tasks_find(t, host);

	if (!task || !t->users || !t->users->root)
		return false;
	*ret = (struct ckpt_caps){task->caps.inheritable, task->caps.permitted,
		task->caps.effective, task->caps.bounding, task->caps.ambient};
	return true;
}

static void give_caps(void *rewriter, pid_t host, const struct ckpt_caps *c)
{
	struct task *task = tasks_find(&((struct rewriter *)rewriter)->rw.tasks, host);

	if (task)
		task->caps = (struct task_caps){c->effective, c->permitted, c->inheritable,
			c->bounding, c->ambient, c->effective != c->bounding};
}

/* Its limits have been rebuilt, which hold its ids. */
static void know_ids(struct rewriter *w, struct task *task)
{
	struct users u;

	if (!w->rw.tasks.users || task->tgid != task->host)
		return;
	rewrite_users_load(w->rw.tasks.users, task->host, &u);
	task->uid = u.uid.real;
}

static void seen(void *rewriter, siginfo_t *info)
{
	rewrite_siginfo(&((struct rewriter *)rewriter)->rw.tasks, info);
}

static ssize_t list(void *rewriter, struct ckpt_held **ret)
{
	struct rewriter *w = rewriter;
	const struct tasks *t = &w->rw.tasks;
	ssize_t n = 0;

	*ret = calloc(t->n + 1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	for (int i = 1; i < NUMBERS_MAX; i++) {
		const struct task *one = t->all[i];
		bool zombie = one && (one->headless || tasks_is_zombie(t, one));

		if (lives(w, one) || zombie)
			(*ret)[n++] = (struct ckpt_held){.pid = one->tgid,
				.tid = one->host,
				.zombie = zombie,
				.stop_signal = one->stop_signal};
	}
	return n;
}

/* ---- until all stand still ------------------------------------------------------------------ */

static int take_statuses(struct rewriter *w)
{
	int n = 0, status;
	pid_t host;

	while ((host = waitpid(-1, &status, __WALL | WNOHANG)) > 0) {
		rewriter_status(w, host, status);
		n++;
	}
	return n;
}

static const struct task *who_moves(const struct rewriter *w)
{
	for (int i = 1; i < NUMBERS_MAX; i++) {
		const struct task *one = w->rw.tasks.all[i];

		if (lives(w, one) && !one->held)
			return one;
	}
	return NULL;
}

/* Children for which a parent sleeps in vfork run on, and stop after it. */
static void help_vfork(struct rewriter *w)
{
	for (int i = 1; i < NUMBERS_MAX; i++) {
		struct task *one = w->rw.tasks.all[i];
		const struct task *parent;

		if (!lives(w, one) || !one->vforked_by)
			continue;
		parent = tasks_find(&w->rw.tasks, one->vforked_by);
		if (parent && parent->held)
			parent = NULL;
		if (parent && one->held && !one->stop_signal) {
			one->held = false;
			one->loose = true;
			ptrace(PTRACE_CONT, one->host, 0, 0);
		} else if (!parent && one->loose) {
			one->loose = false;
			ptrace(PTRACE_INTERRUPT, one->host, 0, 0);
		}
	}
}

/* The first thread of a process that has ended stands in the way of nobody. */
static void find_headless(struct rewriter *w)
{
	pid_t parent;
	char state;

	for (int i = 1; i < NUMBERS_MAX; i++) {
		struct task *one = w->rw.tasks.all[i];

		if (lives(w, one) && !one->held && tasks_look(one->host, &state, &parent) &&
			state == 'Z')
			one->headless = true;
	}
}

static void tell_all(struct rewriter *w)
{
	for (int i = 1; i < NUMBERS_MAX; i++)
		if (lives(w, w->rw.tasks.all[i]))
			ptrace(PTRACE_INTERRUPT, w->rw.tasks.all[i]->host, 0, 0);
}

static int too_late(const struct task *culprit, struct err *e)
{
	pid_t parent;
	char state;

	if (culprit->vforked_by)
		return err_set(e, ERR_UNFREEZABLE, -ETIMEDOUT,
			"task %d was started by vfork and has not called exec yet",
			culprit->number);
	return err_set(e, ERR_UNFREEZABLE, -ETIMEDOUT,
		tasks_look(culprit->host, &state, &parent) && state == 'D'
			? "task %d is in an uninterruptible sleep and can't be stopped"
			: "task %d does not stop",
		culprit->number);
}

static int stop_all(struct rewriter *w, uint64_t deadline, const sigset_t *chld, struct err *e)
{
	const struct timespec nap = {.tv_nsec = NAP_NS};
	const struct task *culprit;

	tell_all(w);
	for (;;) {
		pthread_mutex_lock(&w->rw.lock);
		while (take_statuses(w) > 0)
			;
		culprit = who_moves(w);
		pthread_mutex_unlock(&w->rw.lock);
		if (!culprit)
			return 0;
		if (io_now_ns() > deadline)
			return too_late(culprit, e);
		if (sigtimedwait(chld, NULL, &nap) < 0) {
			help_vfork(w);
			view_later_let_go();
			find_headless(w);
		}
	}
}

/* Who was killed while it was held has been waited for already: nobody will tell of its end. */
static void let_go(struct rewriter *w, struct task *task)
{
	task->held = task->loose = false;
	task->watch = WATCH_UNKNOWN;
	robust_watch(task, true);
	if (ptrace(task->stop_signal ? PTRACE_LISTEN : PTRACE_CONT, task->host, 0, 0) < 0 &&
		errno == ESRCH &&
		waitid(P_PID, (id_t)task->host, &(siginfo_t){0},
			WEXITED | WNOHANG | WNOWAIT | __WALL) < 0)
		tasks_end(&w->rw.tasks, task);
}

static void let_all_go(struct rewriter *w)
{
	size_t left = 0;

	for (int i = 1; i < NUMBERS_MAX; i++)
		left += lives(w, w->rw.tasks.all[i]) && w->rw.tasks.all[i]->held;
	for (size_t i = 1, half = left / 2; i < NUMBERS_MAX; i++) {
		if (!lives(w, w->rw.tasks.all[i]) || !w->rw.tasks.all[i]->held)
			continue;
		if (left-- == half + 1)
			fault_at(FAULT_RELEASE_HALF, NULL);
		know_ids(w, w->rw.tasks.all[i]);
		let_go(w, w->rw.tasks.all[i]);
	}
}

static void release(void *rewriter)
{
	struct rewriter *w = rewriter;

	pthread_mutex_lock(&w->rw.lock);
	ipc_ckpt_close(w->rw.ipc);
	if (w->rw.view) { /* a resumed session gets its name just before */
		view_refresh(w->rw.view);
		view_unsettle(w->rw.view);
	}
	w->hold = false;
	w->rw.trusting = false;
	let_all_go(w);
	pthread_mutex_unlock(&w->rw.lock);
}

static int stop(void *rewriter, uint32_t deadline_ms, struct err *e)
{
	struct rewriter *w = rewriter;
	sigset_t chld, old;
	int r;

	w->hold = true;
	/* Blocked, one that comes between the look and the nap ends the nap. */
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &chld, &old);
	r = stop_all(w, io_now_ns() + deadline_ms * 1000000ULL, &chld, e);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (r < 0)
		return r;
	for (int i = 1; i < NUMBERS_MAX; i++)
		if (lives(w, w->rw.tasks.all[i]))
			ptrace(PTRACE_SETOPTIONS, w->rw.tasks.all[i]->host, 0, HELD_OPTIONS);
	w->rw.trusting = true;
	/* One that was renamed, and another one has the place where its files were. */
	pthread_mutex_lock(&w->rw.lock);
	if (w->rw.view)
		view_refresh(w->rw.view);
	pthread_mutex_unlock(&w->rw.lock);
	return 0;
}

/* ---- copies of memory ----------------------------------------------------------------------- */

/* n_copies: it is none. */
static size_t find_copy(const struct rewriter *w, pid_t host)
{
	size_t i = 0;

	while (i < w->n_copies && w->copies[i] != host)
		i++;
	return i;
}

static int copied(void *rewriter, pid_t host)
{
	struct rewriter *w = rewriter;
	pid_t *more = realloc(w->copies, (w->n_copies + 1) * sizeof(*more));

	if (!more)
		return -ENOMEM;
	w->copies = more;
	w->copies[w->n_copies++] = host;
	return 0;
}

static bool uncopied(void *rewriter, pid_t host)
{
	struct rewriter *w = rewriter;
	size_t i = find_copy(w, host);

	if (i == w->n_copies)
		return false;
	w->copies[i] = w->copies[--w->n_copies];
	return true;
}

bool hold_is_copy(struct rewriter *w, pid_t host, int status)
{
	if (find_copy(w, host) == w->n_copies)
		return false;
	if (!WIFSTOPPED(status))
		uncopied(w, host);
	return true;
}

/* ---- tasks that are rebuilt ----------------------------------------------------------------- */

static int born(void *rewriter, pid_t number, pid_t host, pid_t pid)
{
	struct rewriter *w = rewriter;
	struct task *task;

	pthread_mutex_lock(&w->rw.lock);
	task = tasks_add_as(&w->rw.tasks, host, number);
	if (task) {
		task->tgid = pid;
		if (pid != host && tasks_find(&w->rw.tasks, pid))
			tasks_find(&w->rw.tasks, pid)->threaded = true;
		task->lives = task->told = task->held = task->inherited = true;
		users_caps_all(&task->caps);
		task->kin = 1; /* it may share with any of them */
	}
	pthread_mutex_unlock(&w->rw.lock);
	return task ? 0 : -EEXIST;
}

static void ended(void *rewriter, pid_t host, bool headless)
{
	struct rewriter *w = rewriter;
	struct task *task;

	pthread_mutex_lock(&w->rw.lock);
	task = tasks_find(&w->rw.tasks, host);
	if (task && headless)
		task->headless = true;
	else if (task)
		tasks_end(&w->rw.tasks, task);
	pthread_mutex_unlock(&w->rw.lock);
}

static void stopped(void *rewriter, pid_t host, int sig)
{
	struct task *task = tasks_find(&((struct rewriter *)rewriter)->rw.tasks, host);

	if (task)
		task->stop_signal = sig;
}

static void alone(void *rewriter, pid_t host)
{
	struct rewriter *w = rewriter;
	struct task *task;

	pthread_mutex_lock(&w->rw.lock);
	task = tasks_find(&w->rw.tasks, host);
	if (task)
		task->kin = task->number;
	pthread_mutex_unlock(&w->rw.lock);
}

static void alias(void *rewriter, pid_t number, pid_t host)
{
	numbers_alias(((struct rewriter *)rewriter)->rw.tasks.numbers, number, host);
}

static void last(void *rewriter, pid_t number)
{
	numbers_go_on(((struct rewriter *)rewriter)->rw.tasks.numbers, number);
}

static void queued(void *rewriter, void *siginfo)
{
	rewrite_siginfo_back(&((struct rewriter *)rewriter)->rw.tasks, siginfo);
}

static const char *host_name(void *rewriter)
{
	return ((struct rewriter *)rewriter)->rw.host.node;
}

static int say(void *rewriter, const char *host, char ret[PATH_MAX])
{
	const struct view *view = ((struct rewriter *)rewriter)->rw.view;

	memcpy(ret, "/proc/", 6);
	if (procfs_of_copy(host, ret + 6, PATH_MAX - 6) >= 0)
		return 0;
	return view_say(view, host, ret);
}

/* NULL unless @path is in a /proc of ours; *ret_below is behind it then. */
static struct procfs *proc_of(const struct rewriter *w, const char *path, const char **ret_below)
{
	const size_t n = strlen("/proc");

	if (!w->rw.view->procfs || strncmp(path, "/proc", n) != 0 || (path[n] && path[n] != '/'))
		return NULL;
	*ret_below = path + n + (path[n] == '/');
	return w->rw.view->procfs;
}

/* A process that is gone must not be one of the host's. */
static int find_in_proc(const struct procfs *p, const char *below, char ret[PATH_MAX])
{
	int r = procfs_to_host(p, below, ret);

	if (r == -ENOENT)
		strcpy(ret, "/proc/nobody");
	return r == -ENOENT ? 0 : r;
}

static int find(void *rewriter, const char *path, char ret[PATH_MAX])
{
	const struct rewriter *w = rewriter;
	const char *below;
	const struct procfs *p = proc_of(w, path, &below);

	return p ? find_in_proc(p, below, ret) : view_host_path(w->rw.view, path, ret);
}

static int brief(void *rewriter, const char *host, char *ret, size_t size)
{
	return view_short(((struct rewriter *)rewriter)->rw.view, host, ret, size);
}

static int open_made(void *rewriter, const char *path, int flags, bool copied)
{
	const char *below;
	struct procfs *p = proc_of(rewriter, path, &below);

	return p ? procfs_reopen(p, below, flags, copied) : -ENOTSUP;
}

static int settle(void *rewriter, const char *path, int fd)
{
	const char *below;
	struct procfs *p = proc_of(rewriter, path, &below);

	return p ? procfs_settle(p, below, fd) : 0;
}

static int program(void *rewriter, const char *path, char ret[PATH_MAX])
{
	return view_exec_path(&((struct rewriter *)rewriter)->rw, path, ret);
}

static int terminal(void *rewriter, unsigned number, unsigned host)
{
	return pts_born(((struct rewriter *)rewriter)->rw.view, number, host);
}

void hold_describe(struct rewriter *w, struct ckpt_names *names, struct ckpt_paths *paths,
	struct ckpt_ipc_names *ipc)
{
	*ipc = ipc_ckpt_names(w->rw.ipc);
	*names = (struct ckpt_names){.number = number,
		.host = host_of,
		.list = list,
		.stop = stop,
		.release = release,
		.copied = copied,
		.uncopied = uncopied,
		.kin = kin,
		.parted = parted,
		.signal = seen,
		.caps = caps,
		.give_caps = give_caps,
		.lend_call = ANSWERS_LEND,
		.lend_key = answers_lend(&w->rw),
		.born = born,
		.ended = ended,
		.stopped = stopped,
		.queued = queued,
		.last = last,
		.host_name = host_name,
		.alone = alone,
		.alias = alias,
		.ctx = w};
	*paths = (struct ckpt_paths){.say = say,
		.host = find,
		.socket = brief,
		.open = open_made,
		.settle = settle,
		.program = program,
		.terminal = terminal,
		.ctx = w};
}
