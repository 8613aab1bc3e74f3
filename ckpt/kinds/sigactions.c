// SPDX-License-Identifier: GPL-2.0-or-later
/* Signal actions.  Those that are not recorded are the default. */
#include <signal.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/ask.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/remote/i386.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

static bool can_have_action(int sig)
{
	return sig >= 1 && sig <= CKPT_LAST_SIGNAL && sig != SIGKILL && sig != SIGSTOP;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	Pb__Sigaction msg[CKPT_LAST_SIGNAL], *list[CKPT_LAST_SIGNAL];
	Pb__Sigactions m = PB__SIGACTIONS__INIT;
	const struct ckpt_asked *asked;
	int r;

	if (s.proc->state == CKPT_ZOMBIE || s.proc->sighand != s.proc->vpid)
		return 1;
	r = ckpt_ask_proc(s.proc, &asked, e);
	if (r < 0)
		return r;
	for (int sig = 1; sig <= CKPT_LAST_SIGNAL; sig++) {
		const struct ckpt_sigaction *a = &asked->actions[sig];
		Pb__Sigaction *p = &msg[m.n_actions];

		if (!a->handler && !a->flags)
			continue;
		pb__sigaction__init(p);
		p->sig = sig;
		p->handler = a->handler;
		p->flags = a->flags;
		p->restorer = a->restorer;
		p->mask = a->mask;
		list[m.n_actions++] = p;
	}
	if (!m.n_actions)
		return 1;
	m.actions = list;
	m.i386 = s.proc->i386;
	return ckpt_pack(&m.base, body, e);
}

/* A handler's kind of code is that of the call which sets it. */
static int add_i386(struct remote *remote, const Pb__Sigaction *p)
{
	const struct {
		uint32_t handler, flags, restorer, mask[2];
	} a = {(uint32_t)p->handler, (uint32_t)p->flags, (uint32_t)p->restorer,
		{(uint32_t)p->mask, (uint32_t)(p->mask >> 32)}};

	return remote_add_i386(remote, I386_RT_SIGACTION, (uint32_t)p->sig,
		(uint32_t)remote_put(remote, &a, sizeof(a)), 0, sizeof(a.mask));
}

static int add(struct remote *remote, const Pb__Sigaction *p)
{
	struct ckpt_sigaction a = {p->handler, p->flags, p->restorer, p->mask};

	return remote_add(remote, SYS_rt_sigaction, (uint64_t)p->sig,
		remote_put(remote, &a, sizeof(a)), 0, 8, 0, 0);
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Sigactions *m = pb__sigactions__unpack(NULL, rec->len, rec->body);
	struct remote *remote = ckpt_record_remote(b, rec);
	int r = 0;

	if (!m || !remote || m->n_actions > CKPT_LAST_SIGNAL) {
		r = ckpt_record_bad(rec, e);
		goto out;
	}
	for (size_t i = 0; i < m->n_actions && r >= 0; i++) {
		const Pb__Sigaction *p = m->actions[i];

		if (!can_have_action(p->sig) ||
			(m->i386 && (!b->i386 || (p->handler | p->restorer) >= END_32))) {
			r = ckpt_record_bad(rec, e);
			goto out;
		}
		r = m->i386 ? add_i386(remote, p) : add(remote, p);
	}
	r = r < 0 ? err_errno(e, r, "signal actions") : ckpt_run_all(remote, "rt_sigaction", e);
out:
	pb__sigactions__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Sigactions *m = pb__sigactions__unpack(NULL, len, body);

	for (size_t i = 0; m && i < m->n_actions; i++)
		fprintf(out, "%s%d%s", i ? " " : "", m->actions[i]->sig,
			m->actions[i]->handler == 0 ? "=default" :
			m->actions[i]->handler == 1 ? "=ignore" : "=handler");
	pb__sigactions__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_sigactions = {
	.number = PROTO_KIND_SIGACTIONS,
	.name = "sigactions",
	.scope = CKPT_PROC,
	.dump = dump,
	.finish = finish,
	.show = show,
};
