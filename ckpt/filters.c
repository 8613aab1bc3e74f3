// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in filters.h.  Here: the table, and the guarded form of a program. */
#include "ckpt/filters.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/remote/remote.h"

#define MAX_FILTERS (1u << 16)
#define MAX_BYTES   (64u << 20) /* of all programs together */
#define MAX_DEPTH   4096 /* the kernel allows 32768 instructions on a task, at least 4 each */
/* About the moment of installing, not about the filter. */
#define PASSING_FLAGS (SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_TSYNC_ESRCH)
#define NUMBER_BITS   12 /* that SECCOMP_RET_ERRNO can carry: up to 4095 */

struct program {
	uint64_t hash;
	size_t n;
	struct sock_filter code[];
};

struct node {
	uint32_t parent, flags;
	struct program *program; /* of the table; NULL: no such number */
};

struct ckpt_filters {
	struct node *nodes; /* number - 1 */
	size_t n_nodes;
	struct program **programs;
	size_t n_programs, bytes;
	bool foreign, untraced;
};

struct ckpt_filters *ckpt_filters_new(void)
{
	return calloc(1, sizeof(struct ckpt_filters));
}

void ckpt_filters_free(struct ckpt_filters *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_programs; i++)
		free(f->programs[i]);
	free(f->programs);
	free(f->nodes);
	free(f);
}

void ckpt_filters_set_foreign(struct ckpt_filters *f)
{
	f->foreign = true;
}

bool ckpt_filters_foreign(const struct ckpt_filters *f)
{
	return f->foreign;
}

void ckpt_filters_set_untraced(struct ckpt_filters *f)
{
	f->untraced = true;
}

bool ckpt_filters_untraced(const struct ckpt_filters *f)
{
	return f->untraced;
}

/* ---- the table ---------------------------------------------------------------------------- */

/* FNV-1a, 64 bits. */
static uint64_t hash_of(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < len; i++)
		h = (h ^ p[i]) * 0x100000001b3;
	return h;
}

static struct program *find_program(
	struct ckpt_filters *f, uint64_t hash, const struct sock_filter *code, size_t n)
{
	for (size_t i = 0; i < f->n_programs; i++) {
		struct program *p = f->programs[i];

		if (p->hash == hash && p->n == n && !memcmp(p->code, code, n * sizeof(*code)))
			return p;
	}
	return NULL;
}

static struct program *keep_program(
	struct ckpt_filters *f, const struct sock_filter *code, size_t n)
{
	size_t len = n * sizeof(*code);
	uint64_t hash = hash_of(code, len);
	struct program *p = find_program(f, hash, code, n), **more;

	if (p || len > MAX_BYTES - f->bytes)
		return p;
	p = malloc(sizeof(*p) + len);
	more = reallocarray(f->programs, f->n_programs + 1, sizeof(*more));
	if (more)
		f->programs = more;
	if (!p || !more) {
		free(p);
		return NULL;
	}
	p->hash = hash;
	p->n = n;
	memcpy(p->code, code, len);
	f->programs[f->n_programs++] = p;
	f->bytes += len;
	return p;
}

static struct node *node_of(const struct ckpt_filters *f, uint32_t number)
{
	struct node *n = number && number <= f->n_nodes ? &f->nodes[number - 1] : NULL;

	return n && n->program ? n : NULL;
}

