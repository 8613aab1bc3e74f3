// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Signal actions.  Only the process itself can ask for them; /proc/PID/status says which are worth
 * asking for.  SIGCHLD always is: its flags matter even with the default action.
 */
#include <signal.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/survey.h"
#include "proto/tasks.pb-c.h"

#define LAST_SIGNAL 64

/* rt_sigaction(2) as the kernel takes it. */
struct kernel_sigaction {
	uint64_t handler, flags, restorer, mask;
};

static bool can_have_action(int sig)
{
	return sig >= 1 && sig <= LAST_SIGNAL && sig != SIGKILL && sig != SIGSTOP;
}

static int ask(struct remote *r, uint64_t wanted, struct kernel_sigaction ret[LAST_SIGNAL + 1],
	struct err *e)
{
	struct kernel_sigaction *room[LAST_SIGNAL + 1] = {0};
	int rc;

	for (int sig = 1; sig <= LAST_SIGNAL; sig++) {
		uint64_t addr;

		if (!can_have_action(sig) || !(wanted & (1UL << (sig - 1))))
			continue;
		room[sig] = remote_data(r, sizeof(*room[sig]), &addr);
		if (!room[sig])
			return err_errno(e, -ENOSPC, "signal actions");
		rc = remote_add(r, SYS_rt_sigaction, (uint64_t)sig, 0, addr, 8, 0, 0);
		if (rc < 0)
			return err_errno(e, rc, "signal actions");
	}
	rc = ckpt_run_all(r, "rt_sigaction", e);
	if (rc < 0)
		return rc;
	for (int sig = 1; sig <= LAST_SIGNAL; sig++)
		if (room[sig])
			ret[sig] = *room[sig];
	return 0;
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	struct kernel_sigaction actions[LAST_SIGNAL + 1] = {0};
	Pb__Sigaction msg[LAST_SIGNAL], *list[LAST_SIGNAL];
	Pb__Sigactions m = PB__SIGACTIONS__INIT;
	struct remote *remote;
	int r;

	if (s.proc->state == CKPT_ZOMBIE || s.proc->sighand != s.proc->vpid)
		return 1;
	r = ckpt_proc_remote(s.proc, &remote, e);
	if (r == 0)
		r = ask(remote, s.proc->status.sig_ignored | s.proc->status.sig_caught |
				(1UL << (SIGCHLD - 1)), actions, e);
	if (r < 0)
		return r;
	for (int sig = 1; sig <= LAST_SIGNAL; sig++) {
		const struct kernel_sigaction *a = &actions[sig];
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
	return ckpt_pack(&m.base, body, e);
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	Pb__Sigactions *m = pb__sigactions__unpack(NULL, rec->len, rec->body);
	struct remote *remote = ckpt_record_remote(b, rec);
	int r = 0;

	if (!m || !remote || m->n_actions > LAST_SIGNAL) {
		r = ckpt_record_bad(rec, e);
		goto out;
	}
	for (size_t i = 0; i < m->n_actions && r >= 0; i++) {
		const Pb__Sigaction *p = m->actions[i];
		struct kernel_sigaction a = {p->handler, p->flags, p->restorer, p->mask};

		if (!can_have_action(p->sig)) {
			r = ckpt_record_bad(rec, e);
			goto out;
		}
		r = remote_add(remote, SYS_rt_sigaction, (uint64_t)p->sig,
			remote_put(remote, &a, sizeof(a)), 0, 8, 0, 0);
	}
	r = r < 0 ? err_errno(e, r, "signal actions") : ckpt_run_all(remote, "rt_sigaction", e);
out:
	pb__sigactions__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, FILE *out)
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
