// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * Without privilege a session has one real uid.  Programs that expect more - daemons which drop
 * their rights, apt's download user, su - are told what they want to hear, consistently: what a
 * process sets it reads back, and what an unprivileged one may not set is refused (credentials(7)).
 * It is a class of names, not protection: all virtual users have the same rights.
 *
 * Where to keep it?  The supervisor does not see forks, and a table of pids would lose a daemon
 * whose parent is gone.  The kernel has two words per process which it copies at fork, keeps at
 * exec, and uses for nothing: the soft limits RLIMIT_LOCKS (ignored since Linux 2.4.25) and
 * RLIMIT_RSS (since 2.4.30).  They hold the ids themselves:
 *
 *      RLIMIT_LOCKS   real | effective << 16 | saved << 32 | MARK << 48        uids (MARK + 1: keeps caps)
 *      RLIMIT_RSS     real | effective << 16 | saved << 32 | groups << 48      gids
 *
 * So they are inherited without a race, cost one system call to look up, and move with the
 * session's rlimits in an image, whoever holds the names where it is made and resumed.  Sets of
 * supplementary groups are kept here, and move in the record of its world.
 */
#include "supervisor/names/users.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "base/base.h"
#include "proto/config.pb-c.h"

#define MARK	 0x0d7eULL /* even: the lowest bit is PR_SET_KEEPCAPS, which exec does not reset */
#define MAX_SETS 4096
#define MAX_IDS	 32768	     /* of all sets: they have to fit into one message */
#define KEEP	 0xffffffffU /* -1: leave this one as it is */
#define MAX_ID	 0xfffeU     /* what a word has room for */

/* ---- what a process is ---------------------------------------------------------------------- */

static struct users_ids unpack(uint64_t word)
{
	return (struct users_ids){(uint16_t)word, (uint16_t)(word >> 16), (uint16_t)(word >> 32)};
}

static uint64_t pack(struct users_ids ids, uint64_t top)
{
	return ids.real | (uint64_t)ids.effective << 16 | (uint64_t)ids.saved << 32 | top << 48;
}

void users_load(pid_t tid, struct users *ret)
{
	struct rlimit uids, gids;

	*ret = (struct users){.groups = USERS_NO_GROUPS};
	if (prlimit(tid, RLIMIT_LOCKS, NULL, &uids) < 0 ||
		prlimit(tid, RLIMIT_RSS, NULL, &gids) < 0 || (uids.rlim_cur >> 48 & ~1ULL) != MARK)
		return;
	ret->uid = unpack(uids.rlim_cur);
	ret->gid = unpack(gids.rlim_cur);
	ret->keeps_caps = uids.rlim_cur >> 48 & 1;
	ret->groups = (uint16_t)(gids.rlim_cur >> 48);
}

static int store_word(pid_t tid, int resource, uint64_t word)
{
	struct rlimit limit;

	if (prlimit(tid, resource, NULL, &limit) < 0)
		return -errno;
	limit.rlim_cur = word;
	return prlimit(tid, resource, &limit, NULL) < 0 ? -EPERM : 0;
}

int users_store(pid_t tid, const struct users *u)
{
	int r = store_word(tid, RLIMIT_RSS, pack(u->gid, u->groups));

	return r < 0 ? r : store_word(tid, RLIMIT_LOCKS, pack(u->uid, MARK | u->keeps_caps));
}

static bool same_ids(struct users_ids a, struct users_ids b)
{
	return a.real == b.real && a.effective == b.effective && a.saved == b.saved;
}

bool users_same(const struct users *a, const struct users *b)
{
	return same_ids(a->uid, b->uid) && same_ids(a->gid, b->gid) &&
	       a->keeps_caps == b->keeps_caps && a->groups == b->groups;
}

/* ---- what it may become --------------------------------------------------------------------- */

static bool is_gid_call(int nr)
{
	return nr == SYS_getgid || nr == SYS_getegid || nr == SYS_getresgid || nr == SYS_setgid ||
	       nr == SYS_setregid || nr == SYS_setresgid || nr == SYS_setfsgid;
}

struct users_ids *users_triple(struct users *u, int nr)
{
	return is_gid_call(nr) ? &u->gid : &u->uid;
}

bool users_privileged(const struct users *u)
{
	return u->uid.effective == 0 || u->keeps_caps;
}

static bool one_of(struct users_ids t, uint32_t id)
{
	return id == t.real || id == t.effective || id == t.saved;
}

/* Of an id that is to be set: is there such a one?  One's own always is. */
static bool exists(struct users_ids t, uint32_t id)
{
	return id == KEEP || id <= MAX_ID || one_of(t, id);
}

