// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * timerfd - kind TIMERFD.  timerfd_create(2); clock, flags and ticks are in fdinfo.
 *
 * The time that remains is recorded, because the session's monotonic clocks stand still while it is
 * frozen.  Only an absolute timer of the wall clock keeps its moment, as that clock jumps on.
 * Timers are armed at finish, as late as can be; ticks that nobody had read come back by
 * TFD_IOC_SET_TICKS.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <time.h>

#include "ckpt/kinds/common.h"
#include "ckpt/kinds/kinds.h"
#include "proto/files.pb-c.h"

#ifndef TFD_IOC_SET_TICKS
#define TFD_IOC_SET_TICKS _IOW('T', 0, uint64_t)
#endif

static bool claim(const struct ckpt_file *f)
{
	return !strcmp(f->link, "anon_inode:[timerfd]");
}

static bool on_wall_clock(const Pb__TimerFd *m)
{
	return (m->clock == CLOCK_REALTIME || m->clock == CLOCK_REALTIME_ALARM) &&
	       (m->settime_flags & TFD_TIMER_ABSTIME);
}

/*
 * A timer may go off while it is looked at.  The kernel tells 0 of one whose time has come, also as
 * long as the CPU that has it - another one, which may be late - has not made a tick of it; and it
 * tells 0 of one that is not armed.  The former must not come back as the latter: a periodic one
 * would stand still for ever.
 *
 * The survey looked when all tasks stood still, and since then nobody has armed anything.  What had
 * time left then, and has neither time nor a tick now, is due.  What had none then is not armed, or
 * was just going off: that is over a moment later.
 */
#define SETTLED_NS 2000000U
#define TRIES	   100 /* one of so short a period goes off each time */

/* When this dump met the first of them; 0: no memory. */
static uint64_t since(struct ckpt_dump *d)
{
	void **slot = &d->kind_state[PROTO_KIND_TIMERFD];

	if (!*slot && (*slot = malloc(sizeof(uint64_t))))
		*(uint64_t *)*slot = io_now_ns();
	return *slot ? *(uint64_t *)*slot : 0;
}

/* What fdinfo says is left; -1: nothing that is understood. */
static int64_t told_left(const char *text)
{
	const char *p = text ? strstr(text, "\nit_value: (") : NULL;
	struct timespec t;

	return p && sscanf(p, "\nit_value: (%ld, %ld)", &t.tv_sec, &t.tv_nsec) == 2 ? io_ns_of(t)
										    : -1;
}

/* Neither time is left nor a tick there: due, or not armed.  Returns false if
 * that can't be told yet. */
static bool tell_apart(struct ckpt_dump *d, const struct ckpt_file *f, Pb__TimerFd *m)
{
	const struct timespec nap = {.tv_nsec = SETTLED_NS / 8};

	if (told_left(f->fdinfo) > 0) {
		m->value_ns = 1;
		return true;
	}
	if (io_now_ns() - since(d) >= SETTLED_NS)
		return true;
	nanosleep(&nap, NULL);
	return false;
}

