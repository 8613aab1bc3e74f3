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

/* ---- of either kind, as the wide one --------------------------------------------------------- */

static size_t size_of_dyn(const struct vdso_elf *f)
{
	return f->i386 ? sizeof(Elf32_Dyn) : sizeof(Elf64_Dyn);
}

static Elf64_Dyn get_dyn(const struct vdso_elf *f, uint64_t at)
{
	Elf64_Dyn wide;
	Elf32_Dyn narrow;

	if (!f->i386) {
		memcpy(&wide, f->data + at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, f->data + at, sizeof(narrow));
	return (Elf64_Dyn){.d_tag = narrow.d_tag, .d_un.d_val = narrow.d_un.d_val};
}

static size_t size_of_phdr(const struct vdso_elf *f)
{
	return f->i386 ? sizeof(Elf32_Phdr) : sizeof(Elf64_Phdr);
}

static Elf64_Phdr get_phdr(const struct vdso_elf *f, const Elf64_Ehdr *eh, size_t i)
{
	uint64_t at = eh->e_phoff + i * size_of_phdr(f);
	Elf64_Phdr wide;
	Elf32_Phdr narrow;

	if (!f->i386) {
		memcpy(&wide, f->data + at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, f->data + at, sizeof(narrow));
	return (Elf64_Phdr){
		.p_type = narrow.p_type,
		.p_offset = narrow.p_offset,
		.p_vaddr = narrow.p_vaddr,
		.p_filesz = narrow.p_filesz,
		.p_memsz = narrow.p_memsz,
	};
}

static size_t size_of_sym(const struct vdso_elf *f)
{
	return f->i386 ? sizeof(Elf32_Sym) : sizeof(Elf64_Sym);
}

static Elf64_Sym get_sym(const struct vdso_elf *f, uint64_t at)
{
	Elf64_Sym wide;
	Elf32_Sym narrow;

	if (!f->i386) {
		memcpy(&wide, f->data + at, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, f->data + at, sizeof(narrow));
	return (Elf64_Sym){
		.st_name = narrow.st_name,
		.st_info = narrow.st_info,
		.st_shndx = narrow.st_shndx,
		.st_value = narrow.st_value,
	};
}

/* False: none of both. */
static bool get_ehdr(struct vdso_elf *f, Elf64_Ehdr *ret)
{
	Elf32_Ehdr narrow;

	if (f->len < sizeof(*ret) || memcmp(f->data, ELFMAG, SELFMAG))
		return false;
	f->i386 = f->data[EI_CLASS] == ELFCLASS32;
	if (!f->i386) {
		memcpy(ret, f->data, sizeof(*ret));
		return f->data[EI_CLASS] == ELFCLASS64;
	}
	memcpy(&narrow, f->data, sizeof(narrow));
	*ret = (Elf64_Ehdr){
		.e_phoff = narrow.e_phoff,
		.e_phnum = narrow.e_phnum,
		.e_shoff = narrow.e_shoff,
		.e_shnum = narrow.e_shnum,
		.e_shentsize = narrow.e_shentsize,
	};
	return true;
}

/* ---- its parts ------------------------------------------------------------------------------- */

static bool open_dynamic(struct vdso_elf *f, uint64_t offset, uint64_t size)
{
	for (uint64_t at = offset; at + size_of_dyn(f) <= offset + size; at += size_of_dyn(f)) {
		Elf64_Dyn dyn;

		if (!within(f, at, size_of_dyn(f)))
			return false;
		dyn = get_dyn(f, at);
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
		Elf64_Phdr ph = get_phdr(f, eh, i);

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

	if (!get_ehdr(&f, &eh) || eh.e_phnum > MAX_PHDRS ||
		!within(&f, eh.e_phoff, eh.e_phnum * size_of_phdr(&f)))
		return false;
	for (size_t i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph = get_phdr(&f, &eh, i);

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

bool vdso_elf_symbol(
	const struct vdso_elf *f, size_t i, const char **ret_name, uint64_t *ret_offset)
{
	uint64_t at = f->symtab + i * size_of_sym(f);
	Elf64_Sym sym;

	*ret_name = "";
	*ret_offset = 0;
	if (i >= MAX_SYMBOLS || !within(f, at, size_of_sym(f)) ||
		(f->strtab > f->symtab && at + size_of_sym(f) > f->strtab))
		return false;
	sym = get_sym(f, at);
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
