// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * tree - plans the birth of a process tree by playing it through.
 *
 * Theory of operation
 *
 * Every process needs a session to be born in.  One that leads no session needs its own.  One
 * that leads a session may be born anywhere, unless a child of its own is in another session: that
 * child was born before its parent called setsid, so the parent must be born in the child's
 * session.  Then rounds are played with what exists so far:
 *
 *      1. whoever can be born now is: from its parent if that is in the right session just now,
 *         else from a sibling that is (CLONE_PARENT), else from any member of the session by way
 *         of a child that ends at once and leaves an orphan to pid 1 or to another ancestor
 *      2. when a round bore nobody, those who lead a session and have no child left to bear
 *         before call setsid
 *      3. when nobody did, a session whose leader is dead gets a stand-in that leads it
 *      4. when there is none, an adopted orphan has misled us about a leader's birth: forget that
 *
 * A namespace within the session's (ckpt/nested/nested.h) is like a session: one is born where
 * one's maker is, and goes into one's own when no child is left to bear before. A pid namespace
 * can't be gone into; who is its first is born as that, with the group of its maker if that group
 * is outside, for it can't be named inside.
 *
 * Groups are easier, since they can be joined from within the session: each group gets its leader
 * (or a stand-in), then everybody joins.  Stand-ins end last; sessions and groups outlive them.
 */
#include "ckpt/restore/tree.h"

#include <signal.h>
#include <string.h>

#include "base/base.h"

#define ANY (-1)

struct member {
	struct ckpt_tree_node n;
	bool born, stand_in;
	pid_t birth;	 /* session it must be born in, or ANY */
	pid_t sid, pgid; /* as played so far */
	struct ckpt_ns_set ns;
	int depth; /* of the walk that computes birth; guards against circles */
};

struct play {
	struct member *m; /* the nodes, by vpid; then stand-ins in any order */
	size_t n, n_nodes, cap;
	struct ckpt_tree_op *ops;
	size_t n_ops, cap_ops;
};

static struct member *find(struct play *p, pid_t vpid)
{
	size_t lo = 0, hi = p->n_nodes;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (p->m[mid].n.vpid < vpid)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo < p->n_nodes && p->m[lo].n.vpid == vpid)
		return &p->m[lo];
	for (size_t i = p->n_nodes; i < p->n; i++)
		if (p->m[i].n.vpid == vpid)
			return &p->m[i];
	return NULL;
}

static bool leads(const struct member *m)
{
	return m->n.sid == m->n.vpid;
}

static int add_op(struct play *p, struct ckpt_tree_op op, struct err *e)
{
	if (p->n_ops == p->cap_ops) {
		size_t cap = p->cap_ops ? 2 * p->cap_ops : 64;
		void *ops = reallocarray(p->ops, cap, sizeof(*p->ops));

		if (!ops)
			return err_errno(e, -ENOMEM, "process tree");
		p->ops = ops;
		p->cap_ops = cap;
	}
	p->ops[p->n_ops++] = op;
	return 0;
}

static struct member *add_stand_in(struct play *p, pid_t vpid, pid_t ppid)
{
	struct member *m = &p->m[p->n]; /* room was made for every number that may need one */

	if (p->n == p->cap)
		return NULL;
	p->n++;
	*m = (struct member){
		.n = {.vpid = vpid,
			.ppid = ppid,
			.mm = vpid,
			.sighand = vpid,
			.files = vpid,
			.fs = vpid},
		.stand_in = true,
		.birth = ANY,
	};
	return m;
}

/* The session each must be born in follows from its children's. */
static void find_birth(struct play *p)
{
	bool changed;

	for (size_t i = 0; i < p->n_nodes; i++)
		p->m[i].birth = leads(&p->m[i]) ? ANY : p->m[i].n.sid;
	do {
		changed = false;
		for (size_t i = 0; i < p->n_nodes; i++) {
			struct member *m = &p->m[i], *parent = find(p, m->n.ppid);

			if (!parent || !leads(parent) || parent->birth != ANY || m->birth == ANY ||
				m->birth == parent->n.vpid)
				continue;
			parent->birth = m->birth;
			changed = true;
		}
	} while (changed);
}

