// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in nested.h. */
#include "ckpt/nested/build.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/base.h"
#include "ckpt/kinds/tasks.h"
#include "ckpt/nested/help.h"
#include "ckpt/nested/list.h"
#include "ckpt/said.h"
#include "proto/tasks.pb-c.h"

#define MAX_HOSTNAME 64

/* ---- what the image says -------------------------------------------------------------------- */

static int bad(struct err *e)
{
	return err_set(e, ERR_IMAGE, -EINVAL, "its namespaces make no sense");
}

static bool take_ids(Pb__IdRange *const *from, size_t n, struct ckpt_id_range *to, size_t *ret_n)
{
	if (n > CKPT_MAX_ID_RANGES)
		return false;
	for (size_t i = 0; i < n; i++)
		to[i] = (struct ckpt_id_range){from[i]->inside, from[i]->outside, from[i]->count};
	*ret_n = n;
	return true;
}

static bool take(const Pb__NestedNs *m, const struct ckpt_build *b, struct ckpt_nested *ret)
{
	*ret = (struct ckpt_nested){.sort = (enum ckpt_ns)m->sort,
		.outer = m->outer,
		.owner = m->owner,
		.founder = m->founder,
		.no_setgroups = m->no_setgroups,
		.loopback = m->loopback};
	return m->sort < CKPT_N_NS && m->owner <= b->n_nested && m->outer <= b->n_nested &&
	       strlen(m->hostname) <= MAX_HOSTNAME && strlen(m->domainname) <= MAX_HOSTNAME &&
	       take_ids(m->uids, m->n_uids, ret->uids, &ret->n_uids) &&
	       take_ids(m->gids, m->n_gids, ret->gids, &ret->n_gids);
}

/* Is @outer the user namespace @ns or one around it? */
static bool passes(const struct ckpt_build *b, uint32_t ns, uint32_t outer)
{
	for (size_t i = 0; ns && ns <= b->n_nested && i <= b->n_nested; i++) {
		if (ns == outer)
			return true;
		ns = b->nested[ns - 1].outer;
	}
	return !outer;
}

static bool is_founder(struct ckpt_build *b, size_t at)
{
	const struct ckpt_nested *n = &b->nested[at];
	const struct ckpt_build_proc *p = ckpt_build_proc(b, n->founder);

	if (n->owner && b->nested[n->owner - 1].sort != CKPT_NS_USER)
		return false;
	/* Circles do no harm: nobody looks further than CKPT_MAX_INNER. */
	if (n->outer && ((n->sort != CKPT_NS_PID && n->sort != CKPT_NS_USER) ||
				b->nested[n->outer - 1].sort != n->sort))
		return false;
	return p && !p->zombie &&
	       (n->sort == CKPT_NS_USER ? passes(b, p->ns.ns[CKPT_NS_USER], at + 1)
					: p->ns.ns[n->sort] == at + 1);
}

static bool fits(const struct ckpt_build *b, const struct ckpt_build_proc *p)
{
	for (int i = 0; i < CKPT_N_NS; i++)
		if (p->ns.ns[i] > b->n_nested ||
			(p->ns.ns[i] && b->nested[p->ns.ns[i] - 1].sort != i))
			return false;
	return p->depth == ckpt_nested_depth(b->nested, b->n_nested, p->ns.ns[CKPT_NS_PID]);
}

int ckpt_nested_load(struct ckpt_build *b, struct err *e)
{
	const struct ckpt_record *rec = ckpt_build_record(b, PROTO_KIND_NESTED, 0);
	Pb__Nested *m = rec ? pb__nested__unpack(NULL, rec->len, rec->body) : NULL;
	int r = rec && (!m || m->n_namespaces > CKPT_MAX_NESTED) ? bad(e) : 0;

	if (r == 0 && m) {
		b->nested = calloc(m->n_namespaces + 1, sizeof(*b->nested));
		b->n_nested = b->nested ? m->n_namespaces : 0;
		r = b->nested ? 0 : err_errno(e, -ENOMEM, "namespaces");
	}
	for (size_t i = 0; r == 0 && i < b->n_nested; i++)
		r = take(m->namespaces[i], b, &b->nested[i]) ? 0 : bad(e);
	for (size_t i = 0; r == 0 && i < b->n_procs; i++)
		r = fits(b, &b->procs[i]) ? 0 : bad(e);
	for (size_t i = 0; r == 0 && i < b->n_nested; i++)
		r = is_founder(b, i) ? 0 : bad(e);
	pb__nested__free_unpacked(m, NULL);
	return r;
}

