// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in rewriter.h. */
#include "supervisor/rewrite/rewriter.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/confine.h"
#include "supervisor/rewrite/hold.h"
#include "supervisor/rewrite/orders.h"
#include "supervisor/rewrite/pi.h"
#include "supervisor/rewrite/procfs/begin.h"
#include "supervisor/rewrite/rewriter_state.h"
#include "supervisor/rewrite/robust.h"
#include "supervisor/rewrite/signals.h"
#include "supervisor/rewrite/users/caps.h"
#include "supervisor/rewrite/users/users.h"
#include "supervisor/rewrite/view/calls.h"
#include "supervisor/world/fence.h"
#include "supervisor/world/init.h"
#include "supervisor/world/ns.h"
#include "supervisor/world/world_config.h"

#define SYSCALL_STOP   (SIGTRAP | 0x80)
#define ERESTARTSYS    512 /* linux/errno.h of the kernel */
#define ERESTARTNOINTR 513
#define TURNS	       32
#define AWAIT_NS       (1000 * 1000L)
#define AWAIT_MAX_NS   (10 * 1000000000ULL)

/* It goes on to its next stop; one that is to be held is told so again, because any stop
 * takes back the request. */
static void go_on(const struct rewriter *w, const struct task *task, int request, int sig)
{
	if (w->hold && !task->loose && task->host != w->init)
		ptrace(PTRACE_INTERRUPT, task->host, 0, 0);
	ptrace(request, task->host, 0, (long)sig);
}

/* ---- births --------------------------------------------------------------------------------- */

static void poke_number(const struct task *in, uint64_t addr, pid_t number)
{
	struct iovec local = {&number, sizeof(number)},
		     there = {(void *)(uintptr_t)addr, sizeof(number)};

	if (addr)
		process_vm_writev(in->host, &local, 1, &there, 1, 0);
}

/* Of @host, who makes another or is made, as @task is. */
static int know_birth(struct task *task, pid_t host)
{
	struct user_regs_struct regs;
	struct compat_call call;
	int r;

	if (task->birth.known)
		return 0;
	r = compat_get_birth(host, &call, &regs);
	if (r < 0)
		return r;
	task->birth = (struct task_birth){.known = true, .nr = (int)regs.orig_rax};
	if (task->birth.nr != SYS_clone)
		return 0;
	task->birth.flags = regs.rdi;
	task->birth.parent_tid = regs.rdx;
	task->birth.child_tid = regs.r10;
	return 0;
}

static void begin_life(struct rewriter *w, struct task *task)
{
	if (task->birth.flags & CLONE_CHILD_SETTID)
		poke_number(task, task->birth.child_tid, task->number);
	if (task->birth.flags & CLONE_VM)
		robust_watch(task, true);
	task->lives = true;
	task->waits = false;
	task->held = w->hold && task->host != w->init;
	if (!task->held)
		ptrace(PTRACE_CONT, task->host, 0, 0);
}

/* Its first stop. */
static void on_birth(struct rewriter *w, struct task *task)
{
	if (know_birth(task, task->host) < 0)
		return;
	if (!(task->birth.flags & CLONE_THREAD))
		tasks_inherit_early(&w->rw.tasks, task);
	/* A thread's process is told by the one that made it, as is its number, where that lies
	 * in memory they share. */
	if (task->host != w->init && (task->birth.flags & CLONE_THREAD) && !task->told)
		task->waits = true;
	else
		begin_life(w, task);
}

/*
 * May the child share something with its parent, now or once it has called exec?  (Until then the
 * parent of a vfork sleeps, and is not frozen.)
 */
static bool may_share(const struct task_birth *birth)
{
	uint64_t flags = birth->flags;

	if (birth->nr == SYS_fork || birth->nr == SYS_vfork)
		return false;
	if (birth->nr != SYS_clone)
		return true;
	if (flags & CLONE_VFORK)
		flags &= ~(uint64_t)CLONE_VM;
	return flags & (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_SYSVSEM);
}

/* Of a child that @task has made. */
static pid_t parent_of(const struct rewriter *w, const struct task *task, uint64_t flags)
{
	const struct task *process = tasks_find(&w->rw.tasks, task->tgid);

	if (!(flags & (CLONE_PARENT | CLONE_THREAD)))
		return task->tgid;
	return process ? process->parent : 0;
}

