// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What only 32-bit programs have: segments, registers of that size, handlers with frames of that
 * kind in use and to come, lists set by calls of i386, two ways into the kernel; and what uname
 * says of the machine.
 */
#include <asm/ldt.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "tests/state/state.h"

static volatile int spinning, stop, seen_by_fs, bad;
static volatile int entered_plain, entered_info, leave, left_plain, left_info;
static volatile siginfo_t told;
static __thread int mine = 5;
static uint32_t through_fs[4] = {0x11111111, 0x22222222, 0, 0};

/* A segment of its own in fs, and registers nobody saves for it. */
static void *spin(void *arg)
{
	struct user_desc d = {.entry_number = (unsigned)-1,
		.base_addr = (uint32_t)(uintptr_t)through_fs,
		.limit = sizeof(through_fs) - 1,
		.seg_32bit = 1,
		.useable = 1};
	unsigned char in[16], out[16] = {0};
	uint32_t esi = 0, edi = 0;
	double x = 3.25, y = 0;

	for (int i = 0; i < 16; i++)
		in[i] = (unsigned char)(i * 7 + 1);
	STATE_CHECK(syscall(SYS_set_thread_area, &d) == 0);
	mine = 6;
	__asm__ volatile("mov %w[sel], %%fs\n\t"
			 "movdqu %[in], %%xmm5\n\t"
			 "fldl %[x]\n\t"
			 "mov $0x89abcdef, %%esi\n\t"
			 "mov $0x12345678, %%edi\n\t"
			 "movl $1, %[spinning]\n\t"
			 "1: pause\n\t"
			 "cmpl $0, %[stop]\n\t"
			 "je 1b\n\t"
			 "mov %%esi, %[esi]\n\t"
			 "mov %%edi, %[edi]\n\t"
			 "mov %%fs:4, %%esi\n\t"
			 "mov %%esi, %[seen]\n\t"
			 "movdqu %%xmm5, %[out]\n\t"
			 "fstpl %[y]\n\t"
			 : [out] "=m"(out), [y] "=m"(y), [esi] "=m"(esi), [edi] "=m"(edi),
			 [seen] "=m"(seen_by_fs), [spinning] "=m"(spinning)
			 : [in] "m"(in), [x] "m"(x), [stop] "m"(stop),
			 [sel] "a"(d.entry_number * 8 + 3)
			 : "esi", "edi", "memory", "cc"); /* no code here uses xmm */
	bad = memcmp(in, out, sizeof(in)) || y != 3.25 || esi != 0x89abcdef || edi != 0x12345678 ||
	      seen_by_fs != 0x22222222 || mine != 6;
	return NULL;
}

static void plain(int sig)
{
	entered_plain++;
	while (!leave)
		state_nap();
	left_plain++;
}

static void with_info(int sig, siginfo_t *si, void *context)
{
	told = *si;
	entered_info++;
	while (!leave)
		state_nap();
	left_info++;
}

/* In a handler of the one kind, on a stack of its own. */
static void *in_handler(void *arg)
{
	stack_t ss = {.ss_sp = malloc(65536), .ss_size = 65536};
	int sig = (int)(intptr_t)arg;
	volatile uint32_t kept[4] = {1, 2, 3, 4};

	STATE_CHECK(ss.ss_sp && sigaltstack(&ss, NULL) == 0);
	pthread_kill(pthread_self(), sig);
	STATE_CHECK(kept[0] == 1 && kept[3] == 4 && mine == 5);
	return NULL;
}

static long by_int_80(long nr)
{
	long ret = nr;

	__asm__ volatile("int $0x80" : "+a"(ret) : "b"(0), "c"(0), "d"(0) : "memory");
	return ret;
}

static long by_vdso(long nr)
{
	long ret = nr;

	__asm__ volatile("call *%%gs:0x10" : "+a"(ret) : "b"(0), "c"(0), "d"(0) : "memory");
	return ret;
}

static void *pause_by_int_80(void *arg)
{
	STATE_CHECK(by_int_80(SYS_pause) == -EINTR);
	return NULL;
}

static void nothing(int sig)
{
}

static void handle(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = {.sa_handler = handler, .sa_flags = flags};

	STATE_CHECK(sigaction(sig, &sa, NULL) == 0);
}

/* A signal that comes only now, with a value, from a timer that has it since before. */
static void fire(timer_t timer)
{
	struct itimerspec soon = {{0, 0}, {0, 1000000}};

	STATE_CHECK(timer_settime(timer, 0, &soon, NULL) == 0);
	while (left_info < 2)
		state_nap();
	STATE_CHECK(told.si_signo == SIGUSR2 && told.si_code == SI_TIMER);
	STATE_CHECK(told.si_value.sival_ptr == (void *)0xfedcba98);
}

