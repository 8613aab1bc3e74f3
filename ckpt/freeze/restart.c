// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in restart.h. */
#include "ckpt/freeze/restart.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/freeze/behind.h"
#include "ckpt/remote/i386.h"
#include "ckpt/remote/remote.h"

#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516
#define NSEC		      1000000000ULL
#define MSEC		      1000000ULL
#define RED_ZONE	      128
#define CLOCK_AGE_NS	      (20 * MSEC)

/* Where a call keeps its relative timeout. */
enum unit { NONE, MILLISECONDS, TIMESPEC, TIMESPEC_32 };

struct wait {
	long nr;
	bool eintr;	     /* ends with EINTR instead of being restarted */
	enum unit unit;
	unsigned char arg;   /* number of the argument with the timeout */
	signed char left;    /* number of the one where the kernel writes what is left, or -1 */
};

static const struct wait waits[] = {
	{SYS_nanosleep, false, TIMESPEC, 0, 1},
	{SYS_clock_nanosleep, false, TIMESPEC, 2, 3},
	{SYS_poll, false, MILLISECONDS, 2, -1},
	{SYS_futex, false, TIMESPEC, 3, -1},
	{SYS_epoll_wait, true, MILLISECONDS, 3, -1},
	{SYS_epoll_pwait, true, MILLISECONDS, 3, -1},
	{441 /* epoll_pwait2 */, true, TIMESPEC, 3, -1},
	{SYS_rt_sigtimedwait, true, TIMESPEC, 2, -1},
	{SYS_semtimedop, true, TIMESPEC, 3, -1},
	{SYS_semop, true, NONE, 0, -1},
	/* sockets with SO_RCVTIMEO or SO_SNDTIMEO */
	{SYS_read, true, NONE, 0, -1},
	{SYS_readv, true, NONE, 0, -1},
	{SYS_write, true, NONE, 0, -1},
	{SYS_writev, true, NONE, 0, -1},
	{SYS_recvfrom, true, NONE, 0, -1},
	{SYS_recvmsg, true, NONE, 0, -1},
	{SYS_sendto, true, NONE, 0, -1},
	{SYS_sendmsg, true, NONE, 0, -1},
	{SYS_accept, true, NONE, 0, -1},
	{SYS_accept4, true, NONE, 0, -1},
};

/* Of 32-bit programs. */
static const struct wait waits_i386[] = {
	{I386_NANOSLEEP, false, TIMESPEC_32, 0, 1},
	{I386_CLOCK_NANOSLEEP, false, TIMESPEC_32, 2, 3},
	{I386_CLOCK_NANOSLEEP_TIME64, false, TIMESPEC, 2, 3},
	{I386_POLL, false, MILLISECONDS, 2, -1},
	{I386_FUTEX, false, TIMESPEC_32, 3, -1},
	{I386_FUTEX_TIME64, false, TIMESPEC, 3, -1},
	{I386_EPOLL_WAIT, true, MILLISECONDS, 3, -1},
	{I386_EPOLL_PWAIT, true, MILLISECONDS, 3, -1},
	{I386_EPOLL_PWAIT2, true, TIMESPEC, 3, -1},
	{I386_RT_SIGTIMEDWAIT, true, TIMESPEC_32, 2, -1},
	{I386_RT_SIGTIMEDWAIT_TIME64, true, TIMESPEC, 2, -1},
	{I386_SEMTIMEDOP_TIME64, true, TIMESPEC, 3, -1},
	{I386_IPC, true, NONE, 0, -1},
	/* sockets with SO_RCVTIMEO or SO_SNDTIMEO */
	{I386_READ, true, NONE, 0, -1},
	{I386_READV, true, NONE, 0, -1},
	{I386_WRITE, true, NONE, 0, -1},
	{I386_WRITEV, true, NONE, 0, -1},
	{I386_RECVFROM, true, NONE, 0, -1},
	{I386_RECVMSG, true, NONE, 0, -1},
	{I386_SENDTO, true, NONE, 0, -1},
	{I386_SENDMSG, true, NONE, 0, -1},
	{I386_ACCEPT4, true, NONE, 0, -1},
	{I386_SOCKETCALL, true, NONE, 0, -1},
};

static const struct wait *find(bool i386, long nr)
{
	const struct wait *list = i386 ? waits_i386 : waits;
	size_t n = i386 ? ARRAY_SIZE(waits_i386) : ARRAY_SIZE(waits);

	for (size_t i = 0; i < n; i++)
		if (list[i].nr == nr)
			return &list[i];
	return NULL;
}

/*
 * Of a call that is many, which one: connect(2), msgrcv(2) and others do end with EINTR, or are
 * restarted by the kernel.
 */
