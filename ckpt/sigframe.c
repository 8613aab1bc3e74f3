// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Theory of operation
 *
 *      lower   F  return address: the restorer, which calls rt_sigreturn
 *        |        struct ucontext: the general registers, and a pointer to P
 *        |        siginfo
 *        |     P  legacy area, 512 bytes; from 464 on MAGIC1, sizes and components
 *        |        header, 64 bytes; first which components are in use
 *        |        extended components, each where the CPU has it
 *      higher     MAGIC2, 4 bytes
 *
 * (arch/x86/kernel/signal.c and fpu/signal.c of Linux; asm/sigcontext.h.)  32-bit programs have
 * 112 bytes of another kind before P, to which their pointer leads, and below it other things in
 * other places.
 *
 * Nobody lists frames, so stacks are searched from where the task stands.  What is taken for one
 * has both magic numbers as far apart as it says itself, components that there were, nothing where
 * nothing may be, and the pointer to P where the kernel has put it.  A frame whose handler has
 * returned may still be there as it was, in room that somebody else has reserved since and has not
 * written to, so does not know what it holds.  It is laid out anew as well.
 *
 * A frame whose task stands on another stack than it interrupted leads there, for that may have
 * been a handler too.
 *
 * The new layout has no more bytes than the old, for behind it the interrupted stack begins.  What
 * has no place there, or on this CPU, and is what a new task has is left to the kernel, which puts
 * just that.
 */
#include "ckpt/sigframe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/base.h"

#define HEADER	 512
#define EXTENDED 576 /* components begin here */
#define ALIGN	 64

#define MAGIC1	    0x46505853u
#define MAGIC2	    0x46505845u
#define AT_MAGIC1   464
#define AT_EXTENDED 468 /* bytes with MAGIC2, and what 32-bit programs have before P */
#define AT_FEATURES 472
#define AT_SIZE	    480 /* bytes without MAGIC2 */
#define LEGACY_BITS 3ULL

#define I386_BEFORE 112
/* Of a 64-bit frame. */
#define FRAME	   440
#define AT_SP	   168
#define AT_POINTER 232
#define I386_FRAME 1024 /* more than a 32-bit frame has below that pointer's target */
#define I386_SP	   48	/* from the interrupted stack pointer to that pointer */

#define TILE_DATA 18 /* programs ask for it, and only then it is in their frames */

#define CHUNK	  (256u << 10)
#define SEARCHED  (8u << 20) /* bytes of a stack, from where the task stands */
#define STACKS	  16
#define FRAME_MAX (XSTATE_MAX + 4)

struct done {
	uint64_t memory, at;
};

struct ckpt_sigframes {
	struct ckpt_xstate_place old[XSTATE_COMPONENTS], now[XSTATE_COMPONENTS];
	uint64_t known;	 /* components of @old, as bits */
	uint32_t longest; /* bytes that the kernel takes */
	size_t n, room;
	struct done done[];
};

static uint32_t bytes_of(const struct ckpt_xstate_place *all)
{
	uint32_t end = EXTENDED;

	for (unsigned i = 2; i < XSTATE_COMPONENTS; i++)
		if (i != TILE_DATA && all[i].size)
			end = MAX(end, all[i].offset + all[i].size);
	return end;
}

static bool same(const struct ckpt_xstate_place *a, const struct ckpt_xstate_place *b)
{
	return a->size == b->size && a->offset == b->offset;
}

static bool is_sane(const struct ckpt_xstate_place *p)
{
	return !p->size || (p->offset >= EXTENDED && p->offset <= XSTATE_MAX &&
				   p->size <= XSTATE_MAX - p->offset);
}

int ckpt_sigframes_new(const struct ckpt_xstate_place *old, const struct ckpt_xstate_place *now,
	struct ckpt_sigframes **ret, struct err *e)
{
	struct ckpt_sigframes *s;
	uint64_t known = LEGACY_BITS;
	bool good = true;

	*ret = NULL;
	for (unsigned i = 2; i < XSTATE_COMPONENTS; i++) {
		if (!is_sane(&old[i]))
			return err_set(e, ERR_IMAGE, -EINVAL, "register component %u", i);
		if (!old[i].size)
			continue;
		known |= 1ULL << i;
		good = good && same(&old[i], &now[i]);
	}
	if (good)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_errno(e, -ENOMEM, "signal frames");
	memcpy(s->old, old, sizeof(s->old));
	memcpy(s->now, now, sizeof(s->now));
	s->known = known;
	s->longest = bytes_of(now);
	*ret = s;
	return 0;
}

/* ---- memory of the task --------------------------------------------------------------------- */

static size_t read_some(pid_t tid, uint64_t at, void *to, size_t len)
{
	struct iovec local = {to, len}, there = {(void *)at, len}; /* NOLINT: the task's address */
	ssize_t n = process_vm_readv(tid, &local, 1, &there, 1, 0);

	return n < 0 ? 0 : (size_t)n;
}

