// SPDX-License-Identifier: GPL-2.0-or-later
#include "ckpt/memory/vdso_elf.h"

#include <elf.h>
#include <string.h>

#include "base/base.h"

#define MAX_SYMBOLS 64
#define MAX_PHDRS   16

static bool within(const struct vdso_elf *f, uint64_t offset, uint64_t size)
{
	return offset <= f->len && size <= f->len - offset;
}

static bool open_dynamic(struct vdso_elf *f, uint64_t offset, uint64_t size)
{
	for (uint64_t at = offset; at + sizeof(Elf64_Dyn) <= offset + size;
		at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn dyn;

		if (!within(f, at, sizeof(dyn)))
			return false;
		memcpy(&dyn, f->data + at, sizeof(dyn));
		if (dyn.d_tag == DT_SYMTAB)
			f->symtab = dyn.d_un.d_ptr - f->bias;
		else if (dyn.d_tag == DT_STRTAB)
			f->strtab = dyn.d_un.d_ptr - f->bias;
		else if (dyn.d_tag == DT_STRSZ)
			f->strsz = dyn.d_un.d_val;
		else if (dyn.d_tag == DT_NULL)
			break;
	}
	return f->symtab && f->strtab && f->strsz && within(f, f->strtab, f->strsz) &&
	       f->data[f->strtab + f->strsz - 1] == '\0';
}

/* Behind its segments and the table of sections; ~0 if they make no sense. */
static uint64_t find_end(const struct vdso_elf *f, const Elf64_Ehdr *eh)
{
	uint64_t sections = (uint64_t)eh->e_shnum * eh->e_shentsize, end;

	if (!within(f, eh->e_shoff, sections))
		return ~0ULL;
	end = eh->e_shoff + sections;
	for (size_t i = 0; i < eh->e_phnum; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, f->data + eh->e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD && !within(f, ph.p_offset, ph.p_memsz))
			return ~0ULL;
		if (ph.p_type == PT_LOAD)
			end = MAX(end, ph.p_offset + ph.p_memsz);
	}
	return end;
}

bool vdso_elf_open(struct vdso_elf *ret, const uint8_t *data, size_t len)
{
	struct vdso_elf f = {.data = data, .len = len};
	uint64_t dynamic = 0, dynamic_size = 0;
	Elf64_Ehdr eh;

	if (len < sizeof(eh) || memcmp(data, ELFMAG, SELFMAG) || data[EI_CLASS] != ELFCLASS64)
		return false;
	memcpy(&eh, data, sizeof(eh));
	if (eh.e_phnum > MAX_PHDRS || !within(&f, eh.e_phoff, eh.e_phnum * sizeof(Elf64_Phdr)))
		return false;
	for (size_t i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;

		memcpy(&ph, data + eh.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD)
			f.bias = ph.p_vaddr - ph.p_offset;
		if (ph.p_type == PT_DYNAMIC) {
			dynamic = ph.p_offset;
			dynamic_size = ph.p_filesz;
		}
	}
	f.end = find_end(&f, &eh);
	if (f.end > len || !dynamic || !within(&f, dynamic, dynamic_size) ||
		!open_dynamic(&f, dynamic, dynamic_size))
		return false;
	*ret = f;
	return true;
}

bool vdso_elf_symbol(const struct vdso_elf *f, size_t i, const char **ret_name, uint64_t *ret_offset)
{
	uint64_t at = f->symtab + i * sizeof(Elf64_Sym);
	Elf64_Sym sym;

	*ret_name = "";
	*ret_offset = 0;
	if (i >= MAX_SYMBOLS || !within(f, at, sizeof(sym)) ||
		(f->strtab > f->symtab && at + sizeof(sym) > f->strtab))
		return false;
	memcpy(&sym, f->data + at, sizeof(sym));
	if (sym.st_name >= f->strsz)
		return false;
	if (ELF64_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF)
		return true;
	*ret_name = (const char *)f->data + f->strtab + sym.st_name;
	if (!strncmp(*ret_name, "__vdso_", 7))
		*ret_name += 7;
	*ret_offset = sym.st_value - f->bias;
	return true;
}

uint64_t vdso_elf_find(const struct vdso_elf *f, const char *name)
{
	const char *found;
	uint64_t offset;

	for (size_t i = 0; vdso_elf_symbol(f, i, &found, &offset); i++)
		if (offset && !strcmp(found, name))
			return offset;
	return 0;
}