/* Every chain of parents must end at pid 1. */
static int check_parents(struct play *p, struct err *e)
{
	for (size_t i = 0; i < p->n_nodes; i++) {
		const struct member *m = &p->m[i];
		size_t steps = 0;

		if (m->n.vpid < 2 || (i && m->n.vpid <= p->m[i - 1].n.vpid))
			return err_set(
				e, ERR_IMAGE, -EINVAL, "process %d is out of order", m->n.vpid);
		while (m->n.ppid != 1) {
			pid_t ppid = m->n.ppid;

			m = find(p, ppid);
			if (!m)
				return err_set(e, ERR_IMAGE, -EINVAL, "process %d has no parent %d",
					p->m[i].n.vpid, ppid);
			if (++steps > p->n_nodes)
				return err_set(e, ERR_IMAGE, -EINVAL,
					"process %d is its own ancestor", p->m[i].n.vpid);
		}
	}
	return 0;
}

/* @m can be born in the session that is @sid now. */
static bool fits(const struct member *m, pid_t sid)
{
	return m->birth == ANY || m->birth == sid;
}

static bool founds(const struct member *m, int sort)
{
	return m->n.founds & 1U << sort;
}

/*
 * Is @ns where @m is to be born?  Of what it makes for itself it has to be where that can be made.
 */
static bool fits_namespaces(const struct member *m, const struct ckpt_ns_set *ns)
{
	for (int i = 0; i < CKPT_N_NS; i++) {
		bool anywhere = founds(m, i) && i != CKPT_NS_USER && i != CKPT_NS_PID;
		uint32_t want = founds(m, i) ? m->n.outer.ns[i] : m->n.ns.ns[i];

		if (!anywhere && ns->ns[i] != want)
			return false;
	}
	return true;
}

static bool shares_nothing(const struct member *m)
{
	return m->n.mm == m->n.vpid && m->n.sighand == m->n.vpid && m->n.files == m->n.vpid &&
	       m->n.fs == m->n.vpid;
}

static bool shares_with(const struct member *m, const struct member *maker)
{
	return (m->n.mm == m->n.vpid || m->n.mm == maker->n.mm) &&
	       (m->n.sighand == m->n.vpid || m->n.sighand == maker->n.sighand) &&
	       (m->n.files == m->n.vpid || m->n.files == maker->n.files) &&
	       (m->n.fs == m->n.vpid || m->n.fs == maker->n.fs);
}

/*
 * A pid namespace has to be made by the birth of its first, and the user namespace that owns it
 * with it.
 */
static void found_at_birth(struct member *m, struct ckpt_tree_op *op)
{
	if (!founds(m, CKPT_NS_PID))
		return;
	op->founds = 1U << CKPT_NS_PID;
	m->ns.ns[CKPT_NS_PID] = m->n.ns.ns[CKPT_NS_PID];
	if (!founds(m, CKPT_NS_USER) || m->n.pid_owner != m->n.first_user)
		return;
	op->founds |= 1U << CKPT_NS_USER;
	m->ns.ns[CKPT_NS_USER] = m->n.first_user;
}

static int bear(struct play *p, struct member *m, enum ckpt_tree_op_type type,
	const struct member *maker, struct err *e)
{
	struct ckpt_tree_op op = {.type = type, .target = m->n.vpid, .adopter = m->n.ppid};

	m->born = true;
	if (maker) {
		op.user = maker->ns.ns[CKPT_NS_USER];
		m->ns = maker->ns;
		found_at_birth(m, &op);
		op.who = maker->n.vpid;
		op.exit_signal = m->stand_in ? 0 : m->n.exit_signal;
		op.share_mm = m->n.mm != m->n.vpid;
		op.share_sighand = m->n.sighand != m->n.vpid;
		op.share_files = m->n.files != m->n.vpid;
		op.share_fs = m->n.fs != m->n.vpid;
		m->sid = maker->sid;
		m->pgid = maker->pgid;
	}
	return add_op(p, op, e);
}

