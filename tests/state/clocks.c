// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Monotonic and boot time go on where they were, whoever asks them in whatever way, and whoever
 * waits for a point in time is woken then: through the vDSO and the kernel, in who was there, in
 * children and in programs that begin later.
 */
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <sys/wait.h>

#include "tests/state/state.h"

#define NR_FUTEX_WAITV	   449
#define NR_FUTEX_WAIT	   455
#define FUTEX2_PRIVATE_U32 (2 | FUTEX_PRIVATE_FLAG) /* FUTEX2_SIZE_U32 of linux/futex.h */
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif

#define SECOND 1000000000LL
#define SOON   (SECOND / 100)
#define HOUR   (3600 * SECOND)
#define JUMP \
	(12 * HOUR) /* no move takes so long, and the clocks of the other hosts are further away */

static const clockid_t clocks[] = {
	CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME};
#define N_CLOCKS (sizeof(clocks) / sizeof(clocks[0]))

static int64_t of(struct timespec t)
{
	STATE_CHECK(t.tv_nsec >= 0 && t.tv_nsec < SECOND);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static struct timespec to(int64_t ns)
{
	return (struct timespec){ns / SECOND, ns % SECOND};
}

static int64_t now(clockid_t clock)
{
	struct timespec t;

	STATE_CHECK(clock_gettime(clock, &t) == 0);
	return of(t);
}

static int64_t kernels(clockid_t clock)
{
	struct timespec t;

	STATE_CHECK(syscall(SYS_clock_gettime, clock, &t) == 0);
	return of(t);
}

/*
 * ---- what the clocks say --------------------------------------------------------------------
 */

static void look(const int64_t before[N_CLOCKS])
{
	struct timespec t;

	for (size_t i = 0; i < N_CLOCKS; i++) {
		int64_t a = now(clocks[i]), b = kernels(clocks[i]), c = now(clocks[i]);

		STATE_CHECK(a >= before[i] && a - before[i] < JUMP);
		STATE_CHECK(a <= b && b <= c);
	}
	/* only where there is a clock that can wake the machine */
	if (clock_gettime(CLOCK_BOOTTIME_ALARM, &t) == 0)
		STATE_CHECK(of(t) >= before[3] && of(t) <= now(CLOCK_BOOTTIME));
	STATE_CHECK(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, NULL) == -1 && errno == EFAULT);
	STATE_CHECK(clock_gettime(1000, &t) == -1 && errno == EINVAL);
	STATE_CHECK(llabs(now(CLOCK_REALTIME) - time(NULL) * SECOND) < JUMP);
}

static void look_at_uptime(int64_t before)
{
	struct sysinfo s;

	STATE_CHECK(sysinfo(&s) == 0 && s.uptime >= before / SECOND &&
		    s.uptime - before / SECOND < JUMP / SECOND);
	STATE_CHECK(sysinfo(NULL) == -1 && errno == EFAULT);
}

static void expect_end(pid_t pid)
{
	int status;

	STATE_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

/*
 * Where /proc is the session's: the time since the boot, and when a process that has just begun
 * did.
 */
static void look_at_proc(int64_t before)
{
	long up = 0, start = 0;
	FILE *f = fopen("/proc/uptime", "re");
	pid_t pid;

	STATE_CHECK(f && fscanf(f, "%ld", &up) == 1 && fclose(f) == 0);
	STATE_CHECK(up >= before / SECOND && up <= now(CLOCK_BOOTTIME) / SECOND);
	pid = fork();
	if (pid == 0) {
		before = now(CLOCK_BOOTTIME);
		f = fopen("/proc/self/stat", "re");
		STATE_CHECK(f && fscanf(f,
					 "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*d %*d %*d %*d "
					 "%*d %*d %*d %*d %*d %*d %*d %*d %*d %ld",
					 &start) == 1);
		STATE_CHECK(start / 100 <= before / SECOND && before / SECOND - start / 100 < 3600);
		_exit(0);
	}
	expect_end(pid);
}

/*
 * ---- points in time -------------------------------------------------------------------------
 */

/* Whoever waits until @at and was not woken comes back then, and not before. */
static void sleeps(clockid_t clock)
{
	int64_t at = now(clock) + SOON;
	const struct timespec t = to(at), past = to(1), bad = {1, SECOND};

	STATE_CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &t, NULL) == 0 && now(clock) >= at);
	STATE_CHECK(of(t) == at);
	STATE_CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &past, NULL) == 0);
	STATE_CHECK(clock_nanosleep(clock, TIMER_ABSTIME, &bad, NULL) == EINVAL);
	STATE_CHECK(clock_nanosleep(clock, 0, &(struct timespec){0, 1000}, NULL) == 0);
}

