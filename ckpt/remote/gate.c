// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * gate - a batch that has its memory for itself.
 *
 * Theory of operation
 *
 * While a tracer lives, whoever is not to run is stopped.  When it is killed all its tasks go on at
 * once: the one that runs a batch, to the end of it, and the others beside it.  Where that must not
 * be (what has been copied is about to replace what they write to), the others are given registers
 * with which they go on at a gate: they wait until a word is not 0, and then heal.
 *
 * The word is written by the last call of the batch.  So that it is written under all
 * circumstances, the task that runs the batch is ready to do so before the first of the others gets
 * to the gate:
 *
 *      1  its registers: run the last call of the batch, and nothing else
 *      2  the others, one by one: to the gate
 *      3  its registers: run the batch
 *      4  it goes
 *      5  the others, one by one: their own registers
 *
 * Each of these is one call that is done or not done.  A tracer that dies before 3 leaves a batch
 * that has not run and will not.
 *
 * The others can't share what heals, so each has pages laid out like the executor's (layout.h), of
 * which two are touched.  They are unmapped at the close, or stay as the only trace.
 */
#include "ckpt/remote/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

/* Some seconds: should the word never be written (two must die for that), life goes on. */
#define MOST_LOOKS (8UL << 20)
#define CALLS	   400 /* of one batch */

struct remote_gate {
	struct remote *r;
	struct remote **others;
	size_t n;
	uint64_t slots; /* REMOTE_AREA_SIZE for each of them */
	uint64_t word;	/* in the first of them */
};

static uint64_t slot(const struct remote_gate *g, size_t i)
{
	return g->slots + i * REMOTE_AREA_SIZE;
}

/* Never both writable and executable, like the executor's own pages. */
static int map_slots(struct remote_gate *g, struct err *e)
{
	long at;
	int k = remote_map(g->r, &at, g->n * REMOTE_AREA_SIZE, PROT_READ | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, e);

	if (k < 0)
		return k;
	g->slots = (uint64_t)at;
	g->word = g->slots + AREA_TABLE;
	for (size_t i = 0; i < g->n && k == 0;) {
		size_t first = i;

		for (; i < g->n && i - first < CALLS; i++)
			remote_add(g->r, SYS_mprotect, slot(g, i) + AREA_TABLE,
				REMOTE_AREA_SIZE - AREA_TABLE, PROT_READ | PROT_WRITE, 0, 0, 0);
		k = remote_run(g->r, true, e);
		if (k == 0 && remote_result(g->r, (int)(i - first) - 1) < 0)
			k = err_errno(e, -ENOMEM, "pages of task %d", g->r->tid);
	}
	return k;
}

static int fill_slot(struct remote_gate *g, size_t i, pid_t tid, int mem, struct err *e)
{
	size_t len = (size_t)(remote_exec_end - remote_exec_begin);
	struct remote *other = remote_observe(g->r->proc_fd, tid, slot(g, i), e);
	struct heal h;
	int k;

	if (!other)
		return e->error;
	g->others[i] = other;
	remote_fill_heal(other, &h, remote_exec_far_at(slot(g, i)));
	k = remote_force(other, mem, slot(g, i) + AREA_CODE, remote_exec_begin, len);
	if (k == 0)
		k = remote_force(other, mem, slot(g, i) + AREA_HEAL, &h, sizeof(h));
	return k < 0 ? err_errno(e, k, "write a page of task %d", tid) : 0;
}

int remote_gate_open(
	struct remote_gate **ret, struct remote *r, const pid_t *tids, size_t n, struct err *e)
{
	_cleanup_close_ int mem = proc_open_file(r->proc_fd, r->tid, "mem", O_RDWR, NULL);
	struct remote_gate *g = calloc(1, sizeof(*g));
	int k = 0;

	if (g)
		g->others = calloc(n + 1, sizeof(*g->others));
	if (!g || !g->others) {
		free(g);
		return err_errno(e, -ENOMEM, "gate");
	}
	g->r = r;
	g->n = n;
	if (n)
		k = map_slots(g, e);
	for (size_t i = 0; i < n && k == 0; i++)
		k = fill_slot(g, i, tids[i], mem, e);
	if (k < 0) {
		remote_gate_close(g, NULL);
		return k;
	}
	*ret = g;
	return 0;
}

/*
 * From here on who goes on without us waits at the gate.  One that was killed is none to worry
 * about.
 */
static void to_the_gate(const struct remote_gate *g, struct remote *other)
{
	struct user_regs_struct regs = other->regs;

	regs.orig_rax = (unsigned long)-1;
	regs.cs = CODE_64;
	regs.rip = other->area->addr + AREA_CODE + (uint64_t)(remote_exec_gate - remote_exec_begin);
	regs.rbx = g->word;
	regs.rbp = MOST_LOOKS;
	regs.eflags &= ~0x500UL; /* trap flag, direction flag */
	if (remote_set_regs(other, &regs, NULL) == 0)
		remote_set_mask(other, ALL_SIGNALS, NULL);
}

static int run_gated(struct remote_gate *g, struct err *e)
{
	struct remote *r = g->r;
	struct user_regs_struct all = remote_exec_regs(r, false), last = all;
	int k;

	last.rbx += (uint64_t)(r->n - 1) * sizeof(struct entry);
	k = remote_set_regs(r, &last, e);
	if (k == 0)
		k = remote_set_mask(r, ALL_SIGNALS, e);
	for (size_t i = 0; i < g->n && k == 0; i++)
		to_the_gate(g, g->others[i]);
	if (k == 0)
		k = remote_set_regs(r, &all, e);
	if (k == 0)
		k = remote_finish_batch(r, e);
	for (size_t i = 0; i < g->n; i++)
		if (remote_set_regs(g->others[i], &g->others[i]->regs, NULL) == 0)
			remote_set_mask(g->others[i], g->others[i]->mask, NULL);
	return k;
}

int remote_gate_run(struct remote_gate *g, struct err *e)
{
	static const uint64_t closed;
	int k;

	if (!g->n)
		return remote_run(g->r, false, e);
	k = remote_add(g->r, SYS_clock_gettime, CLOCK_REALTIME, g->word, 0, 0, 0, 0);
	if (k < 0)
		return err_errno(e, k, "too many calls in one batch");
	k = remote_poke(g->r, g->word, &closed, sizeof(closed), e);
	if (k == 0)
		k = remote_put_batch(g->r, e);
	return k == 0 ? run_gated(g, e) : k;
}

int remote_gate_close(struct remote_gate *g, struct err *e)
{
	long value;
	int k = 0;

	if (!g)
		return 0;
	for (size_t i = 0; i < g->n; i++)
		remote_forget(g->others[i]);
	if (g->slots)
		k = remote_call(
			g->r, &value, e, SYS_munmap, g->slots, g->n * REMOTE_AREA_SIZE, 0, 0, 0, 0);
	free(g->others);
	free(g);
	return k;
}
