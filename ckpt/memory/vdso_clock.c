// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vdso_clock - a vDSO that carries on the clocks of a session.
 *
 * Theory of operation
 *
 * Where no time namespace does it, monotonic and boot time of a session that has moved are the
 * host's and something (struct ckpt_clocks).  Programs ask the vDSO, without any call that could be
 * seen, so the vDSO has to add it: a few instructions (vdso_clock_x86_64.S) lie in the room behind
 * the end of its file, call its own clock_gettime and add; and the symbol leads to them.  Its own
 * code stays as it is, whatever it looks like.
 *
 *      .dynsym clock_gettime --.    .--> clock_gettime
 *                              |    |
 *                              '--> ours, offsets | room that boot.c needs
 *
 * That does for programs that have not begun yet.  One that has been rebuilt knows addresses in the
 * vDSO which it began with: there is code then that jumps to this one, by the same symbols
 * (vdso.c).
 *
 * Where there is no room the symbol is gone, and programs ask the kernel, slower; so it is with
 * those of 32-bit programs.
 *
 * What an image has as its vDSO may have been made so, on some host or other.  By what it was made
 * of it is known again (ckpt_vdso_likens).
 */
#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/vdso_elf.h"
#include "ckpt/remote/remote.h"

#define FUNCTION "clock_gettime"
#define ALIGN	 64

extern const uint8_t vdso_clock_begin[], vdso_clock_call[], vdso_clock_offsets[], vdso_clock_end[];

struct offset {
	int64_t sec, nsec;
};

static size_t size(void)
{
	return (size_t)(vdso_clock_end - vdso_clock_begin);
}

static size_t offsets_at(void)
{
	return (size_t)(vdso_clock_offsets - vdso_clock_begin);
}

/* Where ours is, or could be; 0: there is no room. */
static uint64_t place(const struct vdso_elf *f)
{
	uint64_t at = ALIGN_UP(f->end, ALIGN);

	return at + size() + REMOTE_BOOT_SIZE <= f->len ? at : 0;
}

static bool is_empty(const struct vdso_elf *f, uint64_t at)
{
	for (size_t i = 0; i < size(); i++)
		if (f->data[at + i])
			return false;
	return true;
}

static struct offset offset_of(int64_t ns)
{
	struct offset o = {ns / 1000000000, ns % 1000000000};

	if (o.nsec < 0) {
		o.nsec += 1000000000;
		o.sec--;
	}
	return o;
}

static void put_offsets(uint8_t *code, const struct ckpt_clocks *c)
{
	struct offset both[] = {offset_of(c->monotonic_ns), offset_of(c->boottime_ns)};

	memcpy(code + offsets_at(), both, sizeof(both));
}

static void put(uint8_t *code, int64_t to_original, const struct ckpt_clocks *c)
{
	size_t call = (size_t)(vdso_clock_call - vdso_clock_begin);
	int32_t distance = (int32_t)(to_original - (int64_t)call - (int64_t)sizeof(distance));

	memcpy(code, vdso_clock_begin, size());
	memcpy(code + call, &distance, sizeof(distance));
	put_offsets(code, c);
}

/* Symbol @i becomes that of a function at offset @to, or is none (0). */
static void lead(uint8_t *vdso, const struct vdso_elf *f, size_t i, uint64_t to)
{
	uint64_t at = f->symtab + i * sizeof(Elf64_Sym);
	Elf64_Sym sym;

	memcpy(&sym, vdso + at, sizeof(sym));
	sym.st_value = to ? to + f->bias : 0;
	if (!to)
		sym.st_shndx = SHN_UNDEF;
	memcpy(vdso + at, &sym, sizeof(sym));
}

static int leave_to_kernel(uint8_t *vdso, const struct vdso_elf *f)
{
	uint64_t offset;
	const char *name;

	for (size_t i = 0; vdso_elf_symbol(f, i, &name, &offset); i++) {
		uint8_t *sym = vdso + f->symtab + i * sizeof(Elf32_Sym);

		if (!offset || strncmp(name, FUNCTION, strlen(FUNCTION)) != 0)
			continue;
		/* The one does for us, the other for C libraries. */
		memset(sym + offsetof(Elf32_Sym, st_shndx), SHN_UNDEF, sizeof(Elf32_Half));
		memset(sym + offsetof(Elf32_Sym, st_value), 0, sizeof(Elf32_Addr));
	}
	return 0;
}

int ckpt_vdso_continue(uint8_t *vdso, size_t len, const struct ckpt_clocks *c)
{
	uint64_t original, at, offset;
	struct vdso_elf f;
	const char *name;

	if (!vdso_elf_open(&f, vdso, len))
		return -ENOSYS;
	if (f.i386)
		return leave_to_kernel(vdso, &f);
	original = vdso_elf_find(&f, FUNCTION);
	if (!original)
		return 0;
	at = place(&f);
	if (at && !is_empty(&f, at))
		at = 0;
	if (at)
		put(vdso + at, (int64_t)original - (int64_t)at, c);
	for (size_t i = 0; vdso_elf_symbol(&f, i, &name, &offset); i++)
		if (offset && !strcmp(name, FUNCTION))
			lead(vdso, &f, i, offset == original ? at : 0);
	return 0;
}

void ckpt_vdso_stop(uint8_t *vdso, size_t len)
{
	size_t before = (size_t)(vdso_clock_call - vdso_clock_begin), behind = before + 4;
	struct vdso_elf f;
	uint64_t at = vdso_elf_open(&f, vdso, len) ? place(&f) : 0;

	if (at && !memcmp(vdso + at, vdso_clock_begin, before) &&
		!memcmp(vdso + at + behind, vdso_clock_begin + behind, offsets_at() - behind))
		put_offsets(vdso + at, &(struct ckpt_clocks){0});
}

bool ckpt_vdso_likens(const uint8_t *image, const uint8_t *host, size_t len)
{
	const struct ckpt_clocks still = {0};
	_cleanup_free_ uint8_t *a = malloc(len ? len : 1), *b = malloc(len ? len : 1);

	if (!a || !b)
		return false;
	memcpy(a, image, len);
	memcpy(b, host, len);
	ckpt_vdso_stop(a, len);
	return ckpt_vdso_continue(b, len, &still) == 0 && !memcmp(a, b, len);
}