static bool is_one_of_many(const struct user_regs_struct *g, const struct wait *w)
{
	enum { SEMOP = 1, SEMTIMEDOP = 4 };		     /* linux/ipc.h */
	const uint64_t sockets = 1 << 5 | 1 << 9 | 1 << 10 | /* accept, send, recv; linux/net.h */
				 1 << 11 | 1 << 12 | 1 << 16 | 1 << 17 | 1 << 18;
	uint32_t which = (uint32_t)g->rbx;

	if (w->nr == I386_IPC)
		return (which & 0xffff) == SEMOP || (which & 0xffff) == SEMTIMEDOP;
	return which < 64 && sockets >> which & 1;
}

static bool may_restart(const struct user_regs_struct *g, const struct wait *w)
{
	if (!w->eintr)
		return false;
	if (!i386_runs(g) || (w->nr != I386_IPC && w->nr != I386_SOCKETCALL))
		return true;
	return is_one_of_many(g, w);
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void ckpt_restart_note(struct user_regs_struct *regs)
{
	const struct wait *w = (long)regs->orig_rax < 0
				       ? NULL
				       : find(i386_runs(regs), (long)regs->orig_rax);

	if (w && may_restart(regs, w) && (long)regs->rax == -EINTR)
		regs->rax = (unsigned long long)-ERESTARTNOHAND;
}

/* When @pid was last put on or off a CPU, in nanoseconds of that CPU's clock; 0 if not told. */
static uint64_t last_ran(int proc_fd, pid_t pid)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[32];
	const char *p;
	unsigned long ms, ns;

	snprintf(path, sizeof(path), "%d/sched", pid);
	if (io_read_file(proc_fd, path, 65536, &text) < 0 || !buf_cstr(&text))
		return 0;
	p = strstr(buf_cstr(&text), "se.exec_start");
	p = p ? strchr(p, ':') : NULL;
	if (!p || sscanf(p + 1, "%lu.%lu", &ms, &ns) != 2)
		return 0;
	return ms * MSEC + ns;
}

/* The CPU @pid last ran on: number 39 of its stat. */
static int last_cpu(int proc_fd, pid_t pid)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[32];
	const char *p;

	snprintf(path, sizeof(path), "%d/stat", pid);
	if (io_read_file(proc_fd, path, 4096, &text) < 0 || !buf_cstr(&text))
		return -1;
	p = strrchr(buf_cstr(&text), ')');
	for (int field = 2; p && field < 39; field++)
		p = strchr(p + 1, ' ');
	return p ? atoi(p) : -1;
}

enum wish { UNKNOWN, NO_MEASURE, MEASURE };

/*
 * Is @tid in a call that has a relative timeout and does not say itself what is left?  Unknown
 * while it runs.
 */
static enum wish wants_measure(int proc_fd, pid_t tid)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned long long a[6], sp;
	char path[32];
	const struct wait *w;
	bool i386, wanted;
	long nr;
	int n;

	snprintf(path, sizeof(path), "%d/syscall", tid);
	if (io_read_file(proc_fd, path, 512, &text) < 0 || !buf_cstr(&text))
		return UNKNOWN;
	n = sscanf(buf_cstr(&text), "%ld %llx %llx %llx %llx %llx %llx %llx", &nr, &a[0], &a[1],
		&a[2], &a[3], &a[4], &a[5], &sp);
	if (n != 8)
		return n > 0 ? NO_MEASURE : UNKNOWN; /* blocked, but not in a call; "running" */
	i386 = sp < END_32; /* a guess, which costs a measurement that nobody looks at */
	if (nr == (i386 ? I386_RESTART_SYSCALL : SYS_restart_syscall))
		return MEASURE;
	w = find(i386, nr);
	if (!w || w->unit == NONE || (w->left >= 0 && a[(unsigned)w->left]))
		return NO_MEASURE;
	wanted = w->unit == MILLISECONDS ? (int)a[w->arg] > 0 : a[w->arg] != 0;
	return wanted ? MEASURE : NO_MEASURE;
}

/*
 * The clock is one CPU's: it leaves out what interrupts and the hypervisor took, so those of two
 * CPUs drift apart.  We go to the CPU the task slept on, and so have just been put on it.  That
 * takes its time where others want that CPU, too, so it is done anew only when it has been for so
 * long that it matters.
 */
static uint64_t clock_of(int proc_fd, int cpu, struct ckpt_restart_clocks *clocks)
{
	uint64_t now = io_now_ns();
	cpu_set_t all, one;

	if (clocks->of[cpu].said && now - clocks->of[cpu].at < CLOCK_AGE_NS)
		return clocks->of[cpu].said + (now - clocks->of[cpu].at);
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return 0;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		return 0;
	clocks->of[cpu].said = last_ran(proc_fd, sys_gettid());
	clocks->of[cpu].at = io_now_ns();
	sched_setaffinity(0, sizeof(all), &all);
	return clocks->of[cpu].said;
}