int ckpt_nested_admit(const struct ckpt_build *b, struct err *e)
{
	if (!b->n_nested || b->world->ns_user >= 0)
		return 0;
	err_set(e, ERR_HOST, -EOPNOTSUPP,
		"a program in it has namespaces of its own, and this host has none to give");
	return err_hint(e, "podrun check says what this host lacks");
}

/* ---- numbers -------------------------------------------------------------------------------- */

static const pid_t *inner_of(const struct ckpt_build_proc *p, size_t k)
{
	return p->inner + k * p->depth;
}

/* The pid namespace around @ns in which a task has @depth inner numbers. */
static uint32_t at_depth(const struct ckpt_build *b, uint32_t ns, size_t depth)
{
	for (size_t d = ckpt_nested_depth(b->nested, b->n_nested, ns); d > depth; d--)
		ns = b->nested[ns - 1].outer;
	return ns;
}

static const struct ckpt_build_proc *who_has(struct ckpt_build *b, pid_t number, size_t *ret_k)
{
	for (size_t i = 0; i < b->n_procs; i++) {
		const struct ckpt_build_proc *p = &b->procs[i];

		*ret_k = 0;
		if (p->vpid == number)
			return p;
		for (size_t k = 0; k < p->n_threads; k++) {
			/* the first has gone from the list of one that goes on without it */
			*ret_k = k + (p->headless && p->threads[0].vtid != p->vpid);
			if (p->threads[k].vtid == number)
				return p;
		}
	}
	return NULL;
}

pid_t ckpt_nested_said(struct ckpt_build *b, const struct ckpt_build_proc *by, pid_t number)
{
	const struct ckpt_build_proc *p;
	size_t k;

	if (!by->depth || number <= 0)
		return ckpt_said(b->world, number);
	p = who_has(b, number, &k);
	if (!p || p->depth < by->depth ||
		at_depth(b, p->ns.ns[CKPT_NS_PID], by->depth) != by->ns.ns[CKPT_NS_PID])
		return 0;
	return inner_of(p, k)[by->depth - 1];
}

static pid_t number_at(const struct ckpt_build_proc *p, size_t k, size_t depth)
{
	if (depth)
		return inner_of(p, k)[depth - 1];
	return k ? p->threads[k].vtid : p->vpid;
}

int ckpt_nested_numbers(struct ckpt_build *b, const struct ckpt_build_proc *p, size_t k,
	uint32_t user, pid_t ret[CKPT_MAX_SET], struct err *e)
{
	uint32_t ns = p->ns.ns[CKPT_NS_PID];
	bool chosen = true;
	int n = 0;

	/*
	 * The builder has all capabilities in the session's user namespace, as has whoever it made
	 * there.
	 */
	for (size_t d = p->depth + 1; d-- > 0;) {
		chosen = chosen && passes(b, ns ? b->nested[ns - 1].owner : 0, user);
		if (chosen)
			ret[n++] = number_at(p, k, d);
		else if (ckpt_scribe_next(b, ns, number_at(p, k, d), e) < 0)
			return e->error;
		ns = ns ? b->nested[ns - 1].outer : 0;
	}
	return n;
}

int ckpt_nested_check(struct ckpt_build *b, const struct ckpt_build_proc *p, size_t k, pid_t tid,
	size_t level, struct err *e)
{
	struct proc_status s;
	int r = p->depth ? proc_read_status(b->host_proc, tid, &s, e) : 0;

	for (size_t d = 0; r == 0 && p->depth && d <= p->depth; d++)
		if (proc_at_level(s.ns_pid, &s, level + d) != number_at(p, k, d))
			r = err_set(e, ERR_FAILED, -EEXIST, "number %d of a sandbox's is taken",
				number_at(p, k, d));
	return r;
}

uint32_t ckpt_nested_next_user(
	const struct ckpt_build *b, const struct ckpt_build_proc *p, uint32_t now)
{
	uint32_t next = p->ns.ns[CKPT_NS_USER];

	for (size_t i = 0; next && next != now && i <= b->n_nested; i++) {
		if (b->nested[next - 1].outer == now)
			return next;
		next = b->nested[next - 1].outer;
	}
	return 0;
}

unsigned ckpt_nested_owned(
	const struct ckpt_build *b, const struct ckpt_build_proc *p, unsigned founds, uint32_t user)
{
	unsigned ret = 0;

	for (int i = 0; i < CKPT_N_NS; i++)
		if (founds & 1U << i && i != CKPT_NS_USER && i != CKPT_NS_PID && p->ns.ns[i] &&
			b->nested[p->ns.ns[i] - 1].owner == user)
			ret |= 1U << i;
	return ret;
}

