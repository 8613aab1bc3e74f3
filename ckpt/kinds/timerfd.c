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

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	const struct ckpt_file *f = s.file;
	_cleanup_(cleanup_common) Pb__FileCommon *common = NULL;
	_cleanup_buf_ struct buf text = BUF_INIT;
	Pb__TimerFd m = PB__TIMER_FD__INIT;
	uint64_t clock, ticks, flags;
	struct itimerspec left;
	struct timespec now;
	int r = ckpt_common_dump(d, f, &common, e);

	if (r < 0)
		return r;
	/* Brings the ticks of a periodic timer up to date; only then do they stand in fdinfo. */
	if (timerfd_gettime(f->fd, &left) < 0)
		return err_errno(e, -errno, "timerfd_gettime");
	r = ckpt_common_fdinfo(d, f, &text, e);
	if (r < 0)
		return r;
	if (!ckpt_fdinfo_number(buf_cstr(&text), "clockid", 10, &clock) ||
		!ckpt_fdinfo_number(buf_cstr(&text), "ticks", 10, &ticks) ||
		!ckpt_fdinfo_number(buf_cstr(&text), "settime flags", 8, &flags))
		return err_set(e, ERR_HOST, -ENOTSUP, "fdinfo does not tell a timerfd's settings");
	m.common = common;
	m.clock = (int32_t)clock;
	m.ticks = ticks;
	m.settime_flags = (int32_t)flags;
	m.value_ns = io_ns_of(left.it_value);
	m.interval_ns = io_ns_of(left.it_interval);
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

static void show(const void *body, size_t len, FILE *out)
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
