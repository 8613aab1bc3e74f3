// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * keys - memory protection keys (Documentation/core-api/protection-keys.rst).
 *
 * Theory of operation
 *
 * A memory space has the keys 1 to 15 to give out (pkey_alloc(2): the lowest first).  Each of its
 * mappings carries one, or 0, and a register of each thread, PKRU, tells what it may do with memory
 * that carries which.  V8 keeps the code it makes behind one.  A further key may be the kernel's
 * own: memory that may only be executed carries one that no call gives out or takes back.
 *
 *      dump      smaps tells the key of a mapping (base/proc.h).  Nothing tells which are given out;
 *                but pkey_mprotect(2) looks at its key before it looks for the memory: where
 *                there can't be any it says EINVAL of a key that nobody has, or the kernel, and
 *                ENOMEM of others.  PKRU is one of the extended registers (ckpt/xstate.h)
 *      create    mappings without their keys (map.c), and what may only be executed may be read:
 *                the kernel would take a key for it
 *      finish    all keys up to the highest are taken, and mappings get theirs; those that nobody
 *                has are given back, the kernel's first: as the lowest one that is free it is what
 *                memory that may only be executed gets then
 *
 * The thread that does it may use all of them until its registers are restored.
 *
 * A key can be given back while memory carries it.  When that memory may only be executed it is
 * taken for the kernel's.
 */
#include <cpuid.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/remote/remote.h"
#include "proto/memory.pb-c.h"

#define FIRST_KEY 1
#define LAST_KEY  15
#define NOWHERE	  (1UL << 63) /* the kernel's half: no program has memory there */
#define EXECUTE	  ((uint32_t)PROT_EXEC)

/* Asked once: a virtual machine's CPU leaves it for the answer. */
bool ckpt_keys_here(void)
{
	static _Thread_local int here = -1;
	uint32_t a, b, c, d;

	if (here < 0)
		here = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & bit_OSPKE);
	return here;
}

int ckpt_keys_ask(struct remote *r)
{
	int first = -1;

	for (uint64_t key = FIRST_KEY; key <= LAST_KEY; key++) {
		int call = remote_add(
			r, SYS_pkey_mprotect, NOWHERE, PAGE_SIZE, PROT_NONE, key, 0, 0);

		if (call < 0)
			return call;
		first = first < 0 ? call : first;
	}
	return first;
}

uint32_t ckpt_keys_asked(const struct remote *r, int first)
{
	uint32_t keys = 0;

	for (int key = FIRST_KEY; key <= LAST_KEY; key++)
		if (remote_result(r, first + key - FIRST_KEY) == -ENOMEM)
			keys |= 1U << key;
	return keys;
}

/* The key that is the kernel's own, 0: none. */
static uint32_t kernels_key(const Pb__Mm *mm)
{
	for (size_t i = 0; i < mm->n_mappings; i++) {
		const Pb__Mapping *m = mm->mappings[i];

		if (m->key && m->prot == EXECUTE && !(mm->keys & (1U << m->key)))
			return m->key;
	}
	return 0;
}

/* Those that must be there for a while: bit K is key K. */
static uint32_t wanted_keys(const Pb__Mm *mm)
{
	uint32_t keys = mm->keys;

	for (size_t i = 0; i < mm->n_mappings; i++)
		keys |= 1U << mm->mappings[i]->key;
	return keys & ~1U;
}

bool ckpt_keys_sane(const Pb__Mm *mm)
{
	if (mm->keys & ~((2U << LAST_KEY) - 2))
		return false;
	for (size_t i = 0; i < mm->n_mappings; i++)
		if (mm->mappings[i]->key > LAST_KEY)
			return false;
	return true;
}

int ckpt_keys_check(const Pb__Mm *mm, struct err *e)
{
	uint32_t own = kernels_key(mm);

	if (ckpt_keys_here() || !(wanted_keys(mm) & ~(1U << own)))
		return 0;
	err_set(e, ERR_HOST, -EOPNOTSUPP,
		"this CPU lacks memory protection keys, which the session uses");
	return err_hint(e, "resume it where /proc/cpuinfo has ospke among its flags");
}

