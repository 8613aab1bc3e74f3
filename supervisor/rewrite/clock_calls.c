// SPDX-License-Identifier: GPL-2.0-or-later
/* Questions and deadlines (clocks.h).  The tables are at the bottom. */
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/base.h"
#include "supervisor/rewrite/answers.h"
#include "supervisor/rewrite/calls.h"
#include "supervisor/rewrite/pi.h"
#include "supervisor/rewrite/rewrite.h"

#define RED_ZONE 128 /* below the stack's end, a function's own: x86-64 psABI */
#define SECOND	 1000000000LL
/*
 * Behind these seconds, 136 years, there is no difference between one point in time and the next.
 */
#define NEVER	   (1LL << 32)
#define NO_VDSO	   1
#define MAX_TIMERS (1u << 20) /* bytes of /proc/PID/timers */

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define SYS_FUTEX_WAIT 455 /* futex_wait(2), since 6.7 */

/* ---- deadlines ------------------------------------------------------------------------------ */

/* Of i386 there are calls with seconds of 32 bits, too; all others have the same as x86-64. */
struct time32 {
	int32_t sec, nsec;
};

static bool is_narrow(int nr32)
{
	static const int narrow[] = {240 /* futex */, 260 /* timer_settime */,
		265 /* clock_gettime */, 267 /* clock_nanosleep */, 325 /* timerfd_settime */};

	for (size_t i = 0; i < ARRAY_SIZE(narrow); i++)
		if (narrow[i] == nr32)
			return true;
	return false;
}

/* A timespec, or an itimerspec, as it is in memory. */
struct times {
	size_t width,
		n; /* of a timespec; how many there are, of which the last is a point in time */
	uint8_t bytes[2 * sizeof(struct timespec)];
};

static uint8_t *last(struct times *t)
{
	return t->bytes + (t->n - 1) * t->width;
}

static struct timespec get_last(const struct task *task, struct times *t)
{
	struct time32 narrow;
	struct timespec ts;

	if (t->width == sizeof(narrow)) {
		memcpy(&narrow, last(t), sizeof(narrow));
		return (struct timespec){narrow.sec, narrow.nsec};
	}
	memcpy(&ts, last(t), sizeof(ts));
	if (task->compat.is)
		ts.tv_nsec = (int32_t)ts.tv_nsec; /* the kernel does not look at the rest */
	return ts;
}

static void put_last(struct times *t, struct timespec ts)
{
	struct time32 narrow = {(int32_t)MIN(ts.tv_sec, INT32_MAX), (int32_t)ts.tv_nsec};

	if (t->width == sizeof(narrow))
		memcpy(last(t), &narrow, sizeof(narrow));
	else
		memcpy(last(t), &ts, sizeof(ts));
}

/* In the place of its own for as long as the call takes. */
static int put_in_place(struct task *task, struct times *t, uint64_t addr)
{
	addr += (t->n - 1) * t->width;
	task->call.lent_len = t->width;
	if (task_peek(task, addr, task->call.was, t->width) < 0 ||
		task_poke(task, addr, last(t), t->width) < 0)
		return -EFAULT;
	task->call.lent = addr;
	return 0;
}

/*
 * At *arg there are @n times, of which the last is a point in time of @clock.  Points it at a copy
 * that says the host's, below the stack, where that reaches so far and the call as well.  1: the
 * kernel may have it as it is.
 */
static int lend(const struct rewrite *rw, struct task *task, const struct user_regs_struct *regs,
	unsigned long long *arg, size_t n, int clock)
{
	struct times t = {.n = n,
		.width = task->compat.is && is_narrow(task->compat.nr) ? sizeof(struct time32)
								       : sizeof(struct timespec)};
	uint64_t below = (regs->rsp - RED_ZONE - sizeof(t.bytes)) & ~UINT64_C(15);
	int64_t offset = clocks_offset(&rw->clocks, clock), ns;
	struct timespec ts;

	if (!offset || !*arg || task_peek(task, *arg, t.bytes, n * t.width) < 0)
		return 1;
	ts = get_last(task, &t);
	/* What makes no sense the kernel refuses; what is 0 ends a timer. */
	if (ts.tv_sec < 0 || ts.tv_sec > NEVER || ts.tv_nsec < 0 || ts.tv_nsec >= SECOND ||
		(n > 1 && !ts.tv_sec && !ts.tv_nsec))
		return 1;
	ns = (int64_t)ts.tv_sec * SECOND + ts.tv_nsec - offset;
	put_last(&t, io_timespec_of(MAX(ns, 1))); /* long ago, but 0 would end a timer */
	if ((task->compat.is && below > UINT32_MAX) ||
		task_poke(task, below, t.bytes, n * t.width) < 0)
		return put_in_place(task, &t, *arg);
	*arg = below;
	return 0;
}