/* As one whose stack begins a few words below, where nothing can be put. */
static void sleeps_at_the_edge(void)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int64_t at = now(CLOCK_MONOTONIC) + SOON;
	struct timespec t = to(at);
	register struct timespec *fourth __asm__("r10") = NULL;
	long r = SYS_clock_nanosleep;

	STATE_CHECK(pages != MAP_FAILED && mprotect(pages, 4096, PROT_NONE) == 0);
	__asm__ volatile("mov %%rsp, %%rbx\n\t"
			 "mov %[stack], %%rsp\n\t"
			 "syscall\n\t"
			 "mov %%rbx, %%rsp"
			 : "+a"(r)
			 : "D"(CLOCK_MONOTONIC), "S"(TIMER_ABSTIME), "d"(&t),
			 "r"(fourth), [stack] "r"(pages + 4096 + 64)
			 : "rbx", "rcx", "r11", "memory");
	STATE_CHECK(r == 0 && now(CLOCK_MONOTONIC) >= at && of(t) == at);
	STATE_CHECK(munmap(pages, 8192) == 0);
}

static void timer_descriptor(clockid_t clock)
{
	int fd = timerfd_create(clock, TFD_CLOEXEC);
	struct itimerspec v = {{0}, {0}}, left;
	uint64_t ticks;
	int64_t at = now(clock) + SOON;

	STATE_CHECK(fd >= 0);
	v.it_value = to(at);
	STATE_CHECK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL) == 0);
	STATE_CHECK(read(fd, &ticks, sizeof(ticks)) == sizeof(ticks) && ticks == 1);
	STATE_CHECK(now(clock) >= at && of(v.it_value) == at);
	v.it_value = to(1);
	STATE_CHECK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL) == 0);
	STATE_CHECK(read(fd, &ticks, sizeof(ticks)) == sizeof(ticks));
	v.it_value = to(now(clock) + HOUR);
	STATE_CHECK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, NULL) == 0);
	v.it_value = to(0); /* ends it */
	STATE_CHECK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &v, &left) == 0);
	STATE_CHECK(of(left.it_value) > 0 && of(left.it_value) <= HOUR);
	STATE_CHECK(timerfd_gettime(fd, &left) == 0 && of(left.it_value) == 0);
	STATE_CHECK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 10) == 0);
	v.it_value = to(SOON);
	STATE_CHECK(timerfd_settime(fd, 0, &v, NULL) == 0);
	STATE_CHECK(read(fd, &ticks, sizeof(ticks)) == sizeof(ticks) && ticks == 1);
	STATE_CHECK(timerfd_settime(-1, TFD_TIMER_ABSTIME, &v, NULL) == -1 && errno == EBADF);
	close(fd);
}

static void signal_timer(clockid_t clock)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec v = {{0}, {0}}, left;
	int64_t at = now(clock) + SOON;
	timer_t other, timer;
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	STATE_CHECK(timer_create(CLOCK_REALTIME, &ev, &other) == 0);
	STATE_CHECK(timer_create(clock, &ev, &timer) == 0);
	v.it_value = to(at);
	STATE_CHECK(timer_settime(timer, TIMER_ABSTIME, &v, NULL) == 0);
	STATE_CHECK(sigwait(&set, &sig) == 0 && now(clock) >= at);
	v.it_value = to(now(clock) + HOUR);
	STATE_CHECK(timer_settime(timer, TIMER_ABSTIME, &v, NULL) == 0);
	STATE_CHECK(timer_gettime(timer, &left) == 0);
	STATE_CHECK(of(left.it_value) > 0 && of(left.it_value) <= HOUR);
	v.it_value = to(now(CLOCK_REALTIME) + HOUR);
	STATE_CHECK(timer_settime(other, TIMER_ABSTIME, &v, NULL) == 0);
	STATE_CHECK(timer_gettime(other, &left) == 0);
	STATE_CHECK(of(left.it_value) > 0 && of(left.it_value) <= HOUR);
	STATE_CHECK(timer_delete(other) == 0 && timer_delete(timer) == 0);
}