bool ckpt_restart_sleeps(
	int proc_fd, pid_t tid, struct ckpt_restart_clocks *clocks, uint64_t *ret_asleep_ns)
{
	enum wish wish = wants_measure(proc_fd, tid);
	uint64_t its;
	int cpu;

	*ret_asleep_ns = 0;
	if (wish != MEASURE)
		return wish == NO_MEASURE;
	its = last_ran(proc_fd, tid);
	cpu = last_cpu(proc_fd, tid);
	if (its && cpu >= 0 && cpu < CPU_SETSIZE)
		*ret_asleep_ns = less(clock_of(proc_fd, cpu, clocks), its);
	return true;
}

uint64_t ckpt_restart_asleep(int proc_fd, pid_t tid, struct ckpt_restart_clocks *clocks)
{
	uint64_t asleep_ns;

	ckpt_restart_sleeps(proc_fd, tid, clocks, &asleep_ns);
	return asleep_ns;
}

struct timespec_32 {
	int32_t tv_sec, tv_nsec;
};

static int get_timespec(struct remote *r, uint64_t at, const struct wait *w, struct timespec *ret)
{
	struct timespec_32 narrow;
	int k;

	if (w->unit == TIMESPEC) {
		k = remote_peek(r, at, ret, sizeof(*ret), NULL);
		/* a 32-bit program's has padding there */
		ret->tv_nsec = (int32_t)ret->tv_nsec;
		return k;
	}
	k = remote_peek(r, at, &narrow, sizeof(narrow), NULL);
	*ret = (struct timespec){narrow.tv_sec, narrow.tv_nsec};
	return k;
}

static int put_timespec(
	struct remote *r, uint64_t at, const struct wait *w, const struct timespec *ts)
{
	struct timespec_32 narrow = {(int32_t)ts->tv_sec, (int32_t)ts->tv_nsec};

	return w->unit == TIMESPEC ? remote_poke(r, at, ts, sizeof(*ts), NULL)
				   : remote_poke(r, at, &narrow, sizeof(narrow), NULL);
}

/* Points the argument at a timespec of what is left, in memory nobody uses. */
static void shorten_timespec(struct remote *r, struct user_regs_struct *g, const struct wait *w,
	uint64_t asleep_ns)
{
	unsigned long long *arg = ckpt_call_argument(g, w->arg);
	uint64_t from = w->left >= 0 ? *ckpt_call_argument(g, (unsigned)w->left) : 0;
	uint64_t room = (g->rsp - RED_ZONE - sizeof(struct timespec)) & ~15UL;
	struct timespec ts;
	uint64_t ns;

	if (!*arg || (from && from == *arg))
		return;
	if (get_timespec(r, from ? from : *arg, w, &ts) < 0)
		return;
	if (!from) {
		ns = less((uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec, asleep_ns);
		ts = (struct timespec){(time_t)(ns / NSEC), (long)(ns % NSEC)};
	}
	if (put_timespec(r, room, w, &ts) == 0)
		*arg = room;
}

/* A point in time rather than a duration? */
static bool is_absolute(struct user_regs_struct *g, const struct wait *w)
{
	bool i386 = i386_runs(g);
	long nr = w->nr;

	if (i386 ? nr == I386_CLOCK_NANOSLEEP || nr == I386_CLOCK_NANOSLEEP_TIME64
		 : nr == SYS_clock_nanosleep)
		return *ckpt_call_argument(g, 1) & TIMER_ABSTIME;
	if (i386 ? nr == I386_FUTEX || nr == I386_FUTEX_TIME64 : nr == SYS_futex)
		return (*ckpt_call_argument(g, 1) & FUTEX_CMD_MASK) != FUTEX_WAIT;
	return false;
}

void ckpt_restart_resume(struct remote *r, struct user_regs_struct *g, uint64_t asleep_ns)
{
	bool block = (long)g->rax == -ERESTART_RESTARTBLOCK;
	long nr = (long)g->orig_rax;
	const struct wait *w;

	if (nr < 0 || (!block && (long)g->rax != -ERESTARTNOHAND))
		return;
	if (nr == (i386_runs(g) ? I386_RESTART_SYSCALL : SYS_restart_syscall))
		nr = ckpt_call_behind(r, g);
	w = find(i386_runs(g), nr);
	if (!w || (!block && !may_restart(g, w))) {
		if (block) {
			g->rax = (unsigned long long)-EINTR;
			g->orig_rax = (unsigned long long)-1;
		}
		return;
	}
	if ((w->unit == TIMESPEC || w->unit == TIMESPEC_32) && !is_absolute(g, w)) {
		shorten_timespec(r, g, w, asleep_ns);
	} else if (w->unit == MILLISECONDS && (int)*ckpt_call_argument(g, w->arg) > 0) {
		unsigned long long *arg = ckpt_call_argument(g, w->arg);

		*arg = less((unsigned)*arg, asleep_ns / MSEC);
	}
	g->rax = (unsigned long long)-ERESTARTNOHAND;
	g->orig_rax = (unsigned long long)nr;
}