/* @anc is an ancestor of @m as the tree will be. */
static bool descends(struct play *p, const struct member *m, pid_t anc)
{
	while (m && m->n.ppid != anc)
		m = m->n.ppid == 1 ? NULL : find(p, m->n.ppid);
	return m != NULL;
}

/* The first of a pid namespace, and whoever comes after it, has no way into a group outside but
 * by birth. */
static bool waits_for_group(struct play *p, const struct member *m, const struct member *maker)
{
	return founds(m, CKPT_NS_PID) && m->n.pgid && maker->n.pgid == m->n.pgid &&
	       maker->pgid != m->n.pgid;
}

/* 1 when @m was born, 0 when it can't be yet. */
static int try_bear(struct play *p, struct member *m, struct err *e)
{
	static const struct ckpt_ns_set none;
	struct member *parent = find(p, m->n.ppid);
	int r;

	if (parent && parent->born && fits(m, parent->sid) && shares_with(m, parent) &&
		fits_namespaces(m, &parent->ns) && !waits_for_group(p, m, parent)) {
		r = bear(p, m, CKPT_TREE_CHILD, parent, e);
		return r < 0 ? r : 1;
	}
	if (parent && !parent->born)
		return 0;
	for (size_t i = 0; i < p->n; i++) {
		struct member *s = &p->m[i];

		if (!s->born || s->n.ppid != m->n.ppid || !fits(m, s->sid) || !shares_with(m, s) ||
			!fits_namespaces(m, &s->ns) || founds(m, CKPT_NS_PID) ||
			(parent && s->n.exit_signal != m->n.exit_signal))
			continue;
		r = bear(p, m, CKPT_TREE_SIBLING, s, e);
		return r < 0 ? r : 1;
	}
	if (!parent && fits(m, 0) && shares_nothing(m) && fits_namespaces(m, &none) &&
		!founds(m, CKPT_NS_PID)) {
		r = bear(p, m, CKPT_TREE_SEED, NULL, e);
		return r < 0 ? r : 1;
	}
	if (m->n.exit_signal != SIGCHLD)
		return 0;
	for (size_t i = 0; i < p->n; i++) {
		struct member *s = &p->m[i];

		if (!s->born || s->sid != m->birth || !shares_with(m, s) ||
			!fits_namespaces(m, &s->ns) || waits_for_group(p, m, s) ||
			(parent && !descends(p, s, m->n.ppid)))
			continue;
		r = bear(p, m, CKPT_TREE_ORPHAN, s, e);
		return r < 0 ? r : 1;
	}
	return 0;
}

/* One of those who lead a session and have nobody left to bear before does so.  1 if one did. */
static int try_setsid(struct play *p, struct err *e)
{
	int done = 0, r;

	for (size_t i = 0; i < p->n; i++) {
		struct member *m = &p->m[i];
		bool waits = false;

		if (!m->born || !leads(m) || m->sid == m->n.vpid)
			continue;
		for (size_t j = 0; j < p->n && !waits; j++)
			waits = !p->m[j].born && p->m[j].n.ppid == m->n.vpid &&
				p->m[j].birth == m->sid;
		if (waits)
			continue;
		m->sid = m->pgid = m->n.vpid;
		r = add_op(p, (struct ckpt_tree_op){CKPT_TREE_SETSID, .who = m->n.vpid}, e);
		if (r < 0)
			return r;
		done = 1;
	}
	return done;
}

/* Is a child still to be born where @m will not be any more? */
static bool bears_before(const struct play *p, const struct member *m)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct member *c = &p->m[i];

		if (!c->born && c->n.ppid == m->n.vpid && fits_namespaces(c, &m->ns) &&
			!fits_namespaces(c, &m->n.ns))
			return true;
	}
	return false;
}

/*
 * One of those who have made namespaces and have nobody left to bear before does so.  1 if one did.
 */