static bool read_all(pid_t tid, uint64_t at, void *to, size_t len)
{
	return read_some(tid, at, to, len) == len;
}

/* What differs of [@from, @to). */
static int write_changes(pid_t tid, uint64_t at, const uint8_t *from, uint8_t *to, size_t len,
	struct err *e)
{
	for (size_t i = 0, n; i < len; i += n) {
		struct iovec local, there;

		for (n = 0; i + n < len && from[i + n] != to[i + n]; n++)
			;
		if (!n) {
			n = 1;
			continue;
		}
		local = (struct iovec){to + i, n};
		there = (struct iovec){(void *)(at + i), n}; /* NOLINT */
		if (process_vm_writev(tid, &local, 1, &there, 1, 0) != (ssize_t)n)
			return err_errno(e, errno ? -errno : -EFAULT, "signal frame of task %d", tid);
	}
	return 0;
}

/* ---- is it one? ----------------------------------------------------------------------------- */

struct frame {
	uint64_t at;		   /* P */
	uint64_t interrupted;	   /* stack pointer */
	uint32_t size;
	uint8_t block[FRAME_MAX];
};

static bool points_there(pid_t tid, uint64_t sp, struct frame *f)
{
	uint64_t frame = ((f->at - FRAME) & ~15ULL) - 8;
	uint8_t head[AT_POINTER + 8];

	/* The handler may have returned already, to the restorer. */
	if (frame + 8 < sp || !read_all(tid, frame, head, sizeof(head)) ||
		bytes_u64(head + AT_POINTER) != f->at)
		return false;
	f->interrupted = bytes_u64(head + AT_SP);
	return true;
}

static bool points_there_i386(pid_t tid, uint64_t sp, struct frame *f)
{
	uint64_t to = f->at - I386_BEFORE, from = MAX(sp, to - I386_FRAME) & ~3ULL;
	uint8_t below[I386_FRAME + 4];

	if (to > UINT32_MAX || from >= to || !read_all(tid, from, below, to - from))
		return false;
	for (uint64_t i = I386_SP; i + 4 <= to - from; i += 4) {
		if (bytes_u32(below + i) != (uint32_t)to)
			continue;
		f->interrupted = bytes_u32(below + i - I386_SP);
		return true;
	}
	return false;
}

static bool is_frame(const struct ckpt_sigframes *s, pid_t tid, uint64_t sp, struct frame *f)
{
	uint8_t *b = f->block;
	uint64_t features, in_use;
	uint32_t whole;

	if (!read_all(tid, f->at, b, EXTENDED) || bytes_u32(b + AT_MAGIC1) != MAGIC1)
		return false;
	f->size = bytes_u32(b + AT_SIZE);
	whole = bytes_u32(b + AT_EXTENDED);
	features = bytes_u64(b + AT_FEATURES);
	in_use = bytes_u64(b + HEADER);
	if (f->size < EXTENDED || f->size > XSTATE_MAX || (features & LEGACY_BITS) != LEGACY_BITS ||
		(features & ~s->known) || (in_use & ~features) ||
		!bytes_are_zero(b + HEADER + 8, EXTENDED - HEADER - 8))
		return false;
	if (!read_all(tid, f->at, b, f->size + 4) || bytes_u32(b + f->size) != MAGIC2)
		return false;
	if (whole == f->size + 4)
		return points_there(tid, sp, f);
	return whole == f->size + 4 + I386_BEFORE && points_there_i386(tid, sp, f);
}

/* ---- a new layout --------------------------------------------------------------------------- */

/* 1: it is in @to, 0: it is to be left out. */
static int place_one(const struct ckpt_sigframes *s, const struct frame *f, unsigned i, uint8_t *to,
	uint32_t size, struct err *e)
{
	const struct ckpt_xstate_place *old = &s->old[i], *now = &s->now[i];
	const uint8_t *data = f->block + old->offset;

	if (now->size >= old->size && now->offset + now->size <= size) {
		memcpy(to + now->offset, data, old->size);
		return 1;
	}
	if (ckpt_xstate_is_initial(i, data, old->size))
		return 0;
	return err_set(e, ERR_HOST, -EOPNOTSUPP,
		"a signal handler has interrupted what uses registers that this CPU lacks "
		"(component %u%s)",
		i, ckpt_xstate_name(i));
}

/* 1: nothing is to be changed. */
static int lay_out(const struct ckpt_sigframes *s, const struct frame *f, uint8_t *to,
	struct err *e)
{
	uint64_t features = bytes_u64(f->block + AT_FEATURES), in_use = bytes_u64(f->block + HEADER);
	uint32_t size = MIN(f->size, s->longest), whole = bytes_u32(f->block + AT_EXTENDED);

