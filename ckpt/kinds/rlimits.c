// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Resource limits, read and set from outside.  A hard limit can't be raised without privilege, so
 * what this host grants less of is clipped to that.
 */
#include <errno.h>
#include <sys/resource.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Rlimits m = PB__RLIMITS__INIT;
	Pb__Rlimit limits[RLIM_NLIMITS], *list[RLIM_NLIMITS];

	if (s.proc->state == CKPT_ZOMBIE)
		return 1;
	for (unsigned i = 0; i < RLIM_NLIMITS; i++) {
		Pb__Rlimit *l = &limits[m.n_limits];
		struct rlimit lim;

		if (prlimit(s.proc->pid, i, NULL, &lim) < 0)
			return err_errno(e, -errno, "prlimit");
		pb__rlimit__init(l);
		l->resource = i;
		l->soft = lim.rlim_cur;
		l->hard = lim.rlim_max;
		list[m.n_limits++] = l;
	}
	m.limits = list;
	return ckpt_pack(&m.base, body, e);
}

/* All tasks have the limits of the first of them until here. */
struct limits {
	struct rlimit of[RLIM_NLIMITS];
};

static const struct limits *limits_now(struct ckpt_build *b, pid_t pid, struct err *e)
{
	struct limits *l = b->kind_state[PROTO_KIND_RLIMITS];

	if (l)
		return l;
	l = calloc(1, sizeof(*l));
	for (int i = 0; l && i < RLIM_NLIMITS; i++) {
		if (prlimit(pid, i, NULL, &l->of[i]) < 0) {
			err_errno(e, -errno, "prlimit");
			free(l);
			return NULL;
		}
	}
	if (!l)
		err_errno(e, -ENOMEM, "limits");
	b->kind_state[PROTO_KIND_RLIMITS] = l;
	return l;
}

static int set_limit(pid_t pid, const Pb__Rlimit *l, const struct limits *now, struct err *e)
{
	struct rlimit want = {l->soft, l->hard};
	const struct rlimit *have;

	if (l->resource >= RLIM_NLIMITS) /* one this kernel does not have */
		return 0;
	have = &now->of[l->resource];
	want.rlim_max = MIN(want.rlim_max, have->rlim_max);
	want.rlim_cur = MIN(want.rlim_cur, want.rlim_max);
	if (want.rlim_cur == have->rlim_cur && want.rlim_max == have->rlim_max)
		return 0;
	return prlimit(pid, l->resource, &want, NULL) < 0 ?
		       err_errno(e, -errno, "prlimit %u", l->resource) :
		       0;
}

/*
 * Whoever may have no time at all is killed by the kernel at its next tick, also in the middle of being
 * rebuilt: nobody can have been frozen like that.
 */
static bool has_no_time(const Pb__Rlimits *m)
{
	for (size_t i = 0; i < m->n_limits; i++)
		if (m->limits[i]->resource == RLIMIT_CPU && !m->limits[i]->hard)
			return true;
	return false;
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Rlimits *m = pb__rlimits__unpack(NULL, rec->len, rec->body);
	struct ckpt_build_thread *t = ckpt_record_thread(b, rec);
	const struct limits *now;
	int r = 0;

	if (!m || !t || m->n_limits > 64 || has_no_time(m)) {
		r = ckpt_record_bad(rec, e);
		goto out;
	}
	now = limits_now(b, t->proc->pid, e);
	if (!now)
		r = e->error;
	for (size_t i = 0; r == 0 && i < m->n_limits; i++)
		r = set_limit(t->proc->pid, m->limits[i], now, e);
out:
	pb__rlimits__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Rlimits *m = pb__rlimits__unpack(NULL, len, body);
	const char *sep = "";

	for (size_t i = 0; m && i < m->n_limits; i++) {
		if (m->limits[i]->soft == RLIM_INFINITY)
			continue;
		fprintf(out, "%s%u=%llu", sep, m->limits[i]->resource,
			(unsigned long long)m->limits[i]->soft);
		sep = " ";
	}
	pb__rlimits__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_rlimits = {
	.number = PROTO_KIND_RLIMITS,
	.name = "rlimits",
	.scope = CKPT_PROC,
	.dump = dump,
	.apart = true,
	.finish = finish,
	.show = show,
};
