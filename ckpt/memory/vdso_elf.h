/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vdso_elf - the symbols of a vDSO.  Private to ckpt.
 *
 * Of 64-bit and of 32-bit programs.  It may come from an image: everything read from it is bounded.
 */
#ifndef CKPT_MEMORY_VDSO_ELF_H
#define CKPT_MEMORY_VDSO_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vdso_elf {
	const uint8_t *data; /* borrowed */
	size_t len;
	bool i386;     /* of 32-bit programs */
	uint64_t bias; /* what must be subtracted from an address to get an offset */
	uint64_t symtab, strtab, strsz;
	uint64_t end; /* behind all that belongs to the file; at most len */
};

/* False: it is none that we understand. */
bool vdso_elf_open(struct vdso_elf *ret, const uint8_t *data, size_t len);
/*
 * Symbol @i: its name without "__vdso_", and its offset (0: no function).  False at the end: the
 * table of symbols has no length of its own, the strings behind it end it.
 */
bool vdso_elf_symbol(
	const struct vdso_elf *f, size_t i, const char **ret_name, uint64_t *ret_offset);
/* Of function @name, 0 if there is none. */
uint64_t vdso_elf_find(const struct vdso_elf *f, const char *name);

#endif
