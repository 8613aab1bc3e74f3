// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Credentials: user and group ids as the session sees them, capabilities, no_new_privs.
 *
 * Everything is asked and told from inside, so that numbers are the session's.  Rebuilt tasks hold
 * all capabilities of the session's user namespace until here; what they had is a subset, and is
 * put on every thread, in the order the kernel demands: bounding set, groups and ids while the
 * capabilities for that are there, then the capabilities themselves.  The kernel keeps them by
 * thread, and only the C library makes them one process's: a thread that has asked the kernel
 * itself has a record of its own (TCREDS).
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/base.h"
#include "ckpt/build.h"
#include "ckpt/kinds/ask.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/nested/build.h"
#include "ckpt/survey/survey.h"
#include "proto/tasks.pb-c.h"

#define LAST_CAP    63
#define OVERFLOW_ID 65534 /* kernel.overflowuid as it comes */

struct cap_data {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct data[2];
};

/* Without a user namespace the kernel tells the host's ids; it would show others as nobody's. */
static uint32_t inside(const struct ckpt_world *w, uint32_t id, uint32_t host, uint32_t is)
{
	if (!w->names || host == is)
		return id;
	return id == host ? is : OVERFLOW_ID;
}

static void take_caps(const struct ckpt_world *w, const struct ckpt_thread *t, Pb__Creds *m)
{
	const struct proc_status *st = &t->status;
	struct ckpt_caps c = {st->cap_inh, st->cap_prm, st->cap_eff, st->cap_bnd, st->cap_amb};

	if (w->names && w->names->caps)
		w->names->caps(w->names->ctx, t->tid, &c);
	m->cap_inheritable = c.inheritable;
	m->cap_permitted = c.permitted;
	m->cap_effective = c.effective;
	m->cap_bounding = c.bounding;
	m->cap_ambient = c.ambient;
}

/* The record of one thread. */
static int fill(struct ckpt_dump *d, struct ckpt_thread *t, struct buf *body, struct err *e)
{
	_cleanup_free_ uint32_t *groups = NULL;
	Pb__Creds m = PB__CREDS__INIT;
	const struct ckpt_asked *asked, *of_ids;
	uint32_t uid[3], gid[3];
	int r = ckpt_ask(t, &asked, e);

	of_ids = asked;
	if (r == 0 && !asked->has_ids)
		r = ckpt_ask_proc(t->proc, &of_ids, e);
	if (r < 0)
		return r;
	m.n_uid = m.n_gid = 3;
	m.uid = uid;
	m.gid = gid;
	groups = calloc(of_ids->n_groups + 1, sizeof(*groups));
	if (!groups)
		return err_errno(e, -ENOMEM, "credentials");
	for (int i = 0; i < 3; i++) {
		uid[i] = inside(d->world, of_ids->uid[i], geteuid(), d->world->uid);
		gid[i] = inside(d->world, of_ids->gid[i], getegid(), d->world->gid);
	}
	for (uint32_t i = 0; i < of_ids->n_groups; i++)
		groups[i] = inside(d->world, of_ids->groups[i], getegid(), d->world->gid);
	m.securebits = asked->securebits;
	m.n_groups = of_ids->n_groups;
	m.groups = groups;
	take_caps(d->world, t, &m);
	m.no_new_privs = t->status.no_new_privs;
	return ckpt_pack(&m.base, body, e);
}

static int dump(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	return s.proc->state == CKPT_ZOMBIE ? 1 : fill(d, s.proc->threads[0], body, e);
}

static int dump_thread(struct ckpt_dump *d, union ckpt_subject s, struct buf *body, struct err *e)
{
	_cleanup_buf_ struct buf first = BUF_INIT;
	struct ckpt_proc *p = s.thread->proc;
	int r;

	if (p->state == CKPT_ZOMBIE || s.thread == p->threads[0])
		return 1;
	r = fill(d, p->threads[0], &first, e);
	if (r == 0)
		r = fill(d, s.thread, body, e);
	if (r < 0)
		return r;
	return body->len == first.len && !memcmp(body->data, first.data, first.len);
}