/* In a thread that has a mutex, until the other is done with it. */
static pthread_mutex_t held;
static sem_t taken, done;

static void *holds(void *arg)
{
	pthread_mutex_lock(&held);
	sem_post(&taken);
	sem_wait(&done);
	pthread_mutex_unlock(&held);
	return NULL;
}

static void mutex_until(int protocol)
{
	int64_t at = now(CLOCK_MONOTONIC) + SOON;
	struct timespec t = to(at);
	pthread_mutexattr_t attr;
	pthread_t thread;

	pthread_mutexattr_init(&attr);
	STATE_CHECK(pthread_mutexattr_setprotocol(&attr, protocol) == 0);
	STATE_CHECK(pthread_mutex_init(&held, &attr) == 0);
	sem_init(&taken, 0, 0);
	sem_init(&done, 0, 0);
	STATE_CHECK(pthread_create(&thread, NULL, holds, NULL) == 0);
	sem_wait(&taken);
	STATE_CHECK(pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &t) == ETIMEDOUT);
	STATE_CHECK(now(CLOCK_MONOTONIC) >= at);
	t = to(now(CLOCK_REALTIME) + SOON);
	STATE_CHECK(pthread_mutex_timedlock(&held, &t) == ETIMEDOUT);
	sem_post(&done);
	t = to(now(CLOCK_MONOTONIC) + HOUR);
	STATE_CHECK(pthread_mutex_clocklock(&held, CLOCK_MONOTONIC, &t) == 0);
	STATE_CHECK(pthread_mutex_unlock(&held) == 0 && pthread_join(thread, NULL) == 0);
}

static void library_waits(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	int64_t at = now(CLOCK_MONOTONIC) + SOON;
	struct timespec t = to(at);
	sem_t s;

	pthread_mutex_lock(&m);
	STATE_CHECK(pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &t) == ETIMEDOUT);
	STATE_CHECK(now(CLOCK_MONOTONIC) >= at);
	t = to(now(CLOCK_REALTIME) + SOON);
	STATE_CHECK(pthread_cond_clockwait(&c, &m, CLOCK_REALTIME, &t) == ETIMEDOUT);
	sem_init(&s, 0, 0);
	at = now(CLOCK_MONOTONIC) + SOON;
	t = to(at);
	STATE_CHECK(sem_clockwait(&s, CLOCK_MONOTONIC, &t) == -1 && errno == ETIMEDOUT);
	STATE_CHECK(now(CLOCK_MONOTONIC) >= at);
	mutex_until(PTHREAD_PRIO_NONE);
	mutex_until(PTHREAD_PRIO_INHERIT);
}