/* ---- what they hold ------------------------------------------------------------------------- */

static int add_ids(struct ckpt_helper_text *t, const struct ckpt_id_range *ids, size_t n)
{
	size_t at = 0;

	t->text[0] = '\0';
	for (size_t i = 0; i < n; i++)
		at += (size_t)snprintf(t->text + at, sizeof(t->text) - at, "%u %u %u\n",
			ids[i].inside, ids[i].outside, ids[i].count);
	return n > 0;
}

/* Only who is in the user namespace around it may tell one its ids. */
int ckpt_nested_ids(
	struct ckpt_build *b, const struct ckpt_build_proc *p, uint32_t number, struct err *e)
{
	const struct ckpt_nested *n = &b->nested[number - 1];
	struct ckpt_helper_text t = {.text = "deny"};
	int r = 0;

	snprintf(t.path, sizeof(t.path), "/proc/%d/setgroups", p->vpid);
	if (n->no_setgroups)
		r = ckpt_helper_write(b, n->outer, &t, e);
	snprintf(t.path, sizeof(t.path), "/proc/%d/uid_map", p->vpid);
	if (r == 0 && add_ids(&t, n->uids, n->n_uids))
		r = ckpt_helper_write(b, n->outer, &t, e);
	snprintf(t.path, sizeof(t.path), "/proc/%d/gid_map", p->vpid);
	if (r == 0 && add_ids(&t, n->gids, n->n_gids))
		r = ckpt_helper_write(b, n->outer, &t, e);
	return r;
}

uint32_t ckpt_nested_id(
	const struct ckpt_build *b, const struct ckpt_build_proc *p, bool group, uint32_t id)
{
	uint32_t user = p->ns.ns[CKPT_NS_USER];
	const struct ckpt_nested *n = user ? &b->nested[user - 1] : NULL;
	const struct ckpt_id_range *ids = n ? group ? n->gids : n->uids : NULL;

	for (size_t i = 0; n && i < (group ? n->n_gids : n->n_uids); i++)
		if (id >= ids[i].inside && id - ids[i].inside < ids[i].count)
			return id;
	return n ? (uint32_t)-1 : id;
}

static int raise_loopback(struct remote *r, struct err *e)
{
	struct ifreq lo = {.ifr_name = "lo"};
	struct remote_arg args[6] = {{0}};

	lo.ifr_flags = IFF_UP;
	args[0] = REMOTE_RESULT(
		remote_add(r, SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0, 0, 0));
	args[1] = REMOTE_ARG(SIOCSIFFLAGS);
	args[2] = REMOTE_ARG(remote_put(r, &lo, sizeof(lo)));
	remote_add_args(r, SYS_ioctl, args);
	args[1] = args[2] = REMOTE_ARG(0);
	remote_add_args(r, SYS_close, args);
	return ckpt_run_all(r, "the loopback device of a program's own network", e);
}

static int tell_names(struct ckpt_build *b, uint32_t number, struct remote *r, struct err *e)
{
	const struct ckpt_record *rec =
		ckpt_build_record(b, PROTO_KIND_NESTED, 0);
	Pb__Nested *m = rec ? pb__nested__unpack(NULL, rec->len, rec->body) : NULL;
	int rc = m && number <= m->n_namespaces ? 0 : bad(e);

	if (rc == 0) {
		const Pb__NestedNs *n = m->namespaces[number - 1];

		remote_add(r, SYS_sethostname, remote_put_str(r, n->hostname), strlen(n->hostname),
			0, 0, 0, 0);
		remote_add(r, SYS_setdomainname, remote_put_str(r, n->domainname),
			strlen(n->domainname), 0, 0, 0, 0);
		rc = ckpt_run_all(r, "the host name of a program's own", e);
	}
	pb__nested__free_unpacked(m, NULL);
	return rc;
}

int ckpt_nested_furnish(struct ckpt_build *b, const struct ckpt_build_proc *p, struct remote *r,
	unsigned founds, struct err *e)
{
	uint32_t net = p->ns.ns[CKPT_NS_NET];
	int rc = 0;

	if (founds & 1U << CKPT_NS_NET && b->nested[net - 1].loopback)
		rc = raise_loopback(r, e);
	if (rc == 0 && founds & 1U << CKPT_NS_UTS)
		rc = tell_names(b, p->ns.ns[CKPT_NS_UTS], r, e);
	return rc;
}