/* The vector as a 32-bit program has it. */
static size_t read_auxv(uint32_t *words, size_t n)
{
	FILE *f = fopen("/proc/self/auxv", "re");
	size_t got;

	STATE_CHECK(f);
	got = fread(words, sizeof(*words), n, f);
	fclose(f);
	return got;
}

static bool has_entry(const uint32_t *words, size_t n, uint32_t type, uint32_t value)
{
	for (size_t i = 0; i + 1 < n; i += 2)
		if (words[i] == type)
			return words[i + 1] == value;
	return false;
}

static void check_memory(uintptr_t brk)
{
	void *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	STATE_CHECK(p != MAP_FAILED);
	memset(p, 1, 1 << 20);
	p = mremap(p, 1 << 20, 8 << 20, MREMAP_MAYMOVE);
	STATE_CHECK(p != MAP_FAILED && ((char *)p)[(1 << 20) - 1] == 1);
	STATE_CHECK(munmap(p, 8 << 20) == 0);
	STATE_CHECK((uintptr_t)sbrk(0) == brk && sbrk(65536) == (void *)brk);
	memset((void *)brk, 1, 65536);
}

/*
 * Once more with fewer addresses, where that is allowed: what an exec decides of memory depends on
 * it.
 */
static void limit_addresses(char **argv)
{
	if (personality(0xffffffff) & ADDR_LIMIT_3GB || personality(ADDR_LIMIT_3GB) == -1)
		return;
	execv("/proc/self/exe", argv);
	STATE_CHECK(!"exec");
}

int main(int argc, char **argv)
{
	struct sigaction sa = {.sa_sigaction = with_info, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigevent sev = {.sigev_notify = SIGEV_SIGNAL,
		.sigev_signo = SIGUSR2,
		.sigev_value.sival_ptr = (void *)0xfedcba98};
	pthread_t spinner, first, second, waiter;
	void *robust = NULL, *robust_now = NULL;
	struct utsname before, now;
	uintptr_t brk = (uintptr_t)sbrk(0);
	timer_t timer;
	int persona;
	uint32_t auxv[128], auxv_now[128] = {0};
	size_t len, n_auxv;
	pid_t pid;

	limit_addresses(argv);
	persona = PER_LINUX32 | (personality(0xffffffff) & ADDR_LIMIT_3GB);
	STATE_CHECK(personality((unsigned long)persona) != -1);
	STATE_CHECK(uname(&before) == 0 && !strcmp(before.machine, "i686"));
	STATE_CHECK(syscall(SYS_get_robust_list, 0, &robust, &len) == 0 && robust);
	STATE_CHECK(sigaction(SIGUSR2, &sa, NULL) == 0);
	handle(SIGUSR1, plain, SA_ONSTACK);
	handle(SIGALRM, nothing, 0);
	STATE_CHECK(timer_create(CLOCK_MONOTONIC, &sev, &timer) == 0);
	n_auxv = read_auxv(auxv, 128);
	STATE_CHECK(has_entry(auxv, n_auxv, AT_SYSINFO_EHDR, getauxval(AT_SYSINFO_EHDR)));
	STATE_CHECK(pthread_create(&first, NULL, in_handler, (void *)SIGUSR1) == 0);
	STATE_CHECK(pthread_create(&second, NULL, in_handler, (void *)SIGUSR2) == 0);
	STATE_CHECK(pthread_create(&spinner, NULL, spin, NULL) == 0);
	STATE_CHECK(pthread_create(&waiter, NULL, pause_by_int_80, NULL) == 0);
	brk = (uintptr_t)sbrk(0);
	while (!spinning || !entered_plain || !entered_info)
		state_nap();
	pid = getpid();
	state_ready(argc, argv);

	STATE_CHECK(!left_plain && !left_info);
	leave = stop = 1;
	STATE_CHECK(pthread_join(spinner, NULL) == 0 && !bad);
	STATE_CHECK(pthread_join(first, NULL) == 0 && left_plain == 1);
	STATE_CHECK(pthread_join(second, NULL) == 0 && left_info == 1);
	STATE_CHECK(pthread_kill(waiter, SIGALRM) == 0 && pthread_join(waiter, NULL) == 0);
	fire(timer);
	STATE_CHECK(raise(SIGUSR1) == 0 && left_plain == 2);
	STATE_CHECK(by_int_80(SYS_getpid) == pid && by_vdso(SYS_getpid) == pid);
	STATE_CHECK(syscall(SYS_get_robust_list, 0, &robust_now, &len) == 0);
	STATE_CHECK(robust_now == robust);
	STATE_CHECK(personality(0xffffffff) == persona);
	STATE_CHECK(uname(&now) == 0 && !strcmp(now.machine, "i686"));
	STATE_CHECK(read_auxv(auxv_now, 128) >= n_auxv - 2);
	for (size_t i = 0; i + 1 < n_auxv && auxv[i]; i += 2)
		STATE_CHECK(has_entry(auxv_now, 128, auxv[i], auxv[i + 1]));
	check_memory(brk);
	return state_ok();
}