/*
 * In one batch; `*ret_first` to `*ret_last` are the calls that must succeed.  Others may fail: a
 * capability this kernel does not have, setgroups(2) where it is denied (then the groups are what
 * the world gave).
 */
static int add_calls(
	struct remote *r, const Pb__Creds *m, uint64_t drop, int *ret_first, int *ret_last)
{
	struct cap_data c = {.header = {.version = _LINUX_CAPABILITY_VERSION_3}};
	uint64_t at, groups = m->n_groups ? remote_put(r, m->groups, 4 * m->n_groups) : 0;
	int last;

	for (int i = 0; i < 2; i++) {
		c.data[i].effective = (uint32_t)(m->cap_effective >> (32 * i));
		c.data[i].permitted = (uint32_t)(m->cap_permitted >> (32 * i));
		c.data[i].inheritable = (uint32_t)(m->cap_inheritable >> (32 * i));
	}
	at = remote_put(r, &c, sizeof(c));
	for (uint64_t cap = 0; cap <= LAST_CAP; cap++)
		if (drop & (1UL << cap))
			remote_add(r, SYS_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0, 0);
	remote_add(r, SYS_setgroups, m->n_groups, groups, 0, 0, 0, 0);
	*ret_first = remote_add(r, SYS_prctl, PR_SET_SECUREBITS,
		SECBIT_KEEP_CAPS | SECBIT_NO_SETUID_FIXUP, 0, 0, 0, 0);
	remote_add(r, SYS_setresgid, m->gid[0], m->gid[1], m->gid[2], 0, 0, 0);
	remote_add(r, SYS_setresuid, m->uid[0], m->uid[1], m->uid[2], 0, 0, 0);
	remote_add(r, SYS_prctl, PR_SET_SECUREBITS, m->securebits, 0, 0, 0, 0);
	remote_add(r, SYS_capset, at, at + offsetof(struct cap_data, data), 0, 0, 0, 0);
	last = remote_add(r, SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0);
	for (uint64_t cap = 0; cap <= LAST_CAP; cap++)
		if (m->cap_ambient & (1UL << cap))
			last = remote_add(
				r, SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0, 0);
	if (m->no_new_privs)
		last = remote_add(r, SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
	*ret_last = last;
	return last;
}

static int tell(struct remote *remote, const Pb__Creds *m, uint64_t drop, struct err *e)
{
	int first, last, r = add_calls(remote, m, drop, &first, &last);

	if (r < 0)
		return err_errno(e, r, "credentials");
	r = remote_run(remote, false, e);
	for (int i = first; r == 0 && i <= last; i++)
		if (remote_result(remote, i) < 0)
			r = err_errno(e, (int)remote_result(remote, i), "credentials");
	return r;
}

/* What this task holds now bounds what it can be given.  *ret_drop: what it must give away of its
 * bounding set. */
static int clip(struct ckpt_build *b, const struct ckpt_build_thread *t, Pb__Creds *m,
	uint64_t *ret_drop, struct err *e)
{
	struct proc_status now;
	int r = proc_read_task_status(b->host_proc, t->proc->pid, t->tid, &now, e);

	if (r < 0)
		return r;
	m->cap_permitted &= now.cap_prm;
	m->cap_effective &= m->cap_permitted;
	m->cap_inheritable &= now.cap_inh | now.cap_bnd;
	m->cap_ambient &= m->cap_permitted & m->cap_inheritable;
	*ret_drop = now.cap_bnd & ~m->cap_bounding;
	return 0;
}

/*
 * Without a user namespace everybody is who we are, with our groups and without capabilities: what
 * is born is right already, or can't be had.  What else a root inside has is told by those who
 * rewrite names.
 */
static int check_own(const struct ckpt_build *b, const Pb__Creds *m, struct err *e)
{
	for (int i = 0; i < 3; i++) {
		if (m->uid[i] == b->world->uid && m->gid[i] == b->world->gid)
			continue;
		err_set(e, ERR_HOST, -EPERM,
			"it runs as user %u, group %u, whom the session can't have", m->uid[i],
			m->gid[i]);
		return err_hint(e, "podrun check says what this host lacks");
	}
	return 0;
}

static int give_caps(
	const struct ckpt_names *names, const struct ckpt_build_thread *t, const Pb__Creds *m)
{
	const struct ckpt_caps c = {m->cap_inheritable, m->cap_permitted, m->cap_effective,
		m->cap_bounding, m->cap_ambient};

	if (names->give_caps)
		names->give_caps(names->ctx, t->tid, &c);
	return 0;
}

/* *ret_drop: as of clip.  NULL: it makes no sense, or can't be had here. */
static Pb__Creds *read_record(
	struct ckpt_build *b, const struct ckpt_record *rec, uint64_t *ret_drop, struct err *e)
{
	Pb__Creds *m = pb__creds__unpack(NULL, rec->len, rec->body);
	struct ckpt_build_thread *t = ckpt_record_thread(b, rec);
	int r = 0;

