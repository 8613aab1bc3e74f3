// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vdso - the vDSO of an image against the one of this host.
 *
 * Theory of operation
 *
 * A program has resolved the vDSO's symbols when it started (libc keeps pointers), so at the old
 * addresses there must be functions that do the same.  When the new host's vDSO is byte for byte
 * the old one it is moved to the old place.  Otherwise the old code stays as plain memory and the
 * first instructions of each exported function are replaced:
 *
 *      symbol known to the new vDSO    mov $new, %r11; jmp *%r11
 *      unknown there                   mov $nr, %eax; syscall; ret
 *
 * r11 and rax are free at a function's entry (System V ABI), and a system call clobbers no more
 * than a function may.  No task is stopped inside the vDSO when it is frozen, so no return address
 * points into what is overwritten.
 *
 * The vDSO is an ELF file whose bytes come from an image: everything read from it is bounded.
 */
#include <elf.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"

#define MAX_SYMBOLS 64
#define MAX_PHDRS   16

struct elf {
	const uint8_t *data;
	size_t len;
	uint64_t bias; /* what must be subtracted from an address to get an offset */
	uint64_t symtab, strtab, strsz;
};

/* Exported functions without a counterpart become one of these. */
static const struct {
	const char *name;
	int nr; /* -1: answers ENOSYS */
} stubs[] = {
	{"clock_gettime", SYS_clock_gettime},
	{"clock_getres", SYS_clock_getres},
	{"gettimeofday", SYS_gettimeofday},
	{"time", SYS_time},
	{"getcpu", SYS_getcpu},
	{"getrandom", SYS_getrandom},
};

static bool within(const struct elf *f, uint64_t offset, uint64_t size)
{
	return offset <= f->len && size <= f->len - offset;
}

static bool open_dynamic(struct elf *f, uint64_t offset, uint64_t size)
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

static bool elf_open(struct elf *ret, const uint8_t *data, size_t len)
{
	struct elf f = {.data = data, .len = len};
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
	if (!dynamic || !within(&f, dynamic, dynamic_size) ||
		!open_dynamic(&f, dynamic, dynamic_size))
		return false;
	*ret = f;
	return true;
}

/*
 * Symbol @i: its name without "__vdso_", and its offset (0: no function).  False at the end: the
 * table of symbols has no length of its own, the strings behind it end it.
 */
static bool elf_symbol(const struct elf *f, size_t i, const char **ret_name, uint64_t *ret_offset)
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

static uint64_t elf_find(const struct elf *f, const char *name)
{
	const char *found;
	uint64_t offset;

	for (size_t i = 0; elf_symbol(f, i, &found, &offset); i++)
		if (offset && !strcmp(found, name))
			return offset;
	return 0;
}

static size_t put_jump(uint8_t *code, uint64_t to)
{
	static const uint8_t jump[] = {0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, /* mov $to, %r11 */
		0x41, 0xff, 0xe3};					   /* jmp *%r11 */

	memcpy(code, jump, sizeof(jump));
	memcpy(code + 2, &to, sizeof(to));
	return sizeof(jump);
}

static size_t put_stub(uint8_t *code, const char *name)
{
	static const uint8_t enosys[] = {0x48, 0xc7, 0xc0, 0xda, 0xff, 0xff, 0xff, 0xc3};
	/* getrandom(..., state_len = ~0) asks for parameters: there are none */
	static const uint8_t asks[] = {0x49, 0x83, 0xf8, 0xff, 0x74, 0x08}; /* cmp $-1, %r8; je */
	uint8_t call[] = {0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0xc3}; /* mov $nr, %eax; syscall; ret */
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(stubs); i++) {
		if (strcmp(stubs[i].name, name))
			continue;
		memcpy(call + 1, &stubs[i].nr, 4);
		if (stubs[i].nr == SYS_getrandom) {
			memcpy(code, asks, sizeof(asks));
			n = sizeof(asks);
		}
		memcpy(code + n, call, sizeof(call));
		n += sizeof(call);
		if (stubs[i].nr != SYS_getrandom)
			return n;
		break;
	}
	memcpy(code + n, enosys, sizeof(enosys));
	return n + sizeof(enosys);
}

#define PATCH_MAX 22 /* the longest of the above */

int ckpt_vdso_redirect(uint8_t *old, size_t old_len, const uint8_t *host, size_t host_len,
	uint64_t host_addr, struct err *e)
{
	_cleanup_free_ uint8_t *was = malloc(old_len ? old_len : 1);
	struct elf from, to;
	const char *name;
	uint64_t offset;

	if (!was)
		return err_errno(e, -ENOMEM, "vDSO");
	memcpy(was, old, old_len);
	if (!elf_open(&from, was, old_len))
		return err_set(e, ERR_IMAGE, -EBADMSG, "the image's vDSO can't be understood");
	if (!elf_open(&to, host, host_len))
		return err_set(e, ERR_HOST, -ENOSYS, "this host's vDSO can't be understood");
	for (size_t i = 0; elf_symbol(&from, i, &name, &offset); i++) {
		if (!offset || offset + PATCH_MAX > old_len)
			continue;
		uint64_t target = elf_find(&to, name);

		if (target)
			put_jump(old + offset, host_addr + target);
		else
			put_stub(old + offset, name);
	}
	return 0;
}