/* Nobody else can change its working directory. */
static bool stands_alone(const struct task *process)
{
	return process->kin == process->number && !process->threaded && !process->has_kin;
}

/* What @child shares with @parent, who has made it, or has from it. */
static void tell_kin(struct rewriter *w, struct task *child, struct task *parent)
{
	struct task *process = tasks_find(&w->rw.tasks, parent->tgid);

	if (may_share(&child->birth)) {
		child->kin = parent->kin;
		child->has_kin = parent->has_kin = true;
		if (process)
			process->has_kin = true;
		return;
	}
	child->kin = child->number;
	if (w->rw.view && process == parent && stands_alone(parent))
		view_stands(w->rw.view, child, parent);
}

/* Seen for the first time: in its first stop, or in that of the call that makes it. */
static struct task *meet(struct rewriter *w, pid_t host)
{
	struct task *task = tasks_born(&w->rw.tasks, host);

	if (task && w->rw.view)
		view_born(w->rw.view, task);
	return task;
}

static void make_thread(struct rewriter *w, struct task *child, pid_t tgid)
{
	struct task *process = tasks_find(&w->rw.tasks, tgid);

	child->tgid = tgid;
	if (!process)
		return;
	process->threaded = true;
	if (~child->birth.flags & (CLONE_FS | CLONE_FILES))
		process->parted = true;
}

/* What the parent tells. */
static void on_born(struct rewriter *w, struct task *parent, int event)
{
	unsigned long host = 0;
	struct task *child;

	if (ptrace(PTRACE_GETEVENTMSG, parent->host, 0, &host) < 0)
		return;
	tasks_bore(&w->rw.tasks, parent);
	child = tasks_find(&w->rw.tasks, (pid_t)host);
	/* One that is gone and was never told of had a short life; others had the number before. */
	if (!child || (child->gone && child->told))
		child = meet(w, (pid_t)host);
	rewrite_call_birth(parent, child ? child->number : 0);
	if (!child) {
		kill((pid_t)host, SIGKILL);
		return;
	}
	if (know_birth(child, parent->host) < 0)
		return;
	if (child->watch == WATCH_UNKNOWN)
		child->watch = parent->watch;
	if (child->birth.flags & CLONE_VM)
		robust_watch(parent, true);
	tasks_inherit(&w->rw.tasks, child, parent);
	if (child->birth.flags & CLONE_THREAD)
		make_thread(w, child, parent->tgid);
	if (child->birth.flags & CLONE_PARENT_SETTID)
		poke_number(parent, child->birth.parent_tid, child->number);
	child->parent = parent_of(w, parent, child->birth.flags);
	child->told = true;
	tell_kin(w, child, parent);
	child->vforked_by = event == PTRACE_EVENT_VFORK && !child->renewed ? parent->host : 0;
	if (child->waits)
		begin_life(w, child);
}

/* ---- stops ---------------------------------------------------------------------------------- */

/* An open that has been left to the kernel, or that the task makes itself, is
 * interrupted as it is. */
static bool is_made(const struct task *task, const struct user_regs_struct *r)
{
	const struct seccomp_data *d = &task->passed;
	int nr = (int)r->orig_rax;
	uint64_t flags;

	if (nr != SYS_open && nr != SYS_openat)
		return false;
	flags = nr == SYS_open ? r->rsi : r->rdx;
	if (flags & (O_CREAT | O_PATH | O_TMPFILE))
		return true;
	return d->nr == nr && d->instruction_pointer == r->rip && d->args[0] == r->rdi &&
	       d->args[1] == r->rsi && d->args[2] == r->rdx;
}

/* A call that was not received yet when the signal came would end with EINTR although it would be
 * answered at once: it is made again instead. */
static void keep_call(const struct task *task)
{
	const size_t rax = offsetof(struct user_regs_struct, rax);
	struct user_regs_struct regs;
	struct compat_call call;

	if (ptrace(PTRACE_PEEKUSER, task->host, rax, 0) == -ERESTARTSYS &&
		compat_get(task->host, &call, &regs) == 0 && answers_has((int)regs.orig_rax) &&
		!is_made(task, &regs))
		ptrace(PTRACE_POKEUSER, task->host, rax, -(long)ERESTARTNOINTR);
}

