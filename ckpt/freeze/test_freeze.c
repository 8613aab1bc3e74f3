// SPDX-License-Identifier: GPL-2.0-or-later
/* Trees of tasks that do things while they are frozen and thawed, and must not notice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#include "ckpt/freeze/freeze.h"
#include "ckpt/freeze/step.h"
#include "ckpt/remote/testtask.h"

static int host_proc;

/* A pid 1 of sorts: runs the command with @out as its output, and reaps orphans. */
static pid_t start_tree(int out, int (*body)(void *), void *arg)
{
	pid_t init = fork();

	if (init == 0) {
		int status = 0, code = 1;
		pid_t first;

		prctl(PR_SET_CHILD_SUBREAPER, 1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		first = fork();
		if (first == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			dup2(out, 1);
			testtask_filter();
			_exit(body(arg));
		}
		for (pid_t p; (p = wait(&status)) > 0;)
			if (p == first)
				code = WIFEXITED(status) ? WEXITSTATUS(status) : 100;
		_exit(code);
	}
	return init;
}

/* Zero, and the same for all children. */
static volatile int *shared_int(void)
{
	void *p = mmap(NULL, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static int run_shell(void *arg)
{
	execl("/bin/sh", "sh", "-c", (const char *)arg, NULL);
	return 127;
}

static int session_proc = -1;

static struct ckpt_frozen *freeze(pid_t init)
{
	struct ckpt_freeze_options o = {
		.host_proc = host_proc,
		.session_proc = session_proc,
		.init_pid = init,
	};
	struct ckpt_frozen *f;
	struct err e = {0};

	if (ckpt_frozen_make(&f, &o, &e) < 0)
		fail_msg("%s", e.msg);
	return f;
}

/* Freezes and thaws until the tree has ended; every task must stand still in between. */
static int torment(pid_t init, int *ret_rounds, uint64_t *ret_ns, size_t *ret_tasks)
{
	int status;

	*ret_rounds = 0;
	*ret_ns = 0;
	*ret_tasks = 0;
	while (waitpid(init, &status, WNOHANG) == 0) {
		uint64_t t0 = io_now_ns();
		struct ckpt_frozen *f = freeze(init);
		const struct ckpt_task *tasks;
		size_t n;

		tasks = ckpt_frozen_tasks(f, &n);
		for (size_t i = 0; i < n; i++) {
			bool ended = tasks[i].state == CKPT_TASK_ZOMBIE;
			struct proc_status s;

			if (*ret_rounds % 16 && !ended)
				continue;
			if (proc_read_status(host_proc, tasks[i].tid, &s, NULL) < 0)
				assert_true(ended); /* pid 1 runs on and reaps */
			else
				assert_non_null(strchr(ended ? "ZX" : "tT", s.state));
		}
		ckpt_frozen_release(f);
		*ret_ns += io_now_ns() - t0;
		*ret_tasks += n;
		++*ret_rounds;
		usleep(700);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void read_all(int fd, struct buf *b)
{
	char chunk[4096];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_put(b, chunk, (size_t)n);
	buf_put_u8(b, 0);
}

static void a_shell_at_work(void **state)
{
	static char script[] = "i=0; while [ $i -lt 60 ]; do "
			       "  x=$(echo $i | sed s/^/n/ | cat); "
			       "  (exec 2>/dev/null; kill -0 $$ && /bin/true) && echo $x; "
			       "  i=$((i+1)); done | cat | tr n m; exit 5";
	_cleanup_buf_ struct buf out = BUF_INIT;
	char expected[1024] = "";
	char *p = expected;
	int ends[2], rounds;
	uint64_t ns;
	size_t tasks;
	pid_t init;

	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	init = start_tree(ends[1], run_shell, script);
	close(ends[1]);
	assert_int_equal(torment(init, &rounds, &ns, &tasks), 5);
	read_all(ends[0], &out);
	close(ends[0]);
	for (int i = 0; i < 60; i++)
		p += sprintf(p, "m%d\n", i);
	assert_string_equal((char *)out.data, expected);
	print_message("%d rounds, %lu us each, %.1f tasks\n", rounds, ns / 1000 / (unsigned)rounds,
		(double)tasks / rounds);
	assert_true(rounds > 20);
}

/* ---- threads ------------------------------------------------------------------------------ */

#define N_THREADS 24
#define N_TURNS	  3000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;

static void *take_turns(void *arg)
{
	int me = (int)(intptr_t)arg;

	pthread_mutex_lock(&lock);
	while (turn < N_TURNS) {
		if (turn % N_THREADS == me) {
			turn++;
			pthread_cond_broadcast(&turned);
		} else {
			pthread_cond_wait(&turned, &lock);
		}
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

static int body_threads(void *arg)
{
	pthread_t t[N_THREADS];

	for (int i = 0; i < N_THREADS; i++)
		if (pthread_create(&t[i], NULL, take_turns, (void *)(intptr_t)i))
			return 1;
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(t[i], NULL);
	/* Short-lived ones, so that some are born and die in every freeze. */
	for (int i = 0; i < 300; i++) {
		if (pthread_create(&t[0], NULL, take_turns, NULL))
			return 2;
		pthread_join(t[0], NULL);
	}
	return turn == N_TURNS ? 6 : 3;
}

static void threads_taking_turns(void **state)
{
	int rounds;
	uint64_t ns;
	size_t tasks;
	pid_t init = start_tree(1, body_threads, NULL);

	assert_int_equal(torment(init, &rounds, &ns, &tasks), 6);
	print_message("%d rounds, %lu us each, %.1f tasks\n", rounds, ns / 1000 / (unsigned)rounds,
		(double)tasks / rounds);
}

/* ---- signals, vfork ----------------------------------------------------------------------- */

static volatile int handled;

static void count(int sig)
{
	handled++;
}

/* Every signal that is sent is handled once, and no call fails for our sake. */
static int body_signals(void *arg)
{
	struct sigaction sa = {.sa_handler = count, .sa_flags = SA_RESTART};
	int ends[2];

	sigaction(SIGUSR1, &sa, NULL);
	if (pipe(ends) < 0)
		return 1;
	for (int i = 0; i < 400; i++) {
		pid_t pid = fork();
		int status;
		char c;

		if (pid == 0) {
			kill(getppid(), SIGUSR1);
			_exit(write(ends[1], "x", 1) == 1 ? 0 : 1);
		}
		if (read(ends[0], &c, 1) != 1)
			return 2;
		if (waitpid(pid, &status, 0) != pid || status)
			return 3;
	}
	return handled == 400 ? 7 : 4;
}

static void signals_arrive_once(void **state)
{
	int rounds;
	uint64_t ns;
	size_t tasks;
	pid_t init = start_tree(1, body_signals, NULL);

	assert_int_equal(torment(init, &rounds, &ns, &tasks), 7);
}

static void *exec_true(void *arg)
{
	usleep(300);
	execl("/bin/true", "true", NULL);
	return NULL;
}

/* Not the first thread calls exec, and takes over the number of the first. */
static int body_exec(void *leader_ends)
{
	for (int i = 0; i < 150; i++) {
		pid_t pid = fork();
		pthread_t t;
		int status;

		if (pid == 0) {
			for (int k = 0; k < 4; k++)
				if (pthread_create(&t, NULL, k == 3 ? exec_true : take_turns, NULL))
					return 2;
			if (leader_ends)
				pthread_exit(NULL);
			for (;;)
				pause();
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	return 12;
}

static void torment_exec(void *leader_ends)
{
	int rounds;
	uint64_t ns;
	size_t tasks;
	pid_t init = start_tree(1, body_exec, leader_ends);

	assert_int_equal(torment(init, &rounds, &ns, &tasks), 12);
	print_message("%d rounds, %lu us each\n", rounds, ns / 1000 / (unsigned)rounds);
}

static void threads_may_exec(void **state)
{
	torment_exec(NULL);
}

/* From the second sweep on nobody asks for processes again; a directory without any
 * agrees that these are all. */
static void threads_may_exec_when_the_first_has_ended(void **state)
{
	session_proc = open("/proc/self", O_PATH | O_CLOEXEC);
	torment_exec((void *)1);
	session_proc = close_fd(session_proc);
}

static int body_vfork(void *arg)
{
	for (int i = 0; i < 100; i++) {
		pid_t pid = vfork();
		int status;

		if (pid == 0) {
			/* Long enough to be met in. */
			usleep(2000);
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			return 1;
	}
	return 8;
}

static void vfork_parents_are_waited_for(void **state)
{
	int rounds;
	uint64_t ns;
	size_t tasks;
	pid_t init = start_tree(1, body_vfork, NULL);

	assert_int_equal(torment(init, &rounds, &ns, &tasks), 8);
}

/* @arg: shared; not zero any more when the child is there. */
static int body_vfork_for_ever(void *arg)
{
	volatile int *there = arg;

	if (vfork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		*there = 1;
		for (;;)
			pause();
	}
	return 0;
}

static void a_stuck_vfork_is_named(void **state)
{
	struct ckpt_freeze_options o = {
		.host_proc = host_proc,
		.session_proc = -1,
		.deadline_ms = 1000,
	};
	volatile int *there = shared_int();
	struct ckpt_frozen *f;
	struct err e = {0};
	pid_t worker;
	int status;

	o.init_pid = start_tree(1, body_vfork_for_ever, (void *)there);
	while (!*there)
		usleep(1000);
	/* What can't be stopped is let go when the worker ends. */
	worker = fork();
	if (worker == 0)
		_exit(ckpt_frozen_make(&f, &o, &e) == -ETIMEDOUT && e.class == ERR_UNFREEZABLE &&
				strstr(e.msg, "vfork")
				? 0
				: 1);
	assert_int_equal(waitpid(worker, &status, 0), worker);
	assert_int_equal(status, 0);
	kill(o.init_pid, SIGKILL);
	testtask_end(o.init_pid);
	munmap((void *)there, sizeof(*there));
}

/* @arg: shared with who freezes, and not zero any more when that has been often enough. */
static int body_stopped(void *arg)
{
	const volatile int *enough = arg;
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		raise(SIGSTOP);
		_exit(3);
	}
	if (waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return 1;
	while (!*enough)
		usleep(1000);
	/* Still stopped, and nothing was reported twice. */
	if (waitpid(pid, &status, WUNTRACED | WNOHANG) != 0)
		return 2;
	kill(pid, SIGCONT);
	return waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3 ? 9 : 4;
}

static void stopped_stays_stopped(void **state)
{
	volatile int *enough = shared_int();
	int status, met = 0;
	pid_t init = start_tree(1, body_stopped, (void *)enough);

	while (waitpid(init, &status, WNOHANG) == 0) {
		struct ckpt_frozen *f = freeze(init);
		const struct ckpt_task *tasks;
		size_t n;

		tasks = ckpt_frozen_tasks(f, &n);
		for (size_t i = 0; i < n; i++)
			met += tasks[i].stop_signal == SIGSTOP;
		*enough = met > 3;
		ckpt_frozen_release(f);
		usleep(1000);
	}
	assert_int_equal(WEXITSTATUS(status), 9);
	assert_true(met > 3);
	munmap((void *)enough, sizeof(*enough));
}

/* ---- code that must not be interrupted ---------------------------------------------------- */

static int body_clock(void *arg)
{
	struct timespec t;
	uint64_t end = io_now_ns() + 300000000ULL;

	while (io_now_ns() < end)
		clock_gettime(CLOCK_MONOTONIC, &t);
	return 4;
}

static void nobody_stays_in_the_vdso(void **state)
{
	pid_t init = start_tree(1, body_clock, NULL);
	int status, met = 0;

	usleep(20000);
	while (waitpid(init, &status, WNOHANG) == 0) {
		struct ckpt_frozen *f = freeze(init);
		const struct ckpt_task *tasks;
		struct proc_maps maps;
		struct err e = {0};
		size_t n;

		tasks = ckpt_frozen_tasks(f, &n);
		if (n && tasks[0].state == CKPT_TASK_STOPPED &&
			proc_read_maps(host_proc, tasks[0].pid, false, &maps, &e) == 0) {
			struct user_regs_struct regs = tasks[0].regs;

			for (size_t i = 0; i < maps.n; i++) {
				struct proc_vma *v = &maps.vmas[i];

				if (strcmp(v->path, "[vdso]") || regs.rip < v->start ||
					regs.rip >= v->end)
					continue;
				met++;
				if (ckpt_step_out(host_proc, tasks[0].tid, &maps, v, &regs, &e) < 0)
					fail_msg("%s", e.msg);
				assert_false(regs.rip >= v->start && regs.rip < v->end);
			}
			proc_maps_fini(&maps);
		}
		ckpt_frozen_release(f);
		usleep(2000);
	}
	assert_int_equal(WEXITSTATUS(status), 4);
	assert_true(met > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shell_at_work),
		cmocka_unit_test(threads_taking_turns),
		cmocka_unit_test(signals_arrive_once),
		cmocka_unit_test(threads_may_exec),
		cmocka_unit_test(threads_may_exec_when_the_first_has_ended),
		cmocka_unit_test(vfork_parents_are_waited_for),
		cmocka_unit_test(a_stuck_vfork_is_named),
		cmocka_unit_test(stopped_stays_stopped),
		cmocka_unit_test(nobody_stays_in_the_vdso),
	};
	struct err e = {0};

	host_proc = proc_open(&e);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