static int lend_timespec(const struct rewrite *rw, struct task *task,
	const struct user_regs_struct *regs, unsigned long long *arg, int clock)
{
	return lend(rw, task, regs, arg, 1, clock);
}

static int lend_timer(const struct rewrite *rw, struct task *task,
	const struct user_regs_struct *regs, unsigned long long *arg, int clock)
{
	return lend(rw, task, regs, arg, 2, clock);
}

static void take_back(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	if (task->call.lent)
		task_poke(task, task->call.lent, task->call.was, task->call.lent_len);
}

/* clock_nanosleep(2) */
static int enter_sleep(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	int clock = (int)regs->rdi;

	if (clock < 0 || !(regs->rsi & TIMER_ABSTIME))
		return calls_enter_clock(rw, task, regs);
	return lend_timespec(rw, task, regs, &regs->rdx, clock);
}

/* Of priority-inheritance mutexes they are what pi.c makes of them. */
static int enter_futex(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	bool pi = ((int)regs->rsi & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET;
	int r = pi ? pi_enter(rw, task, regs) : 0, k;

	if (r != 0 || ((int)regs->rsi & FUTEX_CMD_MASK) != FUTEX_WAIT_BITSET ||
		(regs->rsi & FUTEX_CLOCK_REALTIME))
		return r;
	k = lend_timespec(rw, task, regs, &regs->r10, CLOCK_MONOTONIC);
	return k == 1 && pi ? 0 : k;
}

static void leave_futex(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	take_back(rw, task, regs);
	pi_leave(rw, task, regs);
}

static int enter_waitv(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return lend_timespec(rw, task, regs, &regs->r10, (int)regs->r8);
}

static int enter_wait(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return lend_timespec(rw, task, regs, &regs->r8, (int)regs->r9);
}

/* Which clock it has must be asked; -1: it is none. */
static int clock_of_timerfd(const struct task *task, int fd)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	const char *found;
	char path[48];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", task->host, fd);
	if (io_read_file(AT_FDCWD, path, 4096, &text) < 0 || !buf_cstr(&text))
		return -1;
	found = strstr(buf_cstr(&text), "\nclockid:");
	return found ? atoi(found + strlen("\nclockid:")) : -1;
}

/* "ID: 3\n...ClockID: 1\nID: 4\n..." */
static int clock_of_timer(const struct task *task, int id)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[32], begin[32];
	const char *found;

	snprintf(path, sizeof(path), "/proc/%d/timers", task->tgid);
	snprintf(begin, sizeof(begin), "\nID: %d\n", id);
	buf_put_u8(&text, '\n');
	if (io_read_file(AT_FDCWD, path, MAX_TIMERS, &text) < 0 || !buf_cstr(&text))
		return -1;
	found = strstr(buf_cstr(&text), begin);
	found = found ? strstr(found, "ClockID: ") : NULL;
	return found ? atoi(found + strlen("ClockID: ")) : -1;
}

static int enter_timerfd(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return lend_timer(rw, task, regs, &regs->rdx, clock_of_timerfd(task, (int)regs->rdi));
}

static int enter_timer(struct rewrite *rw, struct task *task, struct user_regs_struct *regs)
{
	return lend_timer(rw, task, regs, &regs->rdx, clock_of_timer(task, (int)regs->rdi));
}