static void on_signal(struct rewriter *w, struct task *task, int sig)
{
	siginfo_t info;

	if (ptrace(PTRACE_GETSIGINFO, task->host, 0, &info) == 0 &&
		rewrite_siginfo(&w->rw.tasks, &info))
		ptrace(PTRACE_SETSIGINFO, task->host, 0, &info);
	keep_call(task);
	go_on(w, task, PTRACE_CONT, sig);
}

static bool is_stop_signal(int sig)
{
	return sig == SIGSTOP || sig == SIGTSTP || sig == SIGTTIN || sig == SIGTTOU;
}

static void on_exec(struct rewriter *w, struct task *task)
{
	unsigned long former = (unsigned long)task->host;

	/* It has been another thread's number if it had others. */
	if ((task->told && !task->threaded) ||
		ptrace(PTRACE_GETEVENTMSG, task->host, 0, &former) == 0)
		tasks_exec(&w->rw.tasks, task, (pid_t)former);
	if (!view_may_run(&w->rw, task)) {
		kill(task->host, SIGKILL);
		return;
	}
	view_execed(&w->rw, task);
	rewrite_users_execed(&w->rw, task);
	/* What is being rebuilt gets the vDSO of its image. */
	if (!w->rw.trusting)
		clocks_execed(&w->rw.clocks, task);
	robust_watch(task, false);
	go_on(w, task, PTRACE_CONT, 0);
}

/* A stop that we have asked for, or one of its whole process by a signal. */
static void on_stop(struct rewriter *w, struct task *task, int sig)
{
	task->stop_signal = is_stop_signal(sig) ? sig : 0;
	if (!task->lives)
		on_birth(w, task);
	else if (w->hold && task->host != w->init && !ckpt_doomed(w->proc, task->host))
		task->held = true;
	else
		ptrace(task->stop_signal ? PTRACE_LISTEN : PTRACE_CONT, task->host, 0, 0);
}

/* Nothing more is to be learned of a thread that is about to end. */
static void on_end(struct rewriter *w, struct task *task)
{
	w->ending = w->ending || task->host == w->init;
	robust_prepare(task);
	pi_ended(&w->rw, task);
	if (task->tgid == task->host)
		ptrace(PTRACE_CONT, task->host, 0, 0);
	else if (ptrace(PTRACE_DETACH, task->host, 0, 0) == 0)
		tasks_end(&w->rw.tasks, task);
}

static void on_call(struct rewriter *w, struct task *task)
{
	int r = rewrite_call_enter(&w->rw, task);

	if (r == CALL_LEFT)
		on_stop(w, task, task->stop_signal);
	else if (r == CALL_EXECED)
		on_exec(w, task);
	else if (r != CALL_GONE)
		go_on(w, task, r == 0 ? PTRACE_SYSCALL : PTRACE_CONT, 0);
}

static void on_event(struct rewriter *w, struct task *task, int event, int sig)
{
	switch (event) {
	case PTRACE_EVENT_SECCOMP:
		on_call(w, task);
		break;
	case PTRACE_EVENT_FORK:
	case PTRACE_EVENT_VFORK:
	case PTRACE_EVENT_CLONE:
		on_born(w, task, event);
		go_on(w, task, PTRACE_SYSCALL, 0);
		break;
	case PTRACE_EVENT_EXEC:
		on_exec(w, task);
		break;
	case PTRACE_EVENT_EXIT:
		on_end(w, task);
		break;
	case PTRACE_EVENT_STOP:
		on_stop(w, task, sig);
		break;
	default:
		go_on(w, task, PTRACE_CONT, 0);
		break;
	}
}

/* All the rest goes with it. */
static _Noreturn void end_with_init(struct rewriter *w, int status)
{
	if (w->ended)
		w->ended(w->ended_ctx, status);
	_exit(REWRITER_INIT_ENDED);
}

