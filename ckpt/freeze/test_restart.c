// SPDX-License-Identifier: GPL-2.0-or-later
/* Interrupted calls and extended registers, on children of our own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/freeze/restart.h"
#include "ckpt/remote/i386.h"
#include "ckpt/xstate.h"
#include "proto/tasks.pb-c.h"

static long noted(long nr, long rax)
{
	struct user_regs_struct g = {.orig_rax = (unsigned long)nr, .rax = (unsigned long)rax};

	ckpt_restart_note(&g);
	return (long)g.rax;
}

static void calls_that_fail_are_restarted(void **state)
{
	assert_int_equal(noted(SYS_epoll_wait, -EINTR), -514);
	assert_int_equal(noted(SYS_semtimedop, -EINTR), -514);
	assert_int_equal(noted(SYS_epoll_wait, -EBADF), -EBADF);
	assert_int_equal(noted(SYS_nanosleep, -EINTR), -EINTR);
	assert_int_equal(noted(SYS_nanosleep, -516), -516);
	assert_int_equal(noted(-1, -EINTR), -EINTR);
}

static long noted_i386(long nr, unsigned long which, long rax)
{
	struct user_regs_struct g = {
		.cs = CODE_32, .orig_rax = (unsigned long)nr, .rbx = which, .rax = (unsigned long)rax};

	ckpt_restart_note(&g);
	return (long)g.rax;
}

static void and_those_of_32_bit_programs(void **state)
{
	assert_int_equal(noted_i386(I386_EPOLL_WAIT, 5, -EINTR), -514);
	assert_int_equal(noted_i386(I386_SEMTIMEDOP_TIME64, 5, -EINTR), -514);
	assert_int_equal(noted_i386(SYS_epoll_wait, 5, -EINTR), -EINTR);
	assert_int_equal(noted_i386(I386_NANOSLEEP, 5, -EINTR), -EINTR);
	/* semop, but not msgsnd; recv, but not connect */
	assert_int_equal(noted_i386(I386_IPC, 1, -EINTR), -514);
	assert_int_equal(noted_i386(I386_IPC, 11, -EINTR), -EINTR);
	assert_int_equal(noted_i386(I386_SOCKETCALL, 10, -EINTR), -514);
	assert_int_equal(noted_i386(I386_SOCKETCALL, 3, -EINTR), -EINTR);
	assert_int_equal(noted_i386(I386_SOCKETCALL, 1000, -EINTR), -EINTR);
}

static pid_t start(void (*body)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void sleeps(void)
{
	const struct timespec ts = {100, 0};

	nanosleep(&ts, NULL);
}

static void waits_for_ever(void)
{
	struct epoll_event ev;

	epoll_wait(epoll_create1(0), &ev, 1, -1);
}

#define LONGEST 90000000000ULL

static void sleep_is_measured(void **state)
{
	const struct timespec some = {0, 300000000};
	pid_t sleeper = start(sleeps), waiter = start(waits_for_ever);
	struct err e = {0};
	static struct ckpt_restart_clocks clocks;
	int proc = proc_open(&e);
	uint64_t ns, again;

	nanosleep(&some, NULL);
	ns = ckpt_restart_asleep(proc, sleeper, &clocks);
	/* 0: this kernel does not tell */
	assert_true(ns == 0 || (ns > 50000000 && ns < LONGEST));
	/* by what is known of the clock, and by a clock that was looked at long ago */
	again = ckpt_restart_asleep(proc, sleeper, &clocks);
	assert_true(again >= ns / 2 && again < LONGEST && !again == !ns);
	nanosleep(&some, NULL);
	again = ckpt_restart_asleep(proc, sleeper, &clocks);
	assert_true(again >= ns && again < LONGEST && !again == !ns);
	assert_int_equal(ckpt_restart_asleep(proc, waiter, &clocks), 0);
	assert_int_equal(ckpt_restart_asleep(proc, getpid(), &clocks), 0);
	end(sleeper);
	end(waiter);
	close(proc);
}

static void stops(void)
{
	static const uint8_t pattern[32] = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233};

	ptrace(PTRACE_TRACEME, 0, 0, 0);
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vmovdqu %0, %%ymm7" : : "m"(pattern) : "xmm7");
	syscall(SYS_kill, getpid(), SIGSTOP);
}

#define ALL	  UINT64_MAX /* components */
#define PKRU	  9
#define PKRU_INIT 0x55555554

/* Of a thread: what it may do with memory that has which protection key; 0 without such keys. */
static uint32_t pkru_of(pid_t pid)
{
	_cleanup_free_ void *mem = NULL;
	Pb__Thread m = PB__THREAD__INIT;
	struct err e = {0};
	uint32_t pkru = 0;

	assert_int_equal(ckpt_xstate_dump(pid, &m, &mem, &e), 0);
	for (size_t i = 0; i < m.n_xstate; i++)
		if (m.xstate[i]->number == PKRU)
			memcpy(&pkru, m.xstate[i]->data.data, sizeof(pkru));
	return pkru;
}

