// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 * A program that goes in front of the session's own and knows one answer, "notify"; everything
 * else goes on behind it:
 *
 *      not x86-64                                   -> behind
 *      a call of the table?                         no: behind (nothing but its number was loaded, so
 *                                                       the kernel still knows calls by number)
 *      always                                       notify
 *      whoever has our mark in a spare argument     -> behind
 *      [address, address + length) touches a range? notify, else behind
 *
 * The mark is a random number where the kernel looks at nothing: in an argument that the call does
 * not have.  It protects nothing: a program that found it out would only harm its own memory.
 */
#include "supervisor/filter/filter_watch.h"

#include <assert.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/base.h"
#include "ckpt/ckpt.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef SYS_set_mempolicy_home_node
#define SYS_set_mempolicy_home_node 450
#endif
#ifndef SYS_mseal
#define SYS_mseal 462
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

enum how {
	RANGE,	/* arguments 0 and 1 are an address and a length */
	EXEC,	/* the same, if argument 2 has PROT_EXEC */
	NAMED,	/* prctl: arguments 2 and 3, if argument 0 is PR_SET_VMA; always for some others */
	ALWAYS, /* it is about a whole process, or another one's memory */
	OTHER,	/* the same, unless argument 0 has our mark in its upper half */
	LIMIT,	/* argument 0 is a limit of memory: twice as much is counted for now */
	PLIMIT, /* the same with argument 1, if there is an argument 2 */
};

static const struct {
	int nr;
	enum how how;
} calls[] = {
	{SYS_madvise, RANGE},
	{SYS_mremap, RANGE},
	{SYS_mlock, RANGE},
	{SYS_mlock2, RANGE},
	{SYS_mbind, RANGE},
	{SYS_mseal, RANGE},
	{SYS_mincore, RANGE},
	{SYS_set_mempolicy_home_node, RANGE},
	{SYS_pkey_mprotect, RANGE},
	{SYS_mprotect, EXEC},
	{SYS_prctl, NAMED},
	{SYS_mlockall, ALWAYS},
	{SYS_get_mempolicy, ALWAYS},
	{SYS_move_pages, ALWAYS},
	{SYS_migrate_pages, ALWAYS},
	{SYS_vmsplice, ALWAYS},
	{SYS_process_madvise, ALWAYS},
	{SYS_ptrace, ALWAYS},
	{SYS_process_vm_readv, OTHER},
	{SYS_process_vm_writev, OTHER},
	{SYS_setrlimit, LIMIT},
	{SYS_prlimit64, PLIMIT},
};

bool filter_watches(int nr)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (calls[i].nr == nr)
			return true;
	return false;
}

bool filter_watched_range(const struct seccomp_data *d, uint64_t *ret_start, uint64_t *ret_end)
{
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		int at = calls[i].how == NAMED ? 2 : 0;

		if (calls[i].nr != d->nr)
			continue;
		if (calls[i].how > NAMED || (at && d->args[0] != PR_SET_VMA))
			return false;
		*ret_start = d->args[at];
		*ret_end = d->args[at] + ALIGN_UP(d->args[at + 1], PAGE_SIZE);
		return *ret_end > *ret_start;
	}
	return false;
}

size_t filter_watched_calls(long *ret, size_t max)
{
	size_t n = MIN(max, ARRAY_SIZE(calls));

	for (size_t i = 0; i < n; i++)
		ret[i] = calls[i].nr;
	return n;
}

/* ---- the program ---------------------------------------------------------------------------- */

static void put(struct buf *b, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	struct sock_filter insn = {code, jt, jf, k};

	buf_put(b, &insn, sizeof(insn));
}