/* What no library of today asks for; on older kernels some are not there. */
static void bare_waits(void)
{
	static uint32_t word, other;
	struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} wait = {0, (uintptr_t)&word, FUTEX2_PRIVATE_U32, 0};

	for (int i = 0; i < 4; i++) {
		int64_t at = now(CLOCK_MONOTONIC) + SOON;
		struct timespec t = to(at);
		long r = 0;

		if (i == 0)
			r = syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 0, &t, NULL, -1);
		else if (i == 1)
			r = syscall(SYS_futex, &word, FUTEX_WAIT_REQUEUE_PI, 0, &t, &other, 0);
		else if (i == 2)
			r = syscall(NR_FUTEX_WAITV, &wait, 1, 0, &t, CLOCK_MONOTONIC);
		else
			r = syscall(NR_FUTEX_WAIT, &word, 0UL, ~0U, FUTEX2_PRIVATE_U32, &t,
				CLOCK_MONOTONIC);
		STATE_CHECK(r == -1 && (errno == ETIMEDOUT || errno == ENOSYS));
		STATE_CHECK(errno == ENOSYS || now(CLOCK_MONOTONIC) >= at);
	}
	/* a duration, and no end at all for a word that is another one */
	STATE_CHECK(syscall(SYS_futex, &word, FUTEX_WAIT, 0, &(struct timespec){0, 1000}) == -1 &&
		    errno == ETIMEDOUT);
	STATE_CHECK(syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, 1, NULL, NULL, -1) == -1 &&
		    errno == EAGAIN);
	STATE_CHECK(syscall(NR_FUTEX_WAITV, &wait, 1, 0, 1L, CLOCK_MONOTONIC) == -1 &&
		    (errno == EFAULT || errno == ENOSYS));
}

static void all(const int64_t before[N_CLOCKS])
{
	look(before);
	look_at_uptime(before[3]);
	look_at_proc(before[3]);
	sleeps(CLOCK_MONOTONIC);
	sleeps(CLOCK_BOOTTIME);
	sleeps_at_the_edge();
	timer_descriptor(CLOCK_MONOTONIC);
	timer_descriptor(CLOCK_BOOTTIME);
	timer_descriptor(CLOCK_REALTIME);
	signal_timer(CLOCK_MONOTONIC);
	signal_timer(CLOCK_BOOTTIME);
	library_waits();
	bare_waits();
	look(before);
}

/*
 * ---- who waits while it is moved ------------------------------------------------------------
 */

enum waits { W_CONDITION, W_SLEEP, W_BARE, W_PI, N_WAITS };

static struct waiter {
	enum waits how;
	int64_t at;
	bool back, woken;
} waiters[2 * N_WAITS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, pi;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
static uint32_t gate;

static bool await(enum waits how, const struct timespec *t)
{
	bool timed = false;

	switch (how) {
	case W_CONDITION:
		pthread_mutex_lock(&lock);
		while (!gate && !timed)
			timed = pthread_cond_clockwait(&wake, &lock, CLOCK_MONOTONIC, t) != 0;
		pthread_mutex_unlock(&lock);
		break;
	case W_SLEEP:
		timed = clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, t, NULL) == 0;
		break;
	case W_BARE:
		while (!__atomic_load_n(&gate, __ATOMIC_SEQ_CST) && !timed)
			timed = syscall(SYS_futex, &gate, FUTEX_WAIT_BITSET, 0, t, NULL, -1) < 0 &&
				errno == ETIMEDOUT;
		break;
	case W_PI:
		timed = pthread_mutex_clocklock(&pi, CLOCK_MONOTONIC, t) != 0;
		if (!timed)
			pthread_mutex_unlock(&pi);
		break;
	case N_WAITS:
		break;
	}
	return !timed;
}

static void on_signal(int sig)
{
}

static void *waiter(void *arg)
{
	struct waiter *w = arg;
	struct timespec t = to(w->at);
	bool woken = await(w->how, &t);

	/* Not before its time, unless it was woken. */
	if (!woken && w->how != W_SLEEP)
		STATE_CHECK(now(CLOCK_MONOTONIC) >= w->at);
	if (!woken && w->how == W_SLEEP)
		STATE_CHECK(now(CLOCK_BOOTTIME) >= w->at);
	w->woken = woken;
	__atomic_store_n(&w->back, true, __ATOMIC_SEQ_CST);
	return NULL;
}

static pthread_t begin(size_t i, int64_t from_now)
{
	pthread_t thread;

	waiters[i].how = (enum waits)(i % N_WAITS);
	waiters[i].at =
		now(waiters[i].how == W_SLEEP ? CLOCK_BOOTTIME : CLOCK_MONOTONIC) + from_now;
	STATE_CHECK(pthread_create(&thread, NULL, waiter, &waiters[i]) == 0);
	return thread;
}

