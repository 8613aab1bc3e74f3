// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The time.  In a session that has come from a host with other clocks `rows --since MONOTONIC
 * BOOTTIME` says what they were there, in seconds.  i386 has each of these calls twice, with
 * seconds of 32 and of 64 bits.
 */
#include "tests/rows/rows.h"

#include <linux/futex.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <time.h>
#include <ucontext.h>

#define SECOND 1000000000LL
#define SOON   (SECOND / 100)
#define JUMP   (12 * 3600 * SECOND) /* less than what the clocks of two hosts differ by */
#define WAITV  449
#define WAIT   455
#define SIZE32 2 /* FUTEX2_SIZE_U32 of linux/futex.h */

#ifdef __i386__
#define GETTIME64     403
#define NANOSLEEP64   407
#define SETTIME64     409
#define TIMERFD64     411
#define FUTEX64	      422
#define SECONDS_OF_32 true
#else
#define GETTIME64     SYS_clock_gettime
#define NANOSLEEP64   SYS_clock_nanosleep
#define SETTIME64     SYS_timer_settime
#define TIMERFD64     SYS_timerfd_settime
#define FUTEX64	      SYS_futex
#define SECONDS_OF_32 false
#endif

int64_t row_since[2];

/* As many as an itimerspec has. */
union times {
	int32_t narrow[4];
	int64_t wide[4];
};

static void put(union times *t, bool narrow, int i, int64_t ns)
{
	if (narrow) {
		t->narrow[2 * i] = (int32_t)(ns / SECOND);
		t->narrow[2 * i + 1] = (int32_t)(ns % SECOND);
	} else {
		t->wide[2 * i] = ns / SECOND;
		t->wide[2 * i + 1] = ns % SECOND;
	}
}

static int64_t get(const union times *t, bool narrow, int i)
{
	return narrow ? t->narrow[2 * i] * SECOND + t->narrow[2 * i + 1]
		      : t->wide[2 * i] * SECOND + t->wide[2 * i + 1];
}

static int64_t library(clockid_t clock)
{
	struct timespec t;

	ROW_CHECK(clock_gettime(clock, &t) == 0);
	return t.tv_sec * SECOND + t.tv_nsec;
}

/* ---- what it is ----------------------------------------------------------------------------- */

#ifndef __i386__
/* A vDSO that has to ask the kernel is told the host's time, and adds to that. */
static sigjmp_buf back;
static const uint8_t *asks;

static void on_step(int sig, siginfo_t *info, void *context)
{
	const ucontext_t *u = context;

	if ((uintptr_t)u->uc_mcontext.gregs[REG_RIP] != (uintptr_t)asks)
		siglongjmp(back, 1);
}

static void from_vdso(void)
{
	static const uint8_t call[] = {0xb8, SYS_clock_gettime, 0, 0, 0, 0x0f, 0x05};
	struct sigaction act = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	static struct timespec t;
	static char stack[65536]; /* what comes behind the call takes its own away */
	const stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	int64_t session = library(CLOCK_MONOTONIC), said;

	for (size_t i = 0; vdso && i + sizeof(call) <= 4096 && !asks; i++)
		if (memcmp(vdso + i, call, sizeof(call)) == 0)
			asks = vdso + i + 5;
	if (!asks)
		return;
	ROW_CHECK(sigaltstack(&other, NULL) == 0 && sigaction(SIGTRAP, &act, NULL) == 0);
	if (!sigsetjmp(back, 1))
		__asm__ volatile(
			"pushfq\n\t"
			"orl $0x100, (%%rsp)\n\t"
			"popfq\n\t"
			"jmp *%[asks]"
			:
			: "a"(SYS_clock_gettime), "D"(CLOCK_MONOTONIC), "S"(&t), [asks] "r"(asks)
			: "rcx", "r11", "memory");
	said = t.tv_sec * SECOND + t.tv_nsec;
	if (row_since[0])
		ROW_CHECK(said > 0 && llabs(said - session) > JUMP);
	else
		ROW_CHECK(said >= session && said <= library(CLOCK_MONOTONIC));
}
#endif

static void tells(int nr, bool narrow)
{
	static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW,
		CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_BOOTTIME_ALARM, CLOCK_REALTIME};
	union times t;

	for (size_t i = 0; i < N(clocks); i++) {
		int64_t before, since = row_since[clocks[i] == CLOCK_BOOTTIME] * SECOND, said;

		if (clocks[i] == CLOCK_BOOTTIME_ALARM) { /* needs a clock that wakes the machine */
			ROW_CHECK(syscall(nr, clocks[i], &t) == 0 || errno == EINVAL);
			continue;
		}
		before = library(clocks[i]);
		ROW_CHECK(syscall(nr, clocks[i], &t) == 0);
		said = get(&t, narrow, 0);
		ROW_CHECK(said >= before && said <= library(clocks[i]));
		if (since && clocks[i] != CLOCK_REALTIME)
			ROW_CHECK(llabs(said - since) < JUMP);
	}
	ROW_FAILS(syscall(nr, CLOCK_MONOTONIC, 1L), EFAULT);
#ifndef __i386__
	from_vdso();
#endif
}

static void uptime(void)
{
	struct sysinfo s;
	int64_t before = library(CLOCK_BOOTTIME) / SECOND;

	ROW_CHECK(sysinfo(&s) == 0 && s.uptime >= before &&
		  s.uptime <= library(CLOCK_BOOTTIME) / SECOND + 1);
	ROW_CHECK(s.totalram * (uint64_t)s.mem_unit > 1 << 20 && s.freeram <= s.totalram);
	ROW_FAILS(syscall(SYS_sysinfo, 1L), EFAULT);
}

/* ---- until then ----------------------------------------------------------------------------- */

#ifndef __i386__
/* Calls of i386 that 64-bit code makes, which can't say what is below its stack. */
static void by_interrupt(void)
{
	union times *low = mmap(
		NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	ROW_CHECK(low != MAP_FAILED);
	for (int narrow = 0; narrow < 2; narrow++) {
		long nr = narrow ? 267 : 407 /* clock_nanosleep, clock_nanosleep_time64 */, r;
		int64_t at = library(CLOCK_MONOTONIC) + SOON;

		put(low, narrow, 0, at);
		__asm__ volatile(
			"int $0x80"
			: "=a"(r)
			: "a"(nr), "b"(CLOCK_MONOTONIC), "c"(TIMER_ABSTIME), "d"(low), "S"(0)
			: "memory", "r8", "r9", "r10", "r11");
		ROW_CHECK(r == 0 && library(CLOCK_MONOTONIC) >= at && get(low, narrow, 0) == at);
	}
	munmap(low, 4096);
}
#endif

static void sleeps(int nr, bool narrow)
{
	static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME};
	union times t;

	for (size_t i = 0; i < N(clocks); i++) {
		int64_t at = library(clocks[i]) + SOON;

		put(&t, narrow, 0, at);
		ROW_CHECK(syscall(nr, clocks[i], TIMER_ABSTIME, &t, NULL) == 0);
		ROW_CHECK(library(clocks[i]) >= at && get(&t, narrow, 0) == at);
		put(&t, narrow, 0, 1000);
		ROW_CHECK(syscall(nr, clocks[i], 0, &t, NULL) == 0);
	}
	put(&t, narrow, 0, 1);
	ROW_CHECK(syscall(nr, CLOCK_BOOTTIME_ALARM, TIMER_ABSTIME, &t, NULL) == 0 || errno);
	put(&t, narrow, 0, SECOND - 1);
	t.narrow[1] = narrow ? -1 : t.narrow[1];
	t.wide[1] = narrow ? t.wide[1] : SECOND;
	ROW_FAILS(syscall(nr, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL), EINVAL);
	ROW_FAILS(syscall(nr, CLOCK_MONOTONIC, TIMER_ABSTIME, 1L, NULL), EFAULT);
#ifndef __i386__
	by_interrupt();
#endif
}

static void timers(int nr, bool narrow)
{
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	int64_t at = library(CLOCK_MONOTONIC) + SOON;
	int id = -1, other = -1, sig;
	union times t;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	ROW_CHECK(syscall(SYS_timer_create, CLOCK_REALTIME, &ev, &other) == 0);
	ROW_CHECK(syscall(SYS_timer_create, CLOCK_MONOTONIC, &ev, &id) == 0);
	put(&t, narrow, 0, 0);
	put(&t, narrow, 1, at);
	ROW_CHECK(syscall(nr, id, TIMER_ABSTIME, &t, NULL) == 0);
	ROW_CHECK(sigwait(&set, &sig) == 0 && library(CLOCK_MONOTONIC) >= at);
	at = library(CLOCK_REALTIME) + SOON;
	put(&t, narrow, 1, at);
	ROW_CHECK(syscall(nr, other, TIMER_ABSTIME, &t, NULL) == 0);
	ROW_CHECK(sigwait(&set, &sig) == 0 && library(CLOCK_REALTIME) >= at);
	ROW_FAILS(syscall(nr, 4711, TIMER_ABSTIME, &t, NULL), EINVAL);
}

static void timer_descriptors(int nr, bool narrow)
{
	static const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_BOOTTIME, CLOCK_REALTIME};
	uint64_t ticks;
	union times t;

	for (size_t i = 0; i < N(clocks); i++) {
		int fd = timerfd_create(clocks[i], 0);
		int64_t at = library(clocks[i]) + SOON;

		put(&t, narrow, 0, 0);
		put(&t, narrow, 1, at);
		ROW_CHECK(fd >= 0 && syscall(nr, fd, TFD_TIMER_ABSTIME, &t, NULL) == 0);
		ROW_CHECK(read(fd, &ticks, sizeof(ticks)) == sizeof(ticks) && ticks == 1);
		ROW_CHECK(library(clocks[i]) >= at);
		put(&t, narrow, 1, 0); /* ends it */
		ROW_CHECK(syscall(nr, fd, TFD_TIMER_ABSTIME, &t, NULL) == 0);
		ROW_CHECK(poll(&(struct pollfd){fd, POLLIN, 0}, 1, 1) == 0);
	}
	ROW_FAILS(syscall(nr, -1, TFD_TIMER_ABSTIME, &t, NULL), EBADF);
}

static void futexes(int nr, bool narrow)
{
	static uint32_t word;
	int64_t at = library(CLOCK_MONOTONIC) + SOON;
	union times t;

	put(&t, narrow, 0, at);
	ROW_FAILS(syscall(nr, &word, FUTEX_WAIT_BITSET, 0, &t, NULL, -1), ETIMEDOUT);
	ROW_CHECK(library(CLOCK_MONOTONIC) >= at && get(&t, narrow, 0) == at);
	at = library(CLOCK_REALTIME) + SOON;
	put(&t, narrow, 0, at);
	ROW_FAILS(syscall(nr, &word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 0, &t, NULL, -1),
		ETIMEDOUT);
	ROW_CHECK(library(CLOCK_REALTIME) >= at);
	put(&t, narrow, 0, 1000);
	ROW_FAILS(syscall(nr, &word, FUTEX_WAIT, 0, &t, NULL, 0), ETIMEDOUT);
	ROW_FAILS(syscall(nr, &word, FUTEX_WAIT_BITSET, 1, NULL, NULL, -1), EAGAIN);
	ROW_FAILS(syscall(nr, &word, FUTEX_WAIT_BITSET, 0, 1L, NULL, -1), EFAULT);
}

/*
 * Not in a container engine's profile, or older kernels: the first since 5.16, the other since 6.7.
 */
static bool is_there(long r)
{
	return r == -1 && errno != ENOSYS && errno != EPERM;
}

static void futex_waitv(void)
{
	static uint32_t word;
	struct {
		uint64_t val, uaddr;
		uint32_t flags, reserved;
	} wait = {0, (uintptr_t)&word, SIZE32, 0};
	int64_t at = library(CLOCK_MONOTONIC) + SOON;
	union times t;

	put(&t, false, 0, at);
	if (is_there(syscall(WAITV, &wait, 1, 0, &t, CLOCK_MONOTONIC)))
		ROW_CHECK(errno == ETIMEDOUT && library(CLOCK_MONOTONIC) >= at);
}

static void futex_wait(void)
{
	static uint32_t word;
	int64_t at = library(CLOCK_MONOTONIC) + SOON;
	union times t;

	put(&t, false, 0, at);
	if (is_there(syscall(WAIT, &word, 0L, 0xffffffffUL, SIZE32, &t, CLOCK_MONOTONIC)))
		ROW_CHECK(errno == ETIMEDOUT && library(CLOCK_MONOTONIC) >= at);
}

/*
 * ---------------------------------------------------------------------------------------------
 */

#define TWICE(function, old, wide)            \
	static void function##_old(void)      \
	{                                     \
		function(old, SECONDS_OF_32); \
	}                                     \
	static void function##_wide(void)     \
	{                                     \
		function(wide, false);        \
	}
TWICE(tells, SYS_clock_gettime, GETTIME64)
TWICE(sleeps, SYS_clock_nanosleep, NANOSLEEP64)
TWICE(timers, SYS_timer_settime, SETTIME64)
TWICE(timer_descriptors, SYS_timerfd_settime, TIMERFD64)
TWICE(futexes, SYS_futex, FUTEX64)

#define BOTH(old, wide, value, function)     \
	{old, value, function##_old},        \
	{                                    \
		wide, value, function##_wide \
	}

const struct row clock_rows[] = {
	BOTH(SYS_clock_gettime, GETTIME64, CLOCK_MONOTONIC, tells),
	BOTH(SYS_clock_gettime, GETTIME64, CLOCK_MONOTONIC_RAW, tells),
	BOTH(SYS_clock_gettime, GETTIME64, CLOCK_MONOTONIC_COARSE, tells),
	BOTH(SYS_clock_gettime, GETTIME64, CLOCK_BOOTTIME, tells),
	BOTH(SYS_clock_gettime, GETTIME64, CLOCK_BOOTTIME_ALARM, tells),
	{SYS_sysinfo, CALL, uptime},
	BOTH(SYS_clock_nanosleep, NANOSLEEP64, CLOCK_MONOTONIC, sleeps),
	BOTH(SYS_clock_nanosleep, NANOSLEEP64, CLOCK_BOOTTIME, sleeps),
	BOTH(SYS_clock_nanosleep, NANOSLEEP64, CLOCK_BOOTTIME_ALARM, sleeps),
	BOTH(SYS_timer_settime, SETTIME64, TIMER_ABSTIME, timers),
	BOTH(SYS_timerfd_settime, TIMERFD64, TFD_TIMER_ABSTIME, timer_descriptors),
	BOTH(SYS_futex, FUTEX64, FUTEX_WAIT_BITSET, futexes),
	{WAITV, CLOCK_MONOTONIC, futex_waitv},
	{WAIT, CLOCK_MONOTONIC, futex_wait},
};
const size_t n_clock_rows = N(clock_rows);