static void load(struct buf *b, size_t offset)
{
	put(b, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void load_arg(struct buf *b, int arg, bool high)
{
	load(b, offsetof(struct seccomp_data, args) + (size_t)arg * 8 + (high ? 4 : 0));
}

static void jump_if(struct buf *b, uint16_t what, uint32_t k, uint8_t yes, uint8_t no)
{
	put(b, BPF_JMP | what | BPF_K, yes, no, k);
}

static void notify(struct buf *b)
{
	put(b, BPF_RET | BPF_K, 0, 0, SECCOMP_RET_USER_NOTIF);
}

/* The words of the scratch memory: address and end, low and high halves. */
enum { START_LOW, START_HIGH, END_LOW, END_HIGH };

/* Adds two 64-bit numbers with 32-bit registers. */
static void put_bounds(struct buf *b, int arg)
{
	load_arg(b, arg, true);
	put(b, BPF_ST, 0, 0, START_HIGH);
	put(b, BPF_ST, 0, 0, END_HIGH);
	load_arg(b, arg + 1, false);
	put(b, BPF_MISC | BPF_TAX, 0, 0, 0);
	load_arg(b, arg, false);
	put(b, BPF_ST, 0, 0, START_LOW);
	put(b, BPF_ALU | BPF_ADD | BPF_X, 0, 0, 0);
	put(b, BPF_ST, 0, 0, END_LOW);
	/* less than what was added: one is carried */
	put(b, BPF_JMP | BPF_JGE | BPF_X, 3, 0, 0);
	put(b, BPF_LD | BPF_MEM, 0, 0, END_HIGH);
	put(b, BPF_ALU | BPF_ADD | BPF_K, 0, 0, 1);
	put(b, BPF_ST, 0, 0, END_HIGH);
	load_arg(b, arg + 1, true);
	put(b, BPF_MISC | BPF_TAX, 0, 0, 0);
	put(b, BPF_LD | BPF_MEM, 0, 0, END_HIGH);
	put(b, BPF_ALU | BPF_ADD | BPF_X, 0, 0, 0);
	put(b, BPF_ST, 0, 0, END_HIGH);
}

/* Notifies if start < @r->end and end > @r->start. */
static void put_range(struct buf *b, const struct ckpt_range *r)
{
	put(b, BPF_LD | BPF_MEM, 0, 0, START_HIGH);
	jump_if(b, BPF_JGT, (uint32_t)(r->end >> 32), 9, 0);
	jump_if(b, BPF_JEQ, (uint32_t)(r->end >> 32), 0, 2);
	put(b, BPF_LD | BPF_MEM, 0, 0, START_LOW);
	jump_if(b, BPF_JGE, (uint32_t)r->end, 6, 0);
	put(b, BPF_LD | BPF_MEM, 0, 0, END_HIGH);
	jump_if(b, BPF_JGT, (uint32_t)(r->start >> 32), 3, 0);
	jump_if(b, BPF_JEQ, (uint32_t)(r->start >> 32), 0, 3);
	put(b, BPF_LD | BPF_MEM, 0, 0, END_LOW);
	jump_if(b, BPF_JGT, (uint32_t)r->start, 0, 1);
	notify(b);
}

/* Far jumps, to places that are known when all has been put. */
enum place { AT_RANGE, AT_EXEC, AT_NAMED, AT_ALWAYS, AT_OTHER, AT_LIMIT, AT_PLIMIT, AT_TEST, AT_END, N_PLACES };

static_assert((int)AT_RANGE == (int)RANGE && (int)AT_PLIMIT == (int)PLIMIT, "places of calls");

static void go(struct buf *b, enum place where)
{
	put(b, BPF_JMP | BPF_JA, 0, 0, where);
}

static void resolve(struct buf *b, const size_t places[N_PLACES])
{
	struct sock_filter *f = (struct sock_filter *)b->data;

	for (size_t i = 0; i < b->len / sizeof(*f); i++)
		if (f[i].code == (BPF_JMP | BPF_JA))
			f[i].k = (uint32_t)(places[f[i].k] - i - 1);
}

static size_t here(const struct buf *b)
{
	return b->len / sizeof(struct sock_filter);
}

static void put_head(struct buf *b)
{
	load(b, offsetof(struct seccomp_data, arch));
	jump_if(b, BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
	go(b, AT_END);
	load(b, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		jump_if(b, BPF_JEQ, (uint32_t)calls[i].nr, 0, 1);
		go(b, (enum place)calls[i].how);
	}
	go(b, AT_END);
}

/* RLIMIT_DATA or RLIMIT_AS in argument @arg. */
static void put_limit(struct buf *b, int arg)
{
	load_arg(b, arg, false);
	jump_if(b, BPF_JEQ, RLIMIT_AS, 1, 0);
	jump_if(b, BPF_JEQ, RLIMIT_DATA, 0, 1);
	notify(b);
	go(b, AT_END);
}

static void put_limits(struct buf *b, size_t places[N_PLACES])
{
	places[AT_PLIMIT] = here(b);
	load_arg(b, 2, false);
	jump_if(b, BPF_JEQ, 0, 0, 3);
	load_arg(b, 2, true);
	jump_if(b, BPF_JEQ, 0, 0, 1);
	go(b, AT_END);
	put_limit(b, 1);
	places[AT_LIMIT] = here(b);
	put_limit(b, 0);
}

static void put_kinds(struct buf *b, uint32_t mark, size_t places[N_PLACES])
{
	places[AT_OTHER] = here(b);
	load_arg(b, 0, true);
	jump_if(b, BPF_JEQ, mark, 0, 1);
	go(b, AT_END);
	places[AT_ALWAYS] = here(b);
	notify(b);
	places[AT_NAMED] = here(b);
	load_arg(b, 0, false);
	jump_if(b, BPF_JEQ, PR_SET_DUMPABLE, 0, 1);
	notify(b);
	jump_if(b, BPF_JEQ, PR_SET_VMA, 1, 0);
	go(b, AT_END);
	put_bounds(b, 2);
	go(b, AT_TEST);
	places[AT_EXEC] = here(b);
	load_arg(b, 2, false);
	jump_if(b, BPF_JSET, PROT_EXEC, 1, 0);
	go(b, AT_END);
	places[AT_RANGE] = here(b);
	load_arg(b, 5, false);
	jump_if(b, BPF_JEQ, mark, 0, 1);
	go(b, AT_END);
	put_bounds(b, 0);
	places[AT_TEST] = here(b);
}

void filter_watch(struct buf *b, const struct ckpt_mapped *m)
{
	size_t places[N_PLACES];

	put_head(b);
	put_limits(b, places);
	put_kinds(b, m->cookie, places);
	for (size_t i = 0; i < m->n; i++)
		put_range(b, &m->ranges[i]);
	places[AT_END] = here(b);
	if (!b->failed)
		resolve(b, places);
}