/*
 * ---------------------------------------------------------------------------------------------
 */

/* A program that begins now: "clocks FILE BEFORE..." */
static int another(char **argv)
{
	int64_t before[N_CLOCKS];

	for (size_t i = 0; i < N_CLOCKS; i++)
		before[i] = strtoll(argv[2 + i], NULL, 10);
	all(before);
	return 0;
}

static void in_others(char **argv, const int64_t before[N_CLOCKS])
{
	char text[N_CLOCKS][24];
	pid_t pid = fork();

	if (pid == 0) {
		all(before);
		_exit(0);
	}
	expect_end(pid);
	for (size_t i = 0; i < N_CLOCKS; i++)
		snprintf(text[i], sizeof(text[i]), "%lld", (long long)before[i]);
	for (int i = 0; i < 2; i++) {
		pid = i ? vfork() : fork();
		if (pid == 0) {
			execl("/proc/self/exe", argv[0], argv[1], text[0], text[1], text[2],
				text[3], NULL);
			_exit(1);
		}
		expect_end(pid);
	}
}

int main(int argc, char **argv)
{
	int fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	struct itimerspec later = {{0}, {0}}, left;
	struct sigevent none = {.sigev_notify = SIGEV_NONE};
	/*
	 * Who compares the threads before and after a freeze that fails wants none to end
	 * meanwhile.
	 */
	const bool ending = !(argc == 3 && strcmp(argv[2], "on") == 0);
	pthread_t soon[N_WAITS], never[N_WAITS];
	int64_t before[N_CLOCKS];
	pthread_mutexattr_t attr;
	timer_t timer;

	if (argc == 2 + N_CLOCKS)
		return another(argv);
	signal(SIGUSR2, on_signal);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	STATE_CHECK(pthread_mutex_init(&pi, &attr) == 0 && pthread_mutex_lock(&pi) == 0);
	for (size_t i = 0; i < N_CLOCKS; i++)
		before[i] = now(clocks[i]);
	all(before);
	for (size_t i = 0; i < N_WAITS; i++) {
		never[i] = begin(i, HOUR);
		if (ending)
			soon[i] = begin(N_WAITS + i, SECOND / 2);
	}
	later.it_value = to(now(CLOCK_BOOTTIME) + HOUR);
	STATE_CHECK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &later, NULL) == 0);
	STATE_CHECK(timer_create(CLOCK_MONOTONIC, &none, &timer) == 0);
	later.it_value = to(now(CLOCK_MONOTONIC) + HOUR);
	STATE_CHECK(timer_settime(timer, TIMER_ABSTIME, &later, NULL) == 0);
	state_ready(argc, argv);

	look(before);
	for (size_t i = 0; i < N_WAITS; i++) {
		STATE_CHECK(!__atomic_load_n(&waiters[i].back, __ATOMIC_SEQ_CST));
		if (ending)
			STATE_CHECK(pthread_join(soon[i], NULL) == 0 &&
				    !waiters[N_WAITS + i].woken);
	}
	STATE_CHECK(timerfd_gettime(fd, &left) == 0 && of(left.it_value) > 0);
	STATE_CHECK(of(left.it_value) <= HOUR);
	STATE_CHECK(timer_gettime(timer, &left) == 0 && of(left.it_value) > 0);
	STATE_CHECK(of(left.it_value) <= HOUR);
	all(before);
	in_others(argv, before);
	/* Who still waits is woken. */
	pthread_mutex_lock(&lock);
	__atomic_store_n(&gate, 1, __ATOMIC_SEQ_CST);
	pthread_cond_broadcast(&wake);
	pthread_mutex_unlock(&lock);
	syscall(SYS_futex, &gate, FUTEX_WAKE, 100, NULL, NULL, 0);
	pthread_mutex_unlock(&pi);
	pthread_kill(never[W_SLEEP], SIGUSR2);
	for (size_t i = 0; i < N_WAITS; i++)
		STATE_CHECK(pthread_join(never[i], NULL) == 0 && waiters[i].woken);
	return state_ok();
}