void rewriter_status(struct rewriter *w, pid_t host, int status)
{
	struct task *task;

	if (hold_is_copy(w, host, status))
		return;
	task = tasks_find(&w->rw.tasks, host);
	if (!WIFSTOPPED(status)) {
		if (host == w->init)
			end_with_init(w, status);
		if (task) {
			pi_ended(&w->rw, task);
			tasks_end(&w->rw.tasks, task);
		}
		return;
	}
	if (!task || task->gone)
		task = meet(w, host);
	if (!task) {
		kill(host, SIGKILL);
		return;
	}
	place_follow(&w->rw.place, task);
	if (status >> 16) {
		on_event(w, task, status >> 16, WSTOPSIG(status));
	} else if (WSTOPSIG(status) == SYSCALL_STOP) {
		rewrite_call_leave(&w->rw, task);
		go_on(w, task, PTRACE_CONT, 0);
	} else {
		on_signal(w, task, WSTOPSIG(status));
	}
}

/* ---- two loops ------------------------------------------------------------------------------ */

/*
 * The kernel tells of the youngest first.  Two that stop all the time would be all that is ever
 * told of, if not of all that stand was asked, now and then, before any of them goes on.
 */
static void take_turns(struct rewriter *w)
{
	struct {
		pid_t host;
		int status;
	} standing[256];
	size_t n = 0;

	while (n < ARRAY_SIZE(standing) &&
		(standing[n].host = waitpid(-1, &standing[n].status, __WALL | WNOHANG)) > 0) {
		/* One is told of twice if it was killed, or another thread has
		 * its number by an exec. */
		for (size_t i = 0; i < n; i++)
			if (standing[i].host == standing[n].host)
				standing[i].host = 0;
		n++;
	}
	for (size_t i = 0; i < n; i++) {
		int *status = &standing[i].status;

		/* Who was killed meanwhile stands in its last stop by now, or is no more. */
		if (!standing[i].host)
			continue;
		if (!WIFSTOPPED(*status) ||
			waitpid(standing[i].host, status, __WALL | WNOHANG) >= 0)
			rewriter_status(w, standing[i].host, *status);
	}
}

void rewriter_wait(struct rewriter *w)
{
	int status;
	pid_t host = waitpid(-1, &status, __WALL);

	if (host < 0 && errno != EINTR)
		_exit(REWRITER_INIT_ENDED); /* nobody is left */
	pthread_mutex_lock(&w->rw.lock);
	if (host > 0)
		rewriter_status(w, host, status);
	if (++w->turns % TURNS == 0) {
		place_again(&w->rw.place);
		take_turns(w);
	}
	pthread_mutex_unlock(&w->rw.lock);
}

/*
 * One thread for stops, since only the tracer may ptrace, and one for calls.  Each waits in the
 * kernel for its own, so that whoever wakes it knows that it will wait in turn: then both stay on
 * one CPU, where an answer takes a tenth of the time.
 */
_Noreturn void rewriter_follow(struct rewriter *w)
{
	for (;;) {
		rewriter_wait(w);
		orders_look(w);
	}
}

/* A handler that does nothing but end a wait. */
static void ignore(int sig)
{
}

static void *answer_all(void *arg)
{
	struct rewriter *w = arg;
	size_t n = 0;
	char byte;

	/* From pid 1, once it has a filter. */
	if (io_recv_fds(w->sock, &byte, 1, &w->rw.listener, 1, &n) != 1 || n != 1)
		_exit(1);
	close(w->sock);
	/* Since 6.6. */
	ioctl(w->rw.listener, SECCOMP_IOCTL_NOTIF_SET_FLAGS, SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP);
	while (answers_one(&w->rw) == 0)
		;
	_exit(1);
}

/* ---- beginning ------------------------------------------------------------------------------ */

/* Pid 1 goes on when it is traced. */
static _Noreturn void become_init(const struct world_config *c, const struct numbers *numbers,
	int init_sock, int to_rewriter)
{
	struct ns_ids ids = {
		.uid = getuid(), .outer_uid = getuid(), .gid = getgid(), .outer_gid = getgid()};
	char go;

	if (read(to_rewriter, &go, 1) != 1)
		_exit(1);
	init_main(c, &ids, init_sock, numbers, to_rewriter);
}