const struct rewrite_call clock_calls[] = {
	{SYS_clock_nanosleep, .enter = enter_sleep, .leave = take_back},
	{SYS_futex, .enter = enter_futex, .leave = leave_futex},
	{SYS_futex_waitv, .enter = enter_waitv, .leave = take_back},
	{SYS_FUTEX_WAIT, .enter = enter_wait, .leave = take_back},
	{SYS_timerfd_settime, .enter = enter_timerfd, .leave = take_back},
	{SYS_timer_settime, .enter = enter_timer, .leave = take_back},
};
const size_t clock_n_calls = ARRAY_SIZE(clock_calls);

/* ---- questions ------------------------------------------------------------------------------ */

/* Then the vDSO adds what there is to be added.  Those of i386 never ask (clocks.c). */
static bool comes_from_vdso(const struct question *q)
{
	uint64_t end, at = q->data->instruction_pointer;
	struct task *task = q->asker;

	if (q->nr32 >= 0)
		return false;
	if (!task->vdso && !clocks_find_vdso(task->host, &task->vdso, &end))
		task->vdso = NO_VDSO;
	return at >= task->vdso && at - task->vdso < q->rw->clocks.vdso_len;
}

static long get_time(struct question *q)
{
	int clock = question_arg(q, 0);
	struct timespec t;
	struct time32 narrow;

	if (clock_gettime(clock, &t) < 0)
		return -errno;
	if (!comes_from_vdso(q))
		t = io_timespec_of(io_ns_of(t) + clocks_offset(&q->rw->clocks, clock));
	narrow = (struct time32){(int32_t)t.tv_sec, (int32_t)t.tv_nsec};
	return is_narrow(q->nr32) ? question_write(q, q->data->args[1], &narrow, sizeof(narrow))
				  : question_write(q, q->data->args[1], &t, sizeof(t));
}

/* struct compat_sysinfo of kernel/sys.c.  Its unit is such that the numbers fit. */
struct sysinfo32 {
	int32_t uptime;
	uint32_t loads[3], totalram, freeram, sharedram, bufferram, totalswap, freeswap;
	uint16_t procs, pad;
	uint32_t totalhigh, freehigh, mem_unit;
	char unused[8];
};
_Static_assert(sizeof(struct sysinfo32) == 64, "include/uapi/linux/sysinfo.h");

static struct sysinfo32 narrow_sysinfo(const struct sysinfo *s)
{
	struct sysinfo32 n = {
		.uptime = (int32_t)s->uptime, .procs = s->procs, .mem_unit = s->mem_unit};
	int shift = 0;

	if ((s->totalram | s->totalswap) >> 32)
		for (; n.mem_unit < PAGE_SIZE; shift++)
			n.mem_unit <<= 1;
	for (int i = 0; i < 3; i++)
		n.loads[i] = (uint32_t)s->loads[i];
	n.totalram = (uint32_t)(s->totalram >> shift);
	n.freeram = (uint32_t)(s->freeram >> shift);
	n.sharedram = (uint32_t)(s->sharedram >> shift);
	n.bufferram = (uint32_t)(s->bufferram >> shift);
	n.totalswap = (uint32_t)(s->totalswap >> shift);
	n.freeswap = (uint32_t)(s->freeswap >> shift);
	n.totalhigh = (uint32_t)(s->totalhigh >> shift);
	n.freehigh = (uint32_t)(s->freehigh >> shift);
	return n;
}

/* The time since the boot, rounded up as the kernel does. */
static long get_sysinfo(struct question *q)
{
	struct sysinfo32 narrow;
	struct timespec t;
	struct sysinfo s;

	if (sysinfo(&s) < 0 || clock_gettime(CLOCK_BOOTTIME, &t) < 0)
		return -errno;
	t = io_timespec_of(io_ns_of(t) + q->rw->clocks.offset.boottime_ns);
	s.uptime = t.tv_sec + (t.tv_nsec ? 1 : 0);
	narrow = narrow_sysinfo(&s);
	return q->nr32 >= 0 ? question_write(q, q->data->args[0], &narrow, sizeof(narrow))
			    : question_write(q, q->data->args[0], &s, sizeof(s));
}

const struct answer_row clock_answers[] = {
	{SYS_clock_gettime, get_time},
	{SYS_sysinfo, get_sysinfo},
};
const size_t clock_n_answers = ARRAY_SIZE(clock_answers);
