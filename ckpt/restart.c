// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in restart.h. */
#include "ckpt/restart.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/remote/remote.h"

#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516
#define NSEC		      1000000000ULL
#define MSEC		      1000000ULL
#define RED_ZONE	      128

/* Where a call keeps its relative timeout. */
enum unit { NONE, MILLISECONDS, TIMESPEC };

static const struct wait {
	long nr;
	bool eintr;	     /* ends with EINTR instead of being restarted */
	enum unit unit;
	unsigned char arg;   /* number of the argument with the timeout */
	signed char left;    /* number of the one where the kernel writes what is left, or -1 */
} waits[] = {
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

static const struct wait *find(long nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		if (waits[i].nr == nr)
			return &waits[i];
	return NULL;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static unsigned long long *argument(struct user_regs_struct *g, unsigned i)
{
	unsigned long long *args[] = {&g->rdi, &g->rsi, &g->rdx, &g->r10, &g->r8, &g->r9};

	return args[i];
}

void ckpt_restart_note(struct user_regs_struct *regs)
{
	const struct wait *w = (long)regs->orig_rax < 0 ? NULL : find((long)regs->orig_rax);

	if (w && w->eintr && (long)regs->rax == -EINTR)
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

/* Is @tid in a call that has a relative timeout and does not say itself what is left? */
static bool wants_measure(int proc_fd, pid_t tid)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned long long a[6];
	char path[32];
	const struct wait *w;
	long nr;

	snprintf(path, sizeof(path), "%d/syscall", tid);
	if (io_read_file(proc_fd, path, 512, &text) < 0 || !buf_cstr(&text) ||
		sscanf(buf_cstr(&text), "%ld %llx %llx %llx %llx %llx %llx", &nr, &a[0], &a[1],
			&a[2], &a[3], &a[4], &a[5]) != 7)
		return false;
	if (nr == SYS_restart_syscall)
		return true;
	w = find(nr);
	if (!w || w->unit == NONE || (w->left >= 0 && a[(unsigned)w->left]))
		return false;
	return w->unit == MILLISECONDS ? (int)a[w->arg] > 0 : a[w->arg] != 0;
}

/*
 * The clock is one CPU's: it leaves out what interrupts and the hypervisor took, so those of two CPUs
 * drift apart.  We go to the CPU the task slept on, and so have just been put on it.
 */
uint64_t ckpt_restart_asleep(int proc_fd, pid_t tid)
{
	uint64_t its, ours;
	cpu_set_t all, one;
	int cpu;

	if (!wants_measure(proc_fd, tid))
		return 0;
	its = last_ran(proc_fd, tid);
	cpu = last_cpu(proc_fd, tid);
	if (!its || cpu < 0 || cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(all), &all) < 0)
		return 0;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		return 0;
	ours = last_ran(proc_fd, sys_gettid());
	sched_setaffinity(0, sizeof(all), &all);
	return less(ours, its);
}

/*
 * The call behind restart_syscall: a program that was stopped and continued, or snapshotted, waits
 * in that.  The kernel knows; we look whether the number is loaded right before `syscall`.
 */
static long guess_call(struct remote *r, const struct user_regs_struct *g)
{
	uint8_t code[7]; /* mov $nr, %eax; syscall */
	int32_t nr;

	if (remote_peek(r, g->rip - sizeof(code), code, sizeof(code), NULL) < 0 || code[0] != 0xb8)
		return -1;
	memcpy(&nr, code + 1, sizeof(nr));
	return nr;
}

/* Points the argument at a timespec of what is left, in memory nobody uses. */
static void shorten_timespec(struct remote *r, struct user_regs_struct *g, const struct wait *w,
	uint64_t asleep_ns)
{
	unsigned long long *arg = argument(g, w->arg);
	uint64_t from = w->left >= 0 ? *argument(g, (unsigned)w->left) : 0;
	uint64_t room = (g->rsp - RED_ZONE - sizeof(struct timespec)) & ~15UL;
	struct timespec ts;
	uint64_t ns;

	if (!*arg || (from && from == *arg))
		return;
	if (remote_peek(r, from ? from : *arg, &ts, sizeof(ts), NULL) < 0)
		return;
	if (!from) {
		ns = less((uint64_t)ts.tv_sec * NSEC + (uint64_t)ts.tv_nsec, asleep_ns);
		ts = (struct timespec){(time_t)(ns / NSEC), (long)(ns % NSEC)};
	}
	if (remote_poke(r, room, &ts, sizeof(ts), NULL) == 0)
		*arg = room;
}

/* A point in time rather than a duration? */
static bool is_absolute(struct user_regs_struct *g, const struct wait *w)
{
	if (w->nr == SYS_clock_nanosleep)
		return g->rsi & TIMER_ABSTIME;
	if (w->nr == SYS_futex)
		return (g->rsi & FUTEX_CMD_MASK) != FUTEX_WAIT;
	return false;
}

void ckpt_restart_resume(struct remote *r, struct user_regs_struct *g, uint64_t asleep_ns)
{
	bool block = (long)g->rax == -ERESTART_RESTARTBLOCK;
	long nr = (long)g->orig_rax;
	const struct wait *w;

	if (nr < 0 || (!block && (long)g->rax != -ERESTARTNOHAND))
		return;
	if (nr == SYS_restart_syscall)
		nr = guess_call(r, g);
	w = find(nr);
	if (!w || (!block && !w->eintr)) {
		if (block) {
			g->rax = (unsigned long long)-EINTR;
			g->orig_rax = (unsigned long long)-1;
		}
		return;
	}
	if (w->unit == TIMESPEC && !is_absolute(g, w)) {
		shorten_timespec(r, g, w, asleep_ns);
	} else if (w->unit == MILLISECONDS && (int)*argument(g, w->arg) > 0) {
		unsigned long long *arg = argument(g, w->arg);

		*arg = less((unsigned)*arg, asleep_ns / MSEC);
	}
	g->rax = (unsigned long long)-ERESTARTNOHAND;
	g->orig_rax = (unsigned long long)nr;
}
