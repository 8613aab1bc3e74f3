// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in behind.h. */
#include "ckpt/freeze/behind.h"

#include <linux/futex.h>
#include <stdint.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/remote/i386.h"
#include "ckpt/remote/remote.h"

#define NSEC	 1000000000
#define CLOCKS	 16	   /* numbers of clocks */
#define OF_TASKS (1 << 26) /* those of tasks are below 0, eight for each number of a task */
#define MAX_FDS	 (1 << 20) /* of poll(2) */
#define POLL_FD	 8	   /* bytes of a struct pollfd */
#define LOOKED_AT 512	   /* bytes of the stack */

enum shape { POLL, NANOSLEEP, CLOCK_NANOSLEEP, FUTEX };

struct call {
	long nr;
	enum shape shape;
	bool narrow; /* its timespec has two numbers of 32 bits */
};

/* First those of whose arguments most has to be true. */
static const struct call calls[] = {
	{SYS_futex, FUTEX, false},
	{SYS_clock_nanosleep, CLOCK_NANOSLEEP, false},
	{SYS_poll, POLL, false},
	{SYS_nanosleep, NANOSLEEP, false},
};

static const struct call calls_i386[] = {
	{I386_FUTEX, FUTEX, true},
	{I386_FUTEX_TIME64, FUTEX, false},
	{I386_CLOCK_NANOSLEEP, CLOCK_NANOSLEEP, true},
	{I386_CLOCK_NANOSLEEP_TIME64, CLOCK_NANOSLEEP, false},
	{I386_POLL, POLL, false},
	{I386_NANOSLEEP, NANOSLEEP, true},
};

struct task {
	struct remote *r;
	struct user_regs_struct *g;
	bool i386;
	const struct call *calls;
	size_t n;
};

unsigned long long *ckpt_call_argument(struct user_regs_struct *g, unsigned i)
{
	unsigned long long *args[] = {&g->rdi, &g->rsi, &g->rdx, &g->r10, &g->r8, &g->r9};
	unsigned long long *args_i386[] = {&g->rbx, &g->rcx, &g->rdx, &g->rsi, &g->rdi, &g->rbp};

	return i386_runs(g) ? args_i386[i] : args[i];
}

/* ---- the registers -------------------------------------------------------------------------- */

static uint64_t argument(const struct task *t, unsigned i)
{
	uint64_t value = *ckpt_call_argument(t->g, i);

	return t->i386 ? (uint32_t)value : value;
}

static bool is_memory(const struct task *t, uint64_t at, size_t len)
{
	uint8_t bytes[sizeof(struct timespec)];

	return remote_peek(t->r, at, bytes, len, NULL) == 0;
}

/* Of a wait that takes some time, or until a point in time. */
static bool is_timespec(const struct task *t, uint64_t at, bool narrow)
{
	int64_t wide[2] = {-1, -1};
	int32_t half[2] = {-1, -1};

	if (narrow && remote_peek(t->r, at, half, sizeof(half), NULL) == 0) {
		wide[0] = half[0];
		wide[1] = half[1];
	} else if (!narrow && remote_peek(t->r, at, wide, sizeof(wide), NULL) == 0 && t->i386) {
		wide[1] = (int32_t)wide[1]; /* the rest is padding */
	}
	return wide[0] >= 0 && wide[1] >= 0 && wide[1] < NSEC && (wide[0] || wide[1]);
}

static bool is_rest(const struct task *t, uint64_t at)
{
	return at == 0 || is_memory(t, at, sizeof(int64_t));
}

static bool is_wait(uint32_t operation)
{
	switch (operation & ~(uint32_t)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)) {
	case FUTEX_WAIT:
	case FUTEX_WAIT_BITSET:
		return true;
	default:
		return false;
	}
}

/* An address is none, whichever half of it is looked at. */
static bool is_clock(const struct task *t, uint64_t a)
{
	int64_t id = t->i386 || a >> 32 == 0 ? (int32_t)a : (int64_t)a;

	return id > -OF_TASKS && id < CLOCKS;
}