	if (!m || !t || m->n_uid != 3 || m->n_gid != 3 || m->n_groups > CKPT_MAX_GROUPS)
		r = ckpt_record_bad(rec, e);
	if (r == 0 && b->world->names)
		r = check_own(b, m, e);
	else if (r == 0)
		r = clip(b, t, m, ret_drop, e);
	for (int i = 0; r == 0 && i < 3; i++) {
		m->uid[i] = ckpt_nested_id(b, t->proc, false, m->uid[i]);
		m->gid[i] = ckpt_nested_id(b, t->proc, true, m->gid[i]);
	}
	if (r == 0)
		return m;
	pb__creds__free_unpacked(m, NULL);
	return NULL;
}

static int give(const struct ckpt_build *b, const struct ckpt_build_thread *t, const Pb__Creds *m,
	uint64_t drop, struct err *e)
{
	return b->world->names ? give_caps(b->world->names, t, m) : tell(t->remote, m, drop, e);
}

static int finish(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	uint64_t drop = 0;
	Pb__Creds *m = read_record(b, rec, &drop, e);
	const struct ckpt_build_proc *p = m ? ckpt_record_thread(b, rec)->proc : NULL;
	int r = m ? 0 : e->error;

	for (size_t i = 0; r == 0 && i < p->n_threads; i++)
		if (!ckpt_build_record(b, PROTO_KIND_TCREDS, (uint64_t)p->threads[i].vtid))
			r = give(b, &p->threads[i], m, drop, e);
	pb__creds__free_unpacked(m, NULL);
	return r;
}

static int finish_thread(struct ckpt_build *b, struct ckpt_record *rec, struct err *e)
{
	uint64_t drop = 0;
	Pb__Creds *m = read_record(b, rec, &drop, e);
	int r = m ? give(b, ckpt_record_thread(b, rec), m, drop, e) : e->error;

	pb__creds__free_unpacked(m, NULL);
	return r;
}

static void show(const void *body, size_t len, bool bare, FILE *out)
{
	Pb__Creds *m = pb__creds__unpack(NULL, len, body);

	if (m && m->n_uid == 3 && m->n_gid == 3)
		fprintf(out, "uid %u/%u/%u gid %u/%u/%u caps %llx%s", m->uid[0], m->uid[1],
			m->uid[2], m->gid[0], m->gid[1], m->gid[2],
			(unsigned long long)m->cap_effective,
			m->no_new_privs ? " no_new_privs" : "");
	pb__creds__free_unpacked(m, NULL);
}

const struct ckpt_kind ckpt_kind_creds = {
	.number = PROTO_KIND_CREDS,
	.name = "creds",
	.scope = CKPT_PROC,
	.dump = dump,
	.finish = finish,
	.show = show,
};

const struct ckpt_kind ckpt_kind_tcreds = {
	.number = PROTO_KIND_TCREDS,
	.name = "tcreds",
	.scope = CKPT_THREAD,
	.dump = dump_thread,
	.finish = finish_thread,
	.show = show,
};