/* Room for numbers up to @number. */
static int make_room(struct ckpt_filters *f, uint32_t number)
{
	size_t cap = 16;
	struct node *more;

	if (number > MAX_FILTERS)
		return -ENOSPC;
	if (number <= f->n_nodes)
		return 0;
	while (cap < number)
		cap *= 2;
	more = reallocarray(f->nodes, cap, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memset(more + f->n_nodes, 0, (number - f->n_nodes) * sizeof(*more));
	f->nodes = more;
	f->n_nodes = number;
	return 0;
}

int ckpt_filters_put(struct ckpt_filters *f, uint32_t number, uint32_t parent, uint32_t flags,
	const struct sock_filter *code, size_t n)
{
	struct program *p;
	int r;

	if (!number || !n || n > BPF_MAXINSNS)
		return -EINVAL;
	if (parent && (parent > number || ckpt_filters_depth(f, parent) - 1 >= MAX_DEPTH - 1))
		return -EINVAL;
	if (node_of(f, number))
		return -EEXIST;
	p = keep_program(f, code, n);
	if (!p)
		return -ENOSPC;
	r = make_room(f, number);
	if (r == 0)
		f->nodes[number - 1] = (struct node){parent, flags, p};
	return r;
}

uint32_t ckpt_filters_add(struct ckpt_filters *f, uint32_t parent, uint32_t flags,
	const struct sock_filter *code, size_t n)
{
	const struct program *p = keep_program(f, code, n);
	uint32_t number = (uint32_t)f->n_nodes + 1;

	if (!p)
		return 0;
	flags &= ~(uint32_t)PASSING_FLAGS;
	for (size_t i = 0; i < f->n_nodes; i++) {
		const struct node *k = &f->nodes[i];

		if (k->program == p && k->parent == parent && k->flags == flags)
			return (uint32_t)i + 1;
	}
	return ckpt_filters_put(f, number, parent, flags, code, n) < 0 ? 0 : number;
}

bool ckpt_filters_read(const struct ckpt_filters *f, uint32_t number, struct ckpt_filter *ret)
{
	const struct node *n = node_of(f, number);

	if (n)
		*ret = (struct ckpt_filter){n->parent, n->flags, n->program->code, n->program->n};
	return n;
}

/* A parent was there before its children, so there are no circles. */
size_t ckpt_filters_depth(const struct ckpt_filters *f, uint32_t number)
{
	size_t depth = 0;

	while (number) {
		const struct node *n = node_of(f, number);

		if (!n || depth == MAX_DEPTH)
			return 0;
		depth++;
		number = n->parent;
	}
	return depth;
}

/* ---- the guarded form --------------------------------------------------------------------- */

#define LOAD(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field))
#define LOAD_HIGH(field) \
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offsetof(struct seccomp_data, field) + 4)
#define IF(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)
#define RETURN(value)	   BPF_STMT(BPF_RET | BPF_K, value)

#define DOOR_LOW  ((uint32_t)PODRUN_DOOR)
#define DOOR_HIGH ((uint32_t)(PODRUN_DOOR >> 32))
#define SPARE	  (BPF_MEMWORDS - 1) /* nobody reads it behind a return */

static void put_all(struct buf *b, const struct sock_filter *code, size_t n)
{
	buf_put(b, code, n * sizeof(*code));
}

/* A program begins with 0 in A: so the front ends. */
static void put_front(struct buf *b, uint32_t number)
{
	const struct sock_filter front[] = {
		LOAD(nr),
		IF(SYS_PODRUN_FILTER, 0, 8),
		LOAD_HIGH(instruction_pointer),
		IF(DOOR_HIGH, 0, 10),
		LOAD(instruction_pointer),
		IF(DOOR_LOW, 0, 8),
		LOAD(args[0]),
		IF(0, 0, 1),
		RETURN(SECCOMP_RET_ERRNO | (number & ((1u << NUMBER_BITS) - 1))),
		RETURN(SECCOMP_RET_ERRNO | (number >> NUMBER_BITS)),
		IF(SYS_restart_syscall, 0, 3),
		LOAD(arch),
		IF(AUDIT_ARCH_X86_64, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0),
	};

	put_all(b, front, ARRAY_SIZE(front));
}

static bool is_return(const struct sock_filter *i)
{
	return BPF_CLASS(i->code) == BPF_RET;
}

/* Does it return what lets the call happen? */
static bool allows(const struct sock_filter *i)
{
	uint32_t action = i->k & SECCOMP_RET_ACTION_FULL;

	return i->code == (BPF_RET | BPF_K) &&
	       (action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG);
}

static bool traces(const struct sock_filter *i)
{
	return i->code == (BPF_RET | BPF_K) &&
	       (i->k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_TRACE;
}

static const struct sock_filter no_tracer = RETURN(SECCOMP_RET_ERRNO | ENOSYS);

/* What it returns in A, where nobody can be a tracer. */
static void put_untraced(struct buf *b)
{
	const struct sock_filter test[] = {
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SECCOMP_RET_ACTION_FULL),
		IF(SECCOMP_RET_TRACE, 0, 1),
		no_tracer,
		BPF_STMT(BPF_LD | BPF_MEM, SPARE),
	};

	put_all(b, test, ARRAY_SIZE(test));
}