/* Whose CPU had no protection keys has what a new task has; whose CPU had them has what it had. */
static void pkru_is_a_new_tasks(void **state)
{
	Pb__Thread none = PB__THREAD__INIT;
	uint8_t fxsave[512] = {0};
	pid_t one = start(stops);
	struct err e = {0};
	bool has;

	waitpid(one, NULL, 0);
	has = pkru_of(one) != 0;
	none.fxsave = (ProtobufCBinaryData){sizeof(fxsave), fxsave};
	assert_int_equal(ckpt_xstate_restore(one, &none, ALL, &e), 0);
	assert_int_equal(pkru_of(one), 0);
	assert_int_equal(ckpt_xstate_restore(one, &none, ALL & ~(1ULL << PKRU), &e), 0);
	assert_int_equal(pkru_of(one), has ? PKRU_INIT : 0);
	end(one);
}

static void registers_go_round(void **state)
{
	Pb__Thread a = PB__THREAD__INIT, b = PB__THREAD__INIT, none = PB__THREAD__INIT;
	_cleanup_free_ void *a_mem = NULL, *b_mem = NULL;
	uint8_t fxsave[512] = {0};
	pid_t one = start(stops);
	struct err e = {0};
	int status;

	waitpid(one, &status, 0);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ckpt_xstate_dump(one, &a, &a_mem, &e), 0);
	memcpy(fxsave, a.fxsave.data, 32);
	none.fxsave = (ProtobufCBinaryData){sizeof(fxsave), fxsave};
	assert_int_equal(ckpt_xstate_restore(one, &none, ALL, &e), 0);
	assert_int_equal(ckpt_xstate_restore(one, &a, ALL, &e), 0);
	assert_int_equal(ckpt_xstate_dump(one, &b, &b_mem, &e), 0);
	assert_int_equal(a.xstate_bv, b.xstate_bv);
	assert_int_equal(a.n_xstate, b.n_xstate);
	assert_memory_equal(a.fxsave.data, b.fxsave.data, 464);
	for (size_t i = 0; i < a.n_xstate; i++) {
		assert_int_equal(a.xstate[i]->data.len, b.xstate[i]->data.len);
		assert_memory_equal(a.xstate[i]->data.data, b.xstate[i]->data.data,
			a.xstate[i]->data.len);
	}
	end(one);
}

/* A CPU with MPX saves two registers and leaves 48 bytes behind them as they were. */
static void reserved_bytes_say_nothing(void **state)
{
	Pb__XstateComponent bounds = PB__XSTATE_COMPONENT__INIT, *list[] = {&bounds};
	Pb__Thread m = PB__THREAD__INIT;
	uint8_t fxsave[512] = {0}, data[64] = {[16] = 1, [63] = 1};
	bool has = false;
	pid_t one = start(stops);
	struct err e = {0};
	uint32_t a, b, c, d;

	if (__get_cpuid_count(0xd, 0, &a, &b, &c, &d))
		has = a & (1 << 4);
	waitpid(one, NULL, 0);
	m.fxsave = (ProtobufCBinaryData){sizeof(fxsave), fxsave};
	m.n_xstate = 1;
	m.xstate = list;
	bounds.number = 4;
	bounds.data = (ProtobufCBinaryData){sizeof(data), data};
	assert_int_equal(ckpt_xstate_restore(one, &m, ALL, &e), 0);
	data[15] = 1;
	assert_int_equal(ckpt_xstate_restore(one, &m, ALL, &e), has ? 0 : -EOPNOTSUPP);
	end(one);
}

static void missing_registers_are_refused(void **state)
{
	Pb__XstateComponent odd = PB__XSTATE_COMPONENT__INIT, *list[] = {&odd};
	Pb__Thread m = PB__THREAD__INIT;
	uint8_t fxsave[512] = {0}, byte = 1;
	pid_t one = start(stops);
	struct err e = {0};

	waitpid(one, NULL, 0);
	m.fxsave = (ProtobufCBinaryData){sizeof(fxsave), fxsave};
	m.n_xstate = 1;
	m.xstate = list;
	odd.number = 40;
	odd.data = (ProtobufCBinaryData){1, &byte};
	assert_int_equal(ckpt_xstate_restore(one, &m, ALL, &e), -EOPNOTSUPP);
	assert_int_equal(e.class, ERR_HOST);
	odd.number = 1000;
	assert_int_equal(ckpt_xstate_restore(one, &m, ALL, &e), -EINVAL);
	assert_int_equal(e.class, ERR_IMAGE);
	m.fxsave.len = 100;
	assert_int_equal(ckpt_xstate_restore(one, &m, ALL, &e), -EINVAL);
	end(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_fail_are_restarted),
		cmocka_unit_test(and_those_of_32_bit_programs),
		cmocka_unit_test(sleep_is_measured),
		cmocka_unit_test(pkru_is_a_new_tasks),
		cmocka_unit_test(registers_go_round),
		cmocka_unit_test(reserved_bytes_say_nothing),
		cmocka_unit_test(missing_registers_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