bool ckpt_keys_used(const Pb__Mm *mm)
{
	return wanted_keys(mm) && ckpt_keys_here();
}

/* May it only be executed, so that the kernel would give it a key when it is made? */
static bool is_executed(const Pb__Mapping *m)
{
	return m->prot == EXECUTE;
}

uint32_t ckpt_keys_prot(const Pb__Mm *mm, const Pb__Mapping *m)
{
	return is_executed(m) && ckpt_keys_used(mm) ? m->prot | PROT_READ : m->prot;
}

/* A batch being prepared, in which every call must succeed. */
struct giving {
	struct remote *r;
	int n;
};

static int run(struct giving *g, struct err *e)
{
	int r = g->n ? remote_run(g->r, true, e) : 0;

	for (int i = 0; i < g->n && r >= 0; i++)
		if (remote_result(g->r, i) < 0)
			r = err_errno(e, (int)remote_result(g->r, i), "memory protection keys");
	g->n = 0;
	return r;
}

static int add(struct giving *g, struct err *e, long nr, uint64_t a0, uint64_t a1, uint64_t a2,
	uint64_t a3)
{
	int r = g->n == REMOTE_MAX_CALLS ? run(g, e) : 0;

	if (r >= 0) {
		r = remote_add(g->r, nr, a0, a1, a2, a3, 0, 0);
		g->n++;
	}
	return r;
}

static int take(struct giving *g, uint32_t wanted, struct err *e)
{
	int r = 0;

	for (int key = FIRST_KEY; key <= LAST_KEY && wanted >> key && r >= 0; key++)
		r = add(g, e, SYS_pkey_alloc, 0, 0, 0, 0);
	r = r < 0 ? r : run(g, e);
	for (int key = FIRST_KEY; key <= LAST_KEY && wanted >> key && r >= 0; key++)
		if (remote_result(g->r, key - FIRST_KEY) != key)
			r = err_set(e, ERR_FAILED, -EBUSY, "memory protection key %d is taken",
				key);
	return r;
}

static int give(struct giving *g, const Pb__Mm *mm, uint32_t own, struct err *e)
{
	int r = 0;

	for (size_t i = 0; i < mm->n_mappings && r >= 0; i++) {
		const Pb__Mapping *m = mm->mappings[i];

		if (is_executed(m) ? m->key != own || !own : m->key)
			r = add(g, e, SYS_pkey_mprotect, m->start, m->end - m->start, m->prot,
				m->key);
	}
	return r;
}

/* All lower ones are taken: the kernel's is the lowest that is free. */
static int give_kernels(struct giving *g, const Pb__Mm *mm, uint32_t own, struct err *e)
{
	int r = add(g, e, SYS_pkey_free, own, 0, 0, 0);

	for (size_t i = 0; i < mm->n_mappings && r >= 0; i++) {
		const Pb__Mapping *m = mm->mappings[i];

		if (is_executed(m) && m->key == own)
			r = add(g, e, SYS_mprotect, m->start, m->end - m->start, m->prot, 0);
	}
	return r;
}

static int give_back(struct giving *g, uint32_t wanted, uint32_t kept, struct err *e)
{
	int r = 0;

	for (int key = FIRST_KEY; key <= LAST_KEY && wanted >> key && r >= 0; key++)
		if (!(kept & (1U << key)))
			r = add(g, e, SYS_pkey_free, (uint64_t)key, 0, 0, 0);
	return r;
}

int ckpt_keys_restore(struct remote *remote, const Pb__Mm *mm, struct err *e)
{
	uint32_t wanted = wanted_keys(mm), own = kernels_key(mm);
	struct giving g = {.r = remote};
	int r = take(&g, wanted, e);

	if (r >= 0)
		r = give(&g, mm, own, e);
	if (r >= 0 && own)
		r = give_kernels(&g, mm, own, e);
	if (r >= 0)
		r = give_back(&g, wanted, mm->keys | (own ? 1U << own : 0), e);
	return r < 0 ? r : run(&g, e);
}