static int try_unshare(struct play *p, struct err *e)
{
	for (size_t i = 0; i < p->n_nodes; i++) {
		struct member *m = &p->m[i];
		struct ckpt_tree_op op = {CKPT_TREE_UNSHARE, .who = m->n.vpid};
		int r;

		for (int k = 0; k < CKPT_N_NS; k++)
			if (founds(m, k) && m->ns.ns[k] != m->n.ns.ns[k])
				op.founds |= 1U << k;
		if (!m->born || !op.founds || bears_before(p, m))
			continue;
		m->ns = m->n.ns;
		r = add_op(p, op, e);
		return r < 0 ? r : 1;
	}
	return 0;
}

/*
 * Where the dead leader of @sid was: orphans that it left went to ancestors of it, so it is below
 * the nearest of those.  Their number, or 1.
 */
static pid_t nearest_adopter(struct play *p, pid_t sid)
{
	pid_t nearest = 1;

	for (size_t i = 0; i < p->n_nodes; i++) {
		const struct member *m = &p->m[i], *adopter = find(p, m->n.ppid);

		if (!m->born && m->birth == sid && adopter && adopter->born &&
			(nearest == 1 || descends(p, adopter, nearest)))
			nearest = adopter->n.vpid;
	}
	return nearest;
}

/* A stand-in for the dead leader of a session somebody is waiting for.  1 if one was made. */
static int try_stand_in(struct play *p, struct err *e)
{
	for (size_t i = 0; i < p->n_nodes; i++) {
		const struct member *m = &p->m[i];
		struct member *s;

		if (m->born || m->birth == ANY || m->birth == 0 || find(p, m->birth))
			continue;
		s = add_stand_in(p, m->birth, nearest_adopter(p, m->birth));
		if (!s)
			return err_errno(e, -ENOMEM, "process tree");
		s->n.sid = s->n.vpid;
		return 1;
	}
	return 0;
}

/*
 * A child may have come to its parent as an orphan rather than by birth; then what it says about
 * its parent's first session is wrong.  Forgets that for one.  1 if there was one.
 */
static int try_relax(struct play *p)
{
	for (size_t i = 0; i < p->n_nodes; i++) {
		struct member *m = &p->m[i];

		if (m->born || !leads(m) || m->birth == ANY)
			continue;
		m->birth = ANY;
		return 1;
	}
	return 0;
}

/* The group @m is in gets a leader, if it has none yet. */
static int found_group(struct play *p, const struct member *m, struct err *e)
{
	pid_t g = m->n.pgid;
	struct member *l = find(p, g);
	int r;

	if ((l && l->ns.ns[CKPT_NS_PID] != m->ns.ns[CKPT_NS_PID]) || (!l && m->ns.ns[CKPT_NS_PID]))
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"task %d: no way into its group %d, whose leader has ended or is in another pid namespace",
			m->n.vpid, g);
	if (l && l->pgid == g)
		return l->sid == m->sid ? 0
					: err_set(e, ERR_IMAGE, -EINVAL,
						  "group %d is of another session than process %d",
						  g, m->n.vpid);
	if (l && (l->sid != m->sid || leads(l)))
		return err_set(
			e, ERR_IMAGE, -EINVAL, "process %d is of an impossible group", m->n.vpid);
	if (!l) {
		struct member maker = *m;

		l = add_stand_in(p, g, m->n.vpid);
		if (!l)
			return err_errno(e, -ENOMEM, "process tree");
		l->n.sid = m->n.sid;
		r = bear(p, l, CKPT_TREE_CHILD, &maker, e);
		if (r < 0)
			return r;
	}
	l->pgid = g;
	return add_op(p, (struct ckpt_tree_op){CKPT_TREE_SETPGID, .who = g, .target = g}, e);
}

/* Joins @m to its group, which gets a leader if it has none yet. */
static int join_group(struct play *p, struct member *m, struct err *e)
{
	if (m->n.pgid == 0 || leads(m))
		return err_set(e, ERR_IMAGE, -EINVAL,
			"process %d can't be in group %d of session %d", m->n.vpid, m->n.pgid,
			m->n.sid);
	m->pgid = m->n.pgid;
	return add_op(p,
		(struct ckpt_tree_op){CKPT_TREE_SETPGID, .who = m->n.vpid, .target = m->n.pgid}, e);
}

