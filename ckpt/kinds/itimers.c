// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Interval timers: the three of setitimer(2), with what is left of them.
 *
 * While the signal of ITIMER_REAL is pending nothing is left: the kernel starts the next round when
 * it is taken.  Such a timer is set to a whole interval, which comes to the same.
 */
#include <string.h>
#include <sys/time.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/ask.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

#define N_TIMERS 3

static int64_t to_us(struct timeval tv)
{
	return tv.tv_sec * 1000000L + tv.tv_usec;
}

static struct timeval of_us(int64_t us)
{
	return (struct timeval){us / 1000000, us % 1000000};
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Itimers m = PB__ITIMERS__INIT;
	Pb__Itimer timers[N_TIMERS], *list[N_TIMERS];
	const struct ckpt_asked *asked;
	int r;

	if (s.proc->state == CKPT_ZOMBIE)
		return 1;
	r = ckpt_ask_proc(s.proc, &asked, e);
	if (r < 0)
		return r;
	for (int i = 0; i < N_TIMERS; i++) {
		Pb__Itimer *t = &timers[m.n_timers];

		if (!to_us(asked->itimers[i].it_value) && !to_us(asked->itimers[i].it_interval))
			continue;
		pb__itimer__init(t);
		t->which = i;
		t->value_us = to_us(asked->itimers[i].it_value);
		t->interval_us = to_us(asked->itimers[i].it_interval);
		list[m.n_timers++] = t;
	}
	if (!m.n_timers)
		return 1;
	m.timers = list;
	return ckpt_pack(&m.base, body, e);
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Itimers *m = pb__itimers__unpack(NULL, rec->len, rec->body);
	struct remote *remote = ckpt_record_remote(b, rec);
	int r = 0;

	if (!m || !remote || m->n_timers > N_TIMERS)
		r = ckpt_record_bad(rec, e);
	for (size_t i = 0; r >= 0 && i < m->n_timers; i++) {
		const Pb__Itimer *t = m->timers[i];
		int64_t left = t->value_us ? t->value_us : t->interval_us;
		struct itimerval v = {of_us(t->interval_us), of_us(left)};

		r = remote_add(remote, SYS_setitimer, (uint64_t)t->which,
			remote_put(remote, &v, sizeof(v)), 0, 0, 0, 0);
	}
	if (r >= 0 && m->n_timers)
		r = ckpt_run_all(remote, "setitimer", e);
	pb__itimers__free_unpacked(m, NULL);
	return MIN(r, 0);
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Itimers *m = pb__itimers__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_timers; i++)
		fprintf(out, "%s%d: %lld us left", i ? ", " : "", m->timers[i]->which,
			(long long)m->timers[i]->value_us);
	pb__itimers__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_itimers = {
	.number = PROTO_KIND_ITIMERS,
	.name = "itimers",
	.scope = CKPT_PROC,
	.dump = dump,
	.finish = finish,
	.show = show,
};
