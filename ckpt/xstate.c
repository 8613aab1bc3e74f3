// SPDX-License-Identifier: GPL-2.0-or-later
/* The theory of operation is in xstate.h. */
#include "ckpt/xstate.h"

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "base/base.h"
#include "proto/tasks.pb-c.h"

#define LEGACY	    512
#define HEADER	    64
#define AT_BV	    512 /* which components are in use */
#define AT_MXCSR    24
#define AT_MASK	    28	/* of the bits mxcsr has */
#define AT_SOFTWARE 464 /* the kernel's own words of the legacy area */
#define FIRST	    2	/* the first extended component */
#define CPUID_XSAVE 0xd

static struct ckpt_xstate_place places[XSTATE_COMPONENTS];

static void ask_places(void)
{
	uint32_t a, b, c, d, low = 0, high = 0;

	if (__get_cpuid_count(CPUID_XSAVE, 0, &a, &b, &c, &d)) {
		low = a;
		high = d;
	}
	for (unsigned i = FIRST; i < XSTATE_COMPONENTS; i++) {
		if (!((i < 32 ? low >> i : high >> (i - 32)) & 1))
			continue;
		__cpuid_count(CPUID_XSAVE, i, a, b, c, d);
		if (a && b && a <= XSTATE_MAX && b <= XSTATE_MAX - a)
			places[i] = (struct ckpt_xstate_place){a, b};
	}
}

const struct ckpt_xstate_place *ckpt_xstate_places(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, ask_places);
	return places;
}

/* Where this CPU has component @i in a block; false if nowhere. */
static bool place(unsigned i, uint32_t *ret_offset, uint32_t *ret_size)
{
	const struct ckpt_xstate_place *p = &ckpt_xstate_places()[i];

	*ret_offset = p->offset;
	*ret_size = p->size;
	return p->size > 0;
}

/* A CPU without XSAVE has the legacy area only: *ret_len is LEGACY then. */
static int get(pid_t tid, uint8_t *block, size_t *ret_len, struct err *e)
{
	struct iovec iov = {block, XSTATE_MAX};
	int r = (int)ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &iov);

	if (r == 0 && iov.iov_len >= LEGACY + HEADER) {
		*ret_len = iov.iov_len;
		return 0;
	}
	iov = (struct iovec){block, LEGACY};
	if ((r < 0 && errno != ENODEV) || ptrace(PTRACE_GETREGSET, tid, NT_PRFPREG, &iov) < 0)
		return err_errno(e, -errno, "extended registers of task %d", tid);
	*ret_len = LEGACY;
	return 0;
}

static int put(pid_t tid, uint8_t *block, size_t len, struct err *e)
{
	struct iovec iov = {block, len};

	if (ptrace(PTRACE_SETREGSET, tid, len == LEGACY ? NT_PRFPREG : NT_X86_XSTATE, &iov) < 0)
		return err_errno(e, -errno, "extended registers of task %d", tid);
	return 0;
}

struct parts {
	uint8_t block[XSTATE_MAX];
	Pb__XstateComponent comp[XSTATE_COMPONENTS];
	Pb__XstateComponent *list[XSTATE_COMPONENTS];
};

int ckpt_xstate_dump(pid_t tid, Pb__Thread *m, void **ret_mem, struct err *e)
{
	_cleanup_free_ struct parts *p = calloc(1, sizeof(*p));
	size_t len;
	int r;

	if (!p)
		return err_errno(e, -ENOMEM, "extended registers");
	r = get(tid, p->block, &len, e);
	if (r < 0)
		return r;
	m->fxsave = (ProtobufCBinaryData){LEGACY, p->block};
	m->xstate_bv = len == LEGACY ? 3 : bytes_u64(p->block + AT_BV);
	for (unsigned i = FIRST; i < XSTATE_COMPONENTS; i++) {
		Pb__XstateComponent *c = &p->comp[m->n_xstate];
		uint32_t offset, size;

		if (!(m->xstate_bv & (1ULL << i)))
			continue;
		if (!place(i, &offset, &size) || offset + size > len)
			return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP,
				"register component %u is unknown", i);
		pb__xstate_component__init(c);
		c->number = i;
		c->data = (ProtobufCBinaryData){size, p->block + offset};
		p->list[m->n_xstate++] = c;
	}
	m->xstate = p->list;
	*ret_mem = take_ptr(p);
	return 0;
}