/* The end that takes the place of @ret. */
static void put_tail(struct buf *b, const struct sock_filter *ret, bool untraced)
{
	const struct sock_filter save = BPF_STMT(BPF_ST, SPARE),
				 load = BPF_STMT(BPF_LD | BPF_MEM, SPARE);
	const struct sock_filter test[] = {
		LOAD_HIGH(instruction_pointer),
		IF(DOOR_HIGH, 0, 3),
		LOAD(instruction_pointer),
		IF(DOOR_LOW, 0, 1),
		RETURN(SECCOMP_RET_ALLOW),
	};
	bool computed = BPF_RVAL(ret->code) == BPF_A;

	if (computed)
		put_all(b, &save, 1);
	put_all(b, test, ARRAY_SIZE(test));
	if (computed)
		put_all(b, &load, 1);
	if (computed && untraced)
		put_untraced(b);
	put_all(b, ret, 1);
}

/* Jumps within the program and a return at its end: what could else go astray in a longer one. */
static bool well_formed(const struct sock_filter *code, size_t n)
{
	if (!n || n > BPF_MAXINSNS || !is_return(&code[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++) {
		size_t left = n - i - 1; /* instructions behind this one */

		if (BPF_CLASS(code[i].code) != BPF_JMP)
			continue;
		if (code[i].code == (BPF_JMP | BPF_JA) ? code[i].k >= left
						       : code[i].jt >= left || code[i].jf >= left)
			return false;
	}
	return true;
}

/* Ends of a program so far, one for each different return. */
struct tails {
	bool untraced;
	struct buf code;
	struct {
		struct sock_filter insn;
		uint32_t at;
	} known[BPF_MAXINSNS / 6 + 1]; /* more have no room */
	size_t n;
};

/* Where in the tails that of @insn is; -E2BIG. */
static int tail_of(struct tails *t, const struct sock_filter *insn)
{
	size_t at = t->code.len / sizeof(*insn);

	for (size_t i = 0; i < t->n; i++)
		if (t->known[i].insn.code == insn->code && t->known[i].insn.k == insn->k)
			return (int)t->known[i].at;
	if (t->n == ARRAY_SIZE(t->known))
		return -E2BIG;
	t->known[t->n].insn = *insn;
	t->known[t->n++].at = (uint32_t)at;
	put_tail(&t->code, insn, t->untraced);
	return (int)at;
}

static int put_body(struct buf *b, const struct sock_filter *code, size_t n, struct tails *t)
{
	for (size_t i = 0; i < n; i++) {
		struct sock_filter insn = code[i];

		if (is_return(&insn) && !allows(&insn)) {
			int at = tail_of(t, t->untraced && traces(&insn) ? &no_tracer : &insn);

			if (at < 0)
				return at;
			insn = (struct sock_filter)BPF_STMT(
				BPF_JMP | BPF_JA, (uint32_t)(n - i - 1) + (uint32_t)at);
		}
		put_all(b, &insn, 1);
	}
	return 0;
}

int ckpt_filter_guard(
	const struct sock_filter *code, size_t n, uint32_t number, bool untraced, struct buf *ret)
{
	struct tails *t;
	int r;

	if (!well_formed(code, n))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->untraced = untraced;
	put_front(ret, number);
	r = put_body(ret, code, n, t);
	buf_put(ret, t->code.data, t->code.len);
	ret->failed |= t->code.failed;
	buf_fini(&t->code);
	free(t);
	if (r == 0)
		r = buf_error(ret);
	return r == 0 && ret->len / sizeof(*code) > BPF_MAXINSNS ? -E2BIG : r;
}

int ckpt_filters_try(const struct sock_filter *code, size_t n)
{
	_cleanup_buf_ struct buf b = BUF_INIT;

	return ckpt_filter_guard(code, n, 1, true, &b); /* no form is longer */
}

/* kernel/seccomp.c, mode1_syscalls and mode1_syscalls_32. */
const struct sock_filter *ckpt_filters_strict(size_t *ret_n)
{
	static const struct sock_filter code[] = {
		LOAD(arch),
		IF(AUDIT_ARCH_X86_64, 0, 5),
		LOAD(nr),
		IF(0 /* read */, 9, 0),
		IF(1 /* write */, 8, 0),
		IF(60 /* exit */, 7, 0),
		IF(15 /* rt_sigreturn */, 6, 5),
		LOAD(nr),
		IF(3 /* read */, 4, 0),
		IF(4 /* write */, 3, 0),
		IF(1 /* exit */, 2, 0),
		IF(119 /* sigreturn */, 1, 0),
		RETURN(SECCOMP_RET_KILL_THREAD),
		RETURN(SECCOMP_RET_ALLOW),
	};

	*ret_n = ARRAY_SIZE(code);
	return code;
}