	for (unsigned i = 2; i < XSTATE_COMPONENTS; i++) {
		uint64_t bit = 1ULL << i;
		int r = 0;

		if (!(features & bit))
			continue;
		if ((in_use & bit) && s->old[i].offset + s->old[i].size <= f->size)
			r = place_one(s, f, i, to, size, e);
		if (r < 0)
			return r;
		if (r == 0)
			in_use &= ~bit;
		if (!s->now[i].size || s->now[i].offset + s->now[i].size > size)
			features &= ~bit;
	}
	/* Too many bytes for this kernel, which takes none of the extended ones then. */
	if (size < f->size && !(in_use & ~LEGACY_BITS))
		return 1;
	whole -= f->size - size;
	memcpy(to + AT_EXTENDED, &whole, sizeof(whole));
	memcpy(to + AT_FEATURES, &features, sizeof(features));
	memcpy(to + AT_SIZE, &size, sizeof(size));
	memcpy(to + HEADER, &in_use, sizeof(in_use));
	memcpy(to + size, &(uint32_t){MAGIC2}, 4);
	return 0;
}

static int note_done(struct ckpt_sigframes **all, uint64_t memory, uint64_t at, struct err *e)
{
	struct ckpt_sigframes *s = *all;

	if (s->n == s->room) {
		size_t room = s->room ? 2 * s->room : 16;

		s = realloc(s, sizeof(*s) + room * sizeof(*s->done));
		if (!s)
			return err_errno(e, -ENOMEM, "signal frames");
		s->room = room;
		*all = s;
	}
	s->done[s->n++] = (struct done){memory, at};
	return 0;
}

static bool is_done(const struct ckpt_sigframes *s, uint64_t memory, uint64_t at)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->done[i].memory == memory && s->done[i].at == at)
			return true;
	return false;
}

static int mend(struct ckpt_sigframes **all, pid_t tid, uint64_t memory, const struct frame *f,
	struct err *e)
{
	uint8_t to[FRAME_MAX];
	int r;

	memcpy(to, f->block, f->size + 4);
	r = lay_out(*all, f, to, e);
	if (r == 0)
		r = write_changes(tid, f->at, f->block, to, f->size + 4, e);
	return r < 0 ? r : note_done(all, memory, f->at, e);
}

/* ---- the search ------------------------------------------------------------------------------ */

struct search {
	struct ckpt_sigframes **all;
	pid_t tid;
	uint64_t memory;
	uint64_t from;	/* where looking began on this stack */
	uint64_t ahead; /* the farthest that may still be met on it */
	uint64_t next;	/* another stack, 0: none known */
	struct frame frame;
	uint8_t chunk[CHUNK];
};

static int look_at(struct search *s, uint64_t at, uint64_t sp, struct err *e)
{
	struct frame *f = &s->frame;
	int r = 0;

	f->at = at;
	if (!is_frame(*s->all, s->tid, sp, f))
		return 0;
	if (!is_done(*s->all, s->memory, at))
		r = mend(s->all, s->tid, s->memory, f, e);
	if (f->interrupted < s->from || f->interrupted - s->from > SEARCHED)
		s->next = f->interrupted;
	else
		s->ahead = MAX(s->ahead, f->interrupted);
	return r;
}

static int search_stack(struct search *s, uint64_t sp, struct err *e)
{
	const uint64_t begin = sp & ~(uint64_t)(ALIGN - 1);

	s->from = begin;
	s->ahead = s->next = 0;
	for (uint64_t at = begin; at - begin < SEARCHED && at < UINT64_MAX - CHUNK; at += CHUNK) {
		size_t n = read_some(s->tid, at, s->chunk, CHUNK);

		for (size_t i = 0; i + AT_MAGIC1 % ALIGN + 4 <= n; i += ALIGN) {
			uint64_t p = at + i - AT_MAGIC1 / ALIGN * ALIGN;

			if (bytes_u32(s->chunk + i + AT_MAGIC1 % ALIGN) == MAGIC1 &&
				look_at(s, p, sp, e) < 0)
				return e->error;
		}
		if (n == CHUNK)
			continue;
		/* What is behind a gap, as a guard page is, is another stack, however near. */
		if (!s->next && s->ahead >= at + n)
			s->next = s->ahead;
		break;
	}
	return 0;
}

int ckpt_sigframes_mend(
	struct ckpt_sigframes **all, pid_t tid, uint64_t memory, uint64_t sp, struct err *e)
{
	_cleanup_free_ struct search *s = malloc(sizeof(*s));

	if (!s)
		return err_errno(e, -ENOMEM, "signal frames");
	s->all = all;
	s->tid = tid;
	s->memory = memory;
	for (int i = 0; i < STACKS && sp; i++) {
		if (search_stack(s, sp, e) < 0)
			return e->error;
		sp = s->next;
	}
	return 0;
}