#define BNDCSR	   4
#define BNDCSR_LEN 16 /* two registers; what follows is reserved (Intel SDM, volume 1, 13.5.5) */
#define PKRU	  9
#define PKRU_INIT 0x55555554 /* what Linux gives every task (arch/x86/mm/pkeys.c) */

/*
 * The reserved part of BNDCSR may hold anything: XSAVE leaves it alone, and so what the stack held
 * comes back from the frame of a signal; a 32-bit program's is copied whole into the kernel's
 * block.
 */
bool ckpt_xstate_is_initial(unsigned number, const uint8_t *data, size_t len)
{
	uint32_t pkru;

	if (number == BNDCSR)
		len = MIN(len, (size_t)BNDCSR_LEN);
	if (number == PKRU && len >= sizeof(pkru)) {
		memcpy(&pkru, data, sizeof(pkru));
		return pkru == 0 || pkru == PKRU_INIT;
	}
	return bytes_are_zero(data, len);
}

/* Intel SDM, volume 1, 13.1. */
static const char *const names[XSTATE_COMPONENTS] = {
	[2] = ", AVX",
	[3] = ", MPX",
	[BNDCSR] = ", MPX",
	[5] = ", AVX-512",
	[6] = ", AVX-512",
	[7] = ", AVX-512",
	[PKRU] = ", protection keys",
	[17] = ", AMX",
	[18] = ", AMX",
	[19] = ", APX",
};

const char *ckpt_xstate_name(unsigned number)
{
	return number < XSTATE_COMPONENTS && names[number] ? names[number] : "";
}

/* 1: there is nothing to load. */
static int fill(uint8_t *block, size_t len, const Pb__XstateComponent *c, struct err *e)
{
	uint32_t offset, size;

	if (c->number < FIRST || c->number >= XSTATE_COMPONENTS)
		return err_set(e, ERR_IMAGE, -EINVAL, "register component %u", c->number);
	if (!place(c->number, &offset, &size) || offset + size > len || c->data.len > size) {
		if (ckpt_xstate_is_initial(c->number, c->data.data, c->data.len))
			return 1;
		return err_set(e, ERR_HOST, -EOPNOTSUPP,
			"this CPU lacks registers which the session uses (component %u%s)", c->number,
			ckpt_xstate_name(c->number));
	}
	memcpy(block + offset, c->data.data, c->data.len);
	return 0;
}

/*
 * A component that is not loaded is zero, with which PKRU allows all; but a thread from where there
 * are no protection keys knows nothing of them.
 */
static uint64_t put_initial_pkru(uint8_t *block, size_t len, uint64_t xcr0)
{
	const uint32_t pkru = PKRU_INIT;
	uint32_t offset, size;

	if ((xcr0 & 1ULL << PKRU) || !place(PKRU, &offset, &size) || size < sizeof(pkru) ||
		offset + size > len)
		return 0;
	memcpy(block + offset, &pkru, sizeof(pkru));
	return 1ULL << PKRU;
}

int ckpt_xstate_restore(pid_t tid, const Pb__Thread *m, uint64_t xcr0, struct err *e)
{
	_cleanup_free_ uint8_t *block = calloc(1, XSTATE_MAX);
	uint64_t bv = m->xstate_bv & 3;
	uint32_t mxcsr, mask;
	size_t len;
	int r;

	if (!block)
		return err_errno(e, -ENOMEM, "extended registers");
	if (m->fxsave.len != LEGACY)
		return err_set(e, ERR_IMAGE, -EINVAL, "extended registers");
	r = get(tid, block, &len, e);
	if (r < 0)
		return r;
	memcpy(&mask, block + AT_MASK, sizeof(mask));
	memcpy(block, m->fxsave.data, AT_SOFTWARE);
	memcpy(&mxcsr, block + AT_MXCSR, sizeof(mxcsr));
	mxcsr &= mask ? mask : 0xffbf;
	memcpy(block + AT_MXCSR, &mxcsr, sizeof(mxcsr));
	memcpy(block + AT_MASK, &mask, sizeof(mask));
	memset(block + AT_BV, 0, HEADER);
	bv |= put_initial_pkru(block, len, xcr0);
	for (size_t i = 0; r >= 0 && i < m->n_xstate; i++) {
		r = fill(block, len, m->xstate[i], e);
		if (r == 0)
			bv |= 1ULL << m->xstate[i]->number;
	}
	if (r < 0)
		return r;
	memcpy(block + AT_BV, &bv, sizeof(bv));
	return put(tid, block, len, e);
}