/* Which files the session sees, and what its paths can't reach. */
static int begin_view(struct rewriter *w, const struct world_config *c)
{
	struct err e = {0};
	int r = view_create(&w->rw.view, c, &e);

	if (r < 0)
		return r;
	w->rw.view->fence = fence_create(c, &e);
	r = w->rw.view->fence < -1 ? w->rw.view->fence : view_open(w->rw.view, &w->rw.tasks);
	return r < 0 ? r : procfs_begin(&w->rw, c->files_dir, &e);
}

static int begin(
	struct rewriter *w, const struct world_config *c, const struct rewriter_tables *tables)
{
	struct task *init;
	struct err e = {0};
	pthread_t thread;
	sigset_t chld;

	w->proc = proc_open(&e);
	if (w->proc < 0)
		return w->proc;
	if (rewrite_users_begin(&w->rw, c, tables->groups, &e) < 0)
		return -EIO;
	if (c->view && begin_view(w, c) < 0)
		return -EIO;
	if (confine_begin(&w->rw) < 0)
		return -ENOMEM;

	if (ptrace(PTRACE_SEIZE, w->init, 0, REWRITER_OPTIONS) < 0)
		return -errno;
	init = tasks_add(&w->rw.tasks, w->init);
	if (!init)
		return -ENOMEM;
	init->lives = true;
	users_caps_all(&init->caps);
	/* In no other thread would it end a wait of this one. */
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	pthread_sigmask(SIG_BLOCK, &chld, NULL);
	if (pthread_create(&thread, NULL, answer_all, w) != 0 || orders_start(w) < 0)
		return -EAGAIN;
	return write(w->sock, "", 1) == 1 ? 0 : -errno;
}

/* What the supervisor has open is none of our business. */
static void keep_only(struct rewriter *w)
{
	int *const keep[] = {&w->sock, &w->order};

	for (size_t i = 0; i < ARRAY_SIZE(keep); i++)
		*keep[i] = fcntl(*keep[i], F_DUPFD_CLOEXEC, 3 + (int)ARRAY_SIZE(keep));
	for (size_t i = 0; i < ARRAY_SIZE(keep); i++)
		*keep[i] = dup3(*keep[i], 3 + (int)i, O_CLOEXEC);
	syscall(SYS_close_range, 3 + ARRAY_SIZE(keep), ~0U, 0);
}

/* Pid 1 is there, and waits until it is traced.  @fds stay the caller's. */
static int make(struct rewriter *w, const struct world_config *c,
	const struct rewriter_tables *tables, const int fds[REWRITER_N_FDS])
{
	const struct ckpt_clocks clocks = {c->monotonic_offset_ns, c->boottime_offset_ns};
	int pair[2], r;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "podrun-rewriter");
	if (host_names_begin(&w->rw.host, c, &(struct err){0}) < 0)
		return -EINVAL;
	w->rw.tasks.numbers = tables->numbers;
	w->rw.tasks.most = c->max_pids;
	w->rw.ipc = tables->ipc;
	w->order = fds[REWRITER_ORDERS];
	w->uid = c->as_root ? 0 : c->uid;
	w->gid = c->as_root ? 0 : c->gid;
	w->name = strdup(c->name);
	w->config_dir = strdup(c->config_dir);
	if (!w->name || !w->config_dir)
		return -ENOMEM;
	r = clocks_begin(&w->rw.clocks, &clocks);
	if (r < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	w->init = fork();
	if (w->init == 0) {
		close(pair[0]);
		become_init(c, tables->numbers, fds[REWRITER_INIT], pair[1]);
	}
	close(pair[1]);
	w->sock = pair[0];
	return w->init < 0 ? -errno : io_write_full(fds[REWRITER_TOLD], &w->init, sizeof(w->init));
}

static struct rewriter the_rewriter = {.rw = {.lock = PTHREAD_MUTEX_INITIALIZER, .listener = -1}};

pid_t rewriter_start(const struct world_config *c, const struct rewriter_tables *tables,
	const int fds[REWRITER_N_FDS], struct err *e)
{
	struct rewriter *w = &the_rewriter;
	pid_t pid = fork();

	if (pid < 0)
		return err_errno(e, -errno, "cannot fork");
	if (pid > 0)
		return pid;
	if (make(w, c, tables, fds) < 0)
		_exit(1);
	keep_only(w);
	if (begin(w, c, tables) < 0)
		_exit(1);
	rewriter_follow(w);
}