/* setuid, setgid */
static int set_one(struct users_ids *t, bool root, uint32_t id)
{
	if (id == KEEP || !exists(*t, id))
		return -EINVAL;
	if (root)
		t->real = t->saved = id;
	else if (id != t->real && id != t->saved)
		return -EPERM;
	t->effective = id;
	return 0;
}

/* setreuid, setregid: setreuid(2) on what becomes of the saved id */
static int set_two(struct users_ids *t, bool root, uint32_t real, uint32_t effective)
{
	const struct users_ids old = *t;

	if (!exists(old, real) || !exists(old, effective))
		return -EINVAL;
	if (!root && ((real != KEEP && real != old.real && real != old.effective) ||
			     (effective != KEEP && !one_of(old, effective))))
		return -EPERM;
	if (real != KEEP)
		t->real = real;
	if (effective != KEEP)
		t->effective = effective;
	if (real != KEEP || (effective != KEEP && effective != old.real))
		t->saved = t->effective;
	return 0;
}

/* setresuid, setresgid */
static int set_three(struct users_ids *t, bool root, const uint64_t *args)
{
	const struct users_ids old = *t;
	uint32_t *const slots[] = {&t->real, &t->effective, &t->saved};

	for (int i = 0; i < 3; i++)
		if (!exists(old, (uint32_t)args[i]))
			return -EINVAL;
	for (int i = 0; i < 3 && !root; i++)
		if ((uint32_t)args[i] != KEEP && !one_of(old, (uint32_t)args[i]))
			return -EPERM;
	for (int i = 0; i < 3; i++)
		if ((uint32_t)args[i] != KEEP)
			*slots[i] = (uint32_t)args[i];
	return 0;
}

int users_change(struct users *u, int nr, const uint64_t *args, bool root)
{
	struct users_ids *t = users_triple(u, nr);

	switch (nr) {
	case SYS_setuid:
	case SYS_setgid:
		return set_one(t, root, (uint32_t)args[0]);
	case SYS_setreuid:
	case SYS_setregid:
		return set_two(t, root, (uint32_t)args[0], (uint32_t)args[1]);
	default:
		return set_three(t, root, args);
	}
}

/* ---- supplementary groups ------------------------------------------------------------------- */

struct users_groups {
	size_t n, n_ids;
	struct {
		uint32_t first, n; /* of ids */
	} sets[MAX_SETS];
	gid_t ids[MAX_IDS];
};

struct users_groups *users_groups_new(void)
{
	void *g = mmap(NULL, sizeof(struct users_groups), PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return g == MAP_FAILED ? NULL : g;
}

void users_groups_free(struct users_groups *g)
{
	if (g)
		munmap(g, sizeof(*g));
}

/* The number of the new set. */
static int add_set(struct users_groups *g, const gid_t *ids, size_t n)
{
	if (g->n == MAX_SETS || n > MAX_IDS - g->n_ids)
		return -ENOMEM;
	g->sets[g->n].first = (uint32_t)g->n_ids;
	g->sets[g->n].n = (uint32_t)n;
	if (n)
		memcpy(g->ids + g->n_ids, ids, n * sizeof(*ids));
	g->n_ids += n;
	return (int)g->n++;
}

int users_groups_find(struct users_groups *g, const gid_t *ids, size_t n)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->sets[i].n == n && !memcmp(g->ids + g->sets[i].first, ids, n * sizeof(*ids)))
			return (int)i;
	return add_set(g, ids, n);
}

const gid_t *users_groups_of(const struct users_groups *g, uint16_t number, size_t *ret_n)
{
	*ret_n = number < g->n ? g->sets[number].n : 0;
	return *ret_n ? g->ids + g->sets[number].first : g->ids;
}

int users_groups_dump(const struct users_groups *g, Pb__World *w, void **ret_room)
{
	Pb__GroupSet **list = calloc(g->n + 1, sizeof(*list) + sizeof(**list));
	Pb__GroupSet *sets = (Pb__GroupSet *)(list + g->n + 1);

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++) {
		list[i] = &sets[i];
		pb__group_set__init(&sets[i]);
		sets[i].ids = (uint32_t *)users_groups_of(g, (uint16_t)i, &sets[i].n_ids);
	}
	w->group_sets = list;
	w->n_group_sets = g->n;
	*ret_room = list;
	return 0;
}

int users_groups_restore(struct users_groups *g, const Pb__World *w, struct err *e)
{
	for (size_t i = 0; i < w->n_group_sets; i++) {
		const Pb__GroupSet *set = w->group_sets[i];

		if (set->n_ids > USERS_MAX_GROUPS || add_set(g, set->ids, set->n_ids) < 0)
			return err_set(e, ERR_IMAGE, -EBADMSG, "bad supplementary groups");
	}
	return 0;
}
