// SPDX-License-Identifier: GPL-2.0-or-later
#include "ckpt/restart.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
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

/* The number behind "name ... :" of /proc/PID/sched, in nanoseconds. */
static uint64_t sched_value(int proc_fd, const char *pid, const char *name)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	char path[32];
	const char *p;
	unsigned long ms, ns;

	snprintf(path, sizeof(path), "%s/sched", pid);
	if (io_read_file(proc_fd, path, 65536, &text) < 0 || !buf_cstr(&text))
		return 0;
	p = strstr(buf_cstr(&text), name);
	p = p ? strchr(p, ':') : NULL;
	if (!p || sscanf(p + 1, "%lu.%lu", &ms, &ns) != 2)
		return 0;
	return ms * MSEC + ns;
}

/* Does it wait with a timeout?  A tenth of the price of the clocks, and most do not. */
static bool waits_with_timeout(int proc_fd, pid_t tid)
{
	unsigned long long args[6];
	const struct wait *w;
	char path[32], text[256];
	_cleanup_close_ int fd = -1;
	ssize_t n;
	long nr;

	snprintf(path, sizeof(path), "%d/syscall", tid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	if (sscanf(text, "%ld %llx %llx %llx %llx %llx %llx", &nr, &args[0], &args[1], &args[2],
		    &args[3], &args[4], &args[5]) != 7)
		return false; /* "running" */
	w = find(nr);
	if (nr == SYS_restart_syscall)
		return true;
	if (!w || w->unit == NONE)
		return false;
	return w->unit == MILLISECONDS ? (int)args[w->arg] > 0 : args[w->arg] != 0;
}

uint64_t ckpt_restart_asleep(int proc_fd, pid_t tid)
{
	char pid[16];
	uint64_t its, ours;

	if (!waits_with_timeout(proc_fd, tid))
		return 0;
	snprintf(pid, sizeof(pid), "%d", tid);
	its = sched_value(proc_fd, pid, "se.exec_start");
	if (!its)
		return 0;
	/* The same clock, read through the one task that surely runs. */
	snprintf(pid, sizeof(pid), "%d", getpid());
	ours = sched_value(proc_fd, pid, "se.exec_start");
	return ours > its ? ours - its : 0;
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

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
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