int rewriter_ways(int fds[REWRITER_N_FDS], int *ret_orders, int *ret_told, struct err *e)
{
	int orders[2], told[2];

	if (pipe2(told, O_CLOEXEC) < 0)
		return err_errno(e, -errno, "pipe");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, orders) < 0) {
		close(told[0]);
		close(told[1]);
		return err_errno(e, -errno, "socketpair");
	}
	fds[REWRITER_ORDERS] = orders[1];
	fds[REWRITER_TOLD] = told[1];
	*ret_orders = orders[0];
	*ret_told = told[0];
	return 0;
}

/* ---- in a process that rebuilds a session --------------------------------------------------- */

int rewriter_become(struct rewriter **ret, const struct world_config *c,
	const struct rewriter_tables *tables, const int fds[REWRITER_N_FDS], struct err *e)
{
	struct rewriter *w = &the_rewriter;
	int r;

	w->rw.trusting = true;
	r = make(w, c, tables, fds);
	close(fds[REWRITER_INIT]);
	close(fds[REWRITER_TOLD]);
	if (r == 0)
		r = begin(w, c, tables);
	if (r < 0)
		return err_errno(e, r, "cannot rewrite the session's names");
	*ret = w;
	return 0;
}

/* @done is asked after everything that has happened. */
static int deal_until(
	struct rewriter *w, int fd, bool (*done)(const struct rewriter *w, int arg), int arg)
{
	const struct timespec nap = {.tv_nsec = AWAIT_NS};
	uint64_t deadline = io_now_ns() + AWAIT_MAX_NS;
	struct pollfd p = {fd, POLLIN, 0};
	sigset_t waiting;
	int status, r = 0;
	pid_t host;

	/* Blocked but for the wait itself, none is lost. */
	pthread_sigmask(SIG_SETMASK, NULL, &waiting);
	sigdelset(&waiting, SIGCHLD);
	signal(SIGCHLD, ignore);
	for (;;) {
		pthread_mutex_lock(&w->rw.lock);
		while ((host = waitpid(-1, &status, __WALL | WNOHANG)) > 0)
			rewriter_status(w, host, status);
		pthread_mutex_unlock(&w->rw.lock);
		if (done && done(w, arg))
			break;
		if (done && io_now_ns() > deadline)
			r = -ETIMEDOUT;
		if (r < 0 || ppoll(&p, 1, done ? &nap : NULL, &waiting) > 0)
			break;
	}
	signal(SIGCHLD, SIG_DFL);
	return r;
}

void rewriter_await(struct rewriter *w, int fd)
{
	deal_until(w, fd, NULL, 0);
}

static bool never(const struct rewriter *w, int arg)
{
	return false;
}

void rewriter_await_end(struct rewriter *w)
{
	deal_until(w, -1, never, 0);
}

static bool always(const struct rewriter *w, int arg)
{
	return true;
}

void rewriter_check_end(struct rewriter *w)
{
	deal_until(w, -1, always, 0);
	if (w->ending)
		rewriter_await_end(w);
}

void rewriter_on_end(struct rewriter *w, void (*tell)(void *ctx, int status), void *ctx)
{
	w->ended = tell;
	w->ended_ctx = ctx;
}

static bool has_execed(const struct rewriter *w, int number)
{
	return w->rw.tasks.all[number] && w->rw.tasks.all[number]->renewed;
}

int rewriter_await_exec(struct rewriter *w, pid_t number)
{
	return deal_until(w, -1, has_execed, number);
}

int rewriter_filters(struct rewriter *w, const void *record, size_t len, struct err *e)
{
	w->rw.confined = true;
	return ckpt_filters_load(w->rw.filters, record, len, e);
}

bool rewriter_describe(struct rewriter *w, struct ckpt_names *names, struct ckpt_paths *paths,
	struct ckpt_ipc_names *ipc)
{
	hold_describe(w, names, paths, ipc);
	return w->rw.view;
}