/* Whose child waits for it to be in its group joins that already.  1 if one did. */
static int try_early_group(struct play *p, struct err *e)
{
	for (size_t i = 0; i < p->n_nodes; i++) {
		const struct member *m = &p->m[i];
		struct member *parent = find(p, m->n.ppid), *leader;
		int r;

		if (m->born || !parent || !parent->born || parent->sid != parent->n.sid ||
			!waits_for_group(p, m, parent))
			continue;
		leader = find(p, parent->n.pgid);
		if (leader && (!leader->born || leader->sid != leader->n.sid))
			continue;
		r = found_group(p, parent, e);
		if (r == 0 && parent->pgid != parent->n.pgid)
			r = join_group(p, parent, e);
		return r < 0 ? r : 1;
	}
	return 0;
}

static bool waits_for_parent(struct play *p, const struct member *m)
{
	const struct member *parent = find(p, m->n.ppid);

	return parent && !parent->born;
}

static int play_births(struct play *p, struct err *e)
{
	for (;;) {
		int progress = 0, r;
		const struct member *stuck = NULL;

		for (size_t i = 0; i < p->n; i++) {
			if (p->m[i].born)
				continue;
			r = try_bear(p, &p->m[i], e);
			if (r < 0)
				return r;
			progress |= r;
			if (!p->m[i].born && !waits_for_parent(p, &p->m[i]))
				stuck = &p->m[i];
		}
		if (!progress) {
			r = try_setsid(p, e);
			if (r == 0)
				r = try_unshare(p, e);
			if (r == 0)
				r = try_early_group(p, e);
			if (r == 0)
				r = try_stand_in(p, e);
			if (r == 0)
				r = try_relax(p);
			if (r < 0)
				return r;
			progress = r;
		}
		if (progress)
			continue;
		if (!stuck)
			return 0;
		return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
			"task %d: no way to rebuild a child of %d in session %d", stuck->n.vpid,
			stuck->n.ppid, stuck->n.sid);
	}
}

static int play_groups(struct play *p, struct err *e)
{
	int r;

	for (size_t i = 0; i < p->n_nodes; i++) {
		const struct member *m = &p->m[i];

		if (m->n.pgid == 0 || m->pgid == m->n.pgid)
			continue;
		r = found_group(p, m, e);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < p->n_nodes; i++) {
		struct member *m = &p->m[i];

		if (m->pgid == m->n.pgid)
			continue;
		r = join_group(p, m, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int play_ends(struct play *p, struct err *e)
{
	for (size_t i = p->n; i-- > p->n_nodes;) {
		int r = add_op(p,
			(struct ckpt_tree_op){
				CKPT_TREE_END, .who = p->m[i].n.vpid, .target = p->m[i].n.ppid},
			e);

		if (r < 0)
			return r;
	}
	return 0;
}

int ckpt_tree_plan(const struct ckpt_tree_node *nodes, size_t n, struct ckpt_tree_op **ret,
	size_t *ret_n, struct err *e)
{
	struct play p = {.n = n, .n_nodes = n, .cap = 3 * n};
	_cleanup_free_ struct member *members = calloc(p.cap + 1, sizeof(*members));
	int r;

	if (!members)
		return err_errno(e, -ENOMEM, "process tree");
	p.m = members;
	for (size_t i = 0; i < n; i++) {
		struct member *m = &members[i];

		m->n = nodes[i];
		if (m->n.sid == 1)
			m->n.sid = 0;
		if (m->n.pgid == 1)
			m->n.pgid = 0;
	}
	r = check_parents(&p, e);
	if (r == 0) {
		find_birth(&p);
		r = play_births(&p, e);
	}
	if (r == 0)
		r = play_groups(&p, e);
	if (r == 0)
		r = play_ends(&p, e);
	if (r < 0) {
		free(p.ops);
		return r;
	}
	*ret = p.ops;
	*ret_n = p.n_ops;
	return 0;
}
