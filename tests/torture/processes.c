// SPDX-License-Identifier: GPL-2.0-or-later
/* The workers of restless that begin and end: processes, programs, threads, signals. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/torture/restless.h"

extern char **environ;

/* ---- births: children of all sorts, and how they end ----------------------------------------- */

#define KEPT 4
static struct {
	pid_t pid;
	int status; /* that it must have */
} kept[KEPT];	    /* zombies, or soon */

static void births_begin(void)
{
	HOLDS(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
}

static void keep_one(void)
{
	unsigned i = any(KEPT), code = any(256);

	if (kept[i].pid)
		HOLDS(reap(kept[i].pid) == kept[i].status);
	kept[i].status = (int)code << 8;
	kept[i].pid = fork_child();
	if (kept[i].pid == 0)
		_exit((int)code);
}

static void run_program(void)
{
	char *argv[] = {(char *)self, (char *)"nothing", NULL};
	pid_t pid;

	HOLDS(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0);
	HOLDS(reap(pid) == 0);
	pid = vfork();
	if (pid == 0) {
		execv(self, argv);
		_exit(1);
	}
	HOLDS(reap(pid) == 0);
}

/* The child's child comes to us. */
static void take_an_orphan(void)
{
	int p[2], status;
	pid_t pid, orphan;

	HOLDS(pipe(p) == 0);
	pid = fork_child();
	if (pid == 0) {
		orphan = fork();
		if (orphan == 0)
			_exit(7);
		_exit(write(p[1], &orphan, sizeof(orphan)) != sizeof(orphan));
	}
	status = reap(pid);
	HOLDS(status == 0);
	HOLDS(read(p[0], &orphan, sizeof(orphan)) == sizeof(orphan));
	HOLDS(reap(orphan) == 7 << 8);
	close(p[0]);
	close(p[1]);
}

static void stop_and_kill(void)
{
	int status;
	pid_t pid = fork_child(), r;

	if (pid == 0)
		for (;;)
			getppid();
	HOLDS(kill(pid, SIGSTOP) == 0);
	do
		r = waitpid(pid, &status, WUNTRACED);
	while (r < 0 && errno == EINTR);
	HOLDS(r == pid && WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
	if (any(2)) {
		HOLDS(kill(pid, SIGCONT) == 0);
		do
			r = waitpid(pid, &status, WCONTINUED);
		while (r < 0 && errno == EINTR);
		HOLDS(r == pid && WIFCONTINUED(status));
	}
	HOLDS(kill(pid, SIGKILL) == 0);
	status = reap(pid);
	HOLDS(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void wait_by_pidfd(void)
{
	pid_t pid = fork_child();
	struct pollfd p = {.events = POLLIN};
	siginfo_t info;
	int r;

	if (pid == 0)
		_exit(3);
	p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	HOLDS(p.fd >= 0);
	do
		r = poll(&p, 1, -1);
	while (r < 0 && errno == EINTR);
	HOLDS(r == 1);
	do
		r = waitid(P_PID, (id_t)pid, &info, WEXITED);
	while (r < 0 && errno == EINTR);
	HOLDS(r == 0 && info.si_pid == pid && info.si_status == 3);
	close(p.fd);
}

static void *exec_here(void *arg)
{
	execl(self, self, "nothing", NULL);
	_exit(1);
}

static _Noreturn void *spin(void *arg)
{
	for (;;)
		getppid();
}

static void exec_among_threads(void)
{
	pid_t pid = fork_child();
	pthread_t t;

	if (pid == 0) {
		pthread_create(&t, NULL, spin, NULL);
		pthread_create(&t, NULL, exec_here, NULL);
		pthread_join(t, NULL);
	}
	HOLDS(reap(pid) == 0);
}

static void births_step(void)
{
	static void (*const all[])(void) = {keep_one, keep_one, run_program, take_an_orphan,
		stop_and_kill, wait_by_pidfd, exec_among_threads};

	all[any(sizeof(all) / sizeof(all[0]))]();
}

static void births_look(void)
{
	for (unsigned i = 0; i < KEPT; i++) {
		if (kept[i].pid)
			HOLDS(reap(kept[i].pid) == kept[i].status);
		kept[i].pid = 0;
	}
	HOLDS(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

const struct worker worker_births = {"births", births_begin, births_step, births_look};

/* ---- executes: becomes another program at each step; what stays is in a memfd ---------------- */

#define EXECUTES     2 /* its place in the table */
#define EXECUTES_FD  50
#define EXECUTES_END 4096
struct carried {
	uint64_t steps;
	pid_t pid, parent;
	sigset_t blocked;
	uint8_t bytes[EXECUTES_END];
};

static void executes_check(struct carried *c, bool write)
{
	sigset_t now;

	HOLDS(c->pid == getpid() && c->parent == getppid());
	HOLDS(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0);
	HOLDS(memcmp(&now, &c->blocked, 8) == 0);
	for (unsigned i = 0; i < EXECUTES_END; i++)
		HOLDS(c->bytes[i] == byte_of(EXECUTES, c->steps + i));
	c->steps += write;
	for (unsigned i = 0; write && i < EXECUTES_END; i++)
		c->bytes[i] = byte_of(EXECUTES, c->steps + i);
}

static struct carried *executes_map(void)
{
	struct carried *c =
		mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, EXECUTES_FD, 0);

	HOLDS(c != MAP_FAILED);
	return c;
}

static void executes_begin(void)
{
	struct carried *c;
	int fd;

	if (fcntl(EXECUTES_FD, F_GETFD) >= 0)
		return;
	fd = memfd_create("carried", 0);
	HOLDS(fd >= 0 && dup2(fd, EXECUTES_FD) == EXECUTES_FD && ftruncate(fd, sizeof(*c)) == 0);
	close(fd);
	c = executes_map();
	c->pid = getpid();
	c->parent = getppid();
	sigemptyset(&c->blocked);
	sigaddset(&c->blocked, SIGUSR2);
	HOLDS(pthread_sigmask(SIG_SETMASK, &c->blocked, NULL) == 0);
	for (unsigned i = 0; i < EXECUTES_END; i++)
		c->bytes[i] = byte_of(EXECUTES, i);
}

static void executes_look(void)
{
	executes_check(executes_map(), false);
}

static void *executes_now(void *arg)
{
	char which[8];

	snprintf(which, sizeof(which), "%d", EXECUTES);
	execl(self, self, directory, "0", which, NULL);
	HOLDS(!"execl");
	return NULL;
}

static void executes_step(void)
{
	struct carried *c = executes_map();
	pthread_t t;

	executes_check(c, true);
	seed_any((unsigned)c->steps);
	answer(EXECUTES, &worker_executes);
	if (any(2))
		executes_now(NULL);
	pthread_create(&t, NULL, executes_now, NULL);
	for (;;)
		getppid();
}

const struct worker worker_executes = {"executes", executes_begin, executes_step, executes_look};

/* ---- threads: what they count, by what they wait for ----------------------------------------- */

#define N_THREADS 4
static struct {
	pthread_mutex_t lock;
	pthread_cond_t turned;
	uint64_t all, of[N_THREADS]; /* the sum of them */
	unsigned turn;
	bool end;
} counts = {.lock = PTHREAD_MUTEX_INITIALIZER, .turned = PTHREAD_COND_INITIALIZER};
static pthread_t threads[N_THREADS];
static __thread uint64_t own;

static void *count(void *arg)
{
	unsigned i = (unsigned)(uintptr_t)arg;

	own = counts.of[i];
	pthread_mutex_lock(&counts.lock);
	while (!counts.end) {
		while (counts.turn != i && !counts.end)
			pthread_cond_wait(&counts.turned, &counts.lock);
		HOLDS(own == counts.of[i]);
		own = ++counts.of[i];
		counts.all++;
		counts.turn = (i + 1) % N_THREADS;
		pthread_cond_broadcast(&counts.turned);
		if (counts.all % 64 == 0)
			usleep(500); /* the others wait, some for the lock and some for their turn */
	}
	pthread_mutex_unlock(&counts.lock);
	return arg;
}

static void threads_begin(void)
{
	counts.end = false;
	for (unsigned i = 0; i < N_THREADS; i++)
		HOLDS(pthread_create(&threads[i], NULL, count, (void *)(uintptr_t)i) == 0);
}

static void threads_sum(void)
{
	uint64_t sum = 0;

	pthread_mutex_lock(&counts.lock);
	for (unsigned i = 0; i < N_THREADS; i++)
		sum += counts.of[i];
	HOLDS(sum == counts.all);
	pthread_mutex_unlock(&counts.lock);
}

static void threads_end(void)
{
	void *what;

	pthread_mutex_lock(&counts.lock);
	counts.end = true;
	pthread_cond_broadcast(&counts.turned);
	pthread_mutex_unlock(&counts.lock);
	for (unsigned i = 0; i < N_THREADS; i++)
		HOLDS(pthread_join(threads[i], &what) == 0 && what == (void *)(uintptr_t)i);
}

static void threads_step(void)
{
	threads_sum();
	if (any(8) == 0) {
		threads_end();
		threads_begin();
	}
}

static void threads_look(void)
{
	uint64_t before;

	threads_sum();
	threads_end();
	before = counts.all;
	threads_begin();
	do {
		pthread_mutex_lock(&counts.lock);
		before = counts.all > before + N_THREADS ? 0 : before;
		pthread_mutex_unlock(&counts.lock);
	} while (before); /* all go on */
}

const struct worker worker_threads = {"threads", threads_begin, threads_step, threads_look};

/* ---- signals: queued ones wait in their order, and a child answers each ---------------------- */

static sigset_t queued;
static uint32_t sent, received, answered;
static pid_t echo;

static _Noreturn void echo_them(void)
{
	uint32_t n = 0;
	siginfo_t info;

	for (;;) {
		int r = sigwaitinfo(&queued, &info);

		if (r < 0 && errno == EINTR)
			continue;
		HOLDS(r == SIGRTMIN + 1 && info.si_pid == getppid());
		HOLDS(info.si_value.sival_int == (int)n++);
		HOLDS(sigqueue(getppid(), SIGRTMIN + 2, info.si_value) == 0);
	}
}

static void signals_begin(void)
{
	sigemptyset(&queued);
	for (int i = 0; i < 3; i++)
		sigaddset(&queued, SIGRTMIN + i);
	HOLDS(pthread_sigmask(SIG_BLOCK, &queued, NULL) == 0);
	echo = fork_child();
	if (echo == 0)
		echo_them();
}

static void take_own(void)
{
	const struct timespec now = {0};
	siginfo_t info;
	sigset_t own_set;
	int r;

	sigemptyset(&own_set);
	sigaddset(&own_set, SIGRTMIN);
	do
		r = sigtimedwait(&own_set, &info, &now);
	while (r < 0 && errno == EINTR);
	HOLDS(r == SIGRTMIN && info.si_pid == getpid());
	HOLDS(info.si_value.sival_int == (int)received++);
}

static void ask_echo(void)
{
	sigset_t set;
	siginfo_t info;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN + 2);
	HOLDS(sigqueue(echo, SIGRTMIN + 1, (union sigval){.sival_int = (int)answered}) == 0);
	do
		r = sigwaitinfo(&set, &info);
	while (r < 0 && errno == EINTR);
	HOLDS(r == SIGRTMIN + 2 && info.si_pid == echo &&
		info.si_value.sival_int == (int)answered++);
}

static void signals_step(void)
{
	if (sent - received < 8 && any(2))
		HOLDS(sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = (int)sent++}) == 0);
	else if (sent != received)
		take_own();
	ask_echo();
}

static void signals_look(void)
{
	sigset_t pending;

	while (sent != received)
		take_own();
	HOLDS(sigpending(&pending) == 0 && !sigismember(&pending, SIGRTMIN));
	ask_echo();
}

const struct worker worker_signals = {"signals", signals_begin, signals_step, signals_look};