/* Could it have been called with these? */
static bool fits(const struct task *t, const struct call *c)
{
	uint64_t a = argument(t, 0), b = argument(t, 1), d = argument(t, 3);

	switch (c->shape) {
	case POLL:
		if ((int32_t)argument(t, 2) == 0 || b > MAX_FDS)
			return false;
		return b ? is_memory(t, a, POLL_FD) : a == 0;
	case NANOSLEEP:
		return is_timespec(t, a, c->narrow) && is_rest(t, b);
	case CLOCK_NANOSLEEP:
		return is_clock(t, a) && (uint32_t)b == 0 &&
		       is_timespec(t, argument(t, 2), c->narrow) && is_rest(t, d);
	case FUTEX:
		return a % sizeof(uint32_t) == 0 && is_wait((uint32_t)b) &&
		       is_memory(t, a, sizeof(uint32_t)) && is_timespec(t, d, c->narrow);
	}
	return false;
}

/* ---- the code ------------------------------------------------------------------------------- */

/* Not if it could not have been called so. */
static bool is_one(const struct task *t, long nr)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->calls[i].nr == nr)
			return fits(t, &t->calls[i]);
	return false;
}

/*
 * A 32-bit program has called the vDSO, where three registers were pushed; the number is loaded
 * some instructions before.
 */
static long by_code_i386(const struct task *t)
{
	uint8_t code[24]; /* ... mov $nr, %eax ... */
	uint32_t back, nr;

	if (remote_peek(t->r, t->g->rsp + 12, &back, sizeof(back), NULL) < 0 ||
		remote_peek(t->r, back - sizeof(code), code, sizeof(code), NULL) < 0)
		return -1;
	for (size_t i = sizeof(code) - 5; i > 0; i--) {
		memcpy(&nr, code + i, sizeof(nr));
		if (code[i - 1] == 0xb8 && is_one(t, nr))
			return nr;
	}
	return -1;
}

static long by_code(const struct task *t)
{
	uint8_t code[7]; /* mov $nr, %eax; syscall */
	int32_t nr;

	if (remote_peek(t->r, t->g->rip - sizeof(code), code, sizeof(code), NULL) < 0 ||
		code[0] != 0xb8)
		return -1;
	memcpy(&nr, code + 1, sizeof(nr));
	return is_one(t, nr) ? nr : -1;
}

/* ---- the stack ------------------------------------------------------------------------------ */

/* Is @nr there, as a word? */
static bool is_on_stack(const struct task *t, long nr)
{
	uint8_t stack[LOOKED_AT] __attribute__((aligned(8)));
	size_t word = t->i386 ? sizeof(uint32_t) : sizeof(uint64_t);
	/* No page is crossed, or the last one might end there. */
	uint64_t sp = t->g->rsp, len = MIN(sizeof(stack), ALIGN_UP(sp + 1, PAGE_SIZE) - sp);

	if (remote_peek(t->r, sp, stack, len, NULL) < 0)
		return false;
	for (size_t at = 0; at + word <= len; at += word) {
		uint64_t value = 0;

		memcpy(&value, stack + at, word);
		if (value == (uint64_t)nr)
			return true;
	}
	return false;
}

/*
 * Where a 32-bit program's call is there twice, with a timespec of either width, and both could be
 * meant, that is @i whose number is on the stack.
 */
static bool is_another_width(const struct task *t, size_t i)
{
	const struct call *c = &t->calls[i], *next = c + 1;

	return c->narrow && i + 1 < t->n && next->shape == c->shape && fits(t, next) &&
	       is_on_stack(t, next->nr) && !is_on_stack(t, c->nr);
}

long ckpt_call_behind(struct remote *r, struct user_regs_struct *g)
{
	bool i386 = i386_runs(g);
	const struct task t = {.r = r,
		.g = g,
		.i386 = i386,
		.calls = i386 ? calls_i386 : calls,
		.n = i386 ? ARRAY_SIZE(calls_i386) : ARRAY_SIZE(calls)};
	long nr = i386 ? by_code_i386(&t) : by_code(&t);

	for (size_t i = 0; i < t.n && nr < 0; i++)
		if (fits(&t, &t.calls[i]) && !is_another_width(&t, i))
			nr = t.calls[i].nr;
	return nr;
}