/* One look; returns 1 if what it tells belongs together, 0 if the timer went off meanwhile. */
static int look(struct ckpt_dump *d, const struct ckpt_file *f, Pb__TimerFd *m, struct err *e)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	uint64_t clock, ticks, flags;
	struct itimerspec left;
	int64_t told;
	int r;

	/* Brings the ticks of a periodic timer up to date; only then do they stand in fdinfo. */
	if (timerfd_gettime(f->fd, &left) < 0)
		return err_errno(e, -errno, "timerfd_gettime");
	r = ckpt_common_fdinfo(d, f, &text, e);
	if (r < 0)
		return r;
	told = told_left(buf_cstr(&text));
	if (told < 0 || !ckpt_fdinfo_number(buf_cstr(&text), "clockid", 10, &clock) ||
		!ckpt_fdinfo_number(buf_cstr(&text), "ticks", 10, &ticks) ||
		!ckpt_fdinfo_number(buf_cstr(&text), "settime flags", 8, &flags))
		return err_set(e, ERR_HOST, -ENOTSUP, "fdinfo does not tell a timerfd's settings");
	if (timerfd_gettime(f->fd, &left) < 0)
		return err_errno(e, -errno, "timerfd_gettime");
	m->clock = (int32_t)clock;
	m->ticks = ticks;
	m->settime_flags = (int32_t)flags;
	m->value_ns = io_ns_of(left.it_value);
	m->interval_ns = io_ns_of(left.it_interval);
	if (told)
		return m->value_ns && m->value_ns <= told;
	if (m->value_ns || (m->ticks && m->interval_ns))
		return 0;
	return m->ticks || tell_apart(d, f, m);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	Pb__TimerFd m = PB__TIMER_FD__INIT;
	struct timespec now;
	int r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	m.common = common;
	for (int i = 0; (r = look(d, f, &m, e)) == 0 && i < TRIES; i++)
		;
	if (r < 0)
		return r;
	if (r == 0 && m.interval_ns)
		m.value_ns = MAX(m.value_ns, 1);
	if (on_wall_clock(&m) && m.value_ns) {
		clock_gettime(CLOCK_REALTIME, &now);
		m.expires_ns = io_ns_of(now) + m.value_ns;
	}
	return ckpt_pack(&m.base, body, e);
}

static int make(struct ckpt_build *b, const Pb__TimerFd *m, struct err *e)
{
	_cleanup_close_ int fd = timerfd_create(m->clock, TFD_CLOEXEC);
	int r;

	if (fd < 0)
		return err_errno(e, -errno, "timerfd_create of clock %d", m->clock);
	r = ckpt_common_restore(b, fd, m->common, e);
	return r < 0 ? r : take_fd(&fd);
}

static int create(struct ckpt_build *b, struct ckpt_record *r, int *ret_fd, struct err *e)
{
	Pb__TimerFd *m = pb__timer_fd__unpack(NULL, r->len, r->body);
	int fd = m && m->common && m->value_ns >= 0 && m->interval_ns >= 0 && m->expires_ns >= 0
			 ? make(b, m, e)
			 : ckpt_common_bad(r, e);

	if (m)
		pb__timer_fd__free_unpacked(m, NULL);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

static int arm(int fd, const Pb__TimerFd *m, struct err *e)
{
	struct itimerspec t = {.it_interval = io_timespec_of(m->interval_ns),
		.it_value = io_timespec_of(m->value_ns)};
	int flags = 0;

	if (on_wall_clock(m)) {
		flags = m->settime_flags & (TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
		if (m->expires_ns)
			t.it_value = io_timespec_of(m->expires_ns);
	}
	if (timerfd_settime(fd, flags, &t, NULL) < 0)
		return err_errno(e, -errno, "timerfd_settime");
	if (m->ticks && ioctl(fd, TFD_IOC_SET_TICKS, &m->ticks) < 0)
		return err_errno(e, -errno, "cannot set the ticks of a timerfd");
	return 0;
}

static int finish(struct ckpt_build *b, struct ckpt_record *r, struct err *e)
{
	Pb__TimerFd *m = pb__timer_fd__unpack(NULL, r->len, r->body);
	struct ckpt_build_file *f = ckpt_build_file(b, (uint32_t)r->subject);
	int x = m && f && f->fd >= 0 ? arm(f->fd, m, e) : ckpt_common_bad(r, e);

	if (m)
		pb__timer_fd__free_unpacked(m, NULL);
	return x;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__TimerFd *m = pb__timer_fd__unpack(NULL, len, body);

	if (!m)
		fputs("unreadable", out);
	else
		fprintf(out, "clock %d, %lld ns left, every %lld ns, %llu ticks", m->clock,
			(long long)m->value_ns, (long long)m->interval_ns,
			(unsigned long long)m->ticks);
	if (m)
		pb__timer_fd__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_timerfd = {
	.number = PROTO_KIND_TIMERFD,
	.name = "timerfd",
	.scope = CKPT_FILE,
	.claim = claim,
	.dump = dump,
	.create = create,
	.finish = finish,
	.show = show,
};
