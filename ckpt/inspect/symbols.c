// SPDX-License-Identifier: GPL-2.0-or-later
/* ELF(5): .symtab where there is one, else .dynsym; every offset is checked against the file. */
#include "ckpt/inspect/symbols.h"

#include <elf.h>
#include <string.h>

#include "base/base.h"

#define MAX_SECTIONS 4096
#define MAX_PHDRS    64
#define MAX_TABLE    (256u << 20)

struct function {
	uint64_t start, size; /* virtual addresses of the file */
	uint32_t name;
};

struct ckpt_symbols {
	Elf64_Phdr *ph;
	size_t n_ph;
	struct function *at;
	size_t n;
	char *names; /* ends with a NUL */
	size_t names_len;
};

struct source {
	int fd;
	const uint8_t *data;
	size_t len;
};

/* @len bytes at @offset as fresh memory with a NUL behind, or NULL. */
static void *take(const struct source *s, uint64_t offset, uint64_t len)
{
	char *p;

	if (len > MAX_TABLE || offset > INT64_MAX - MAX_TABLE)
		return NULL;
	if (s->fd < 0 && (offset > s->len || len > s->len - offset))
		return NULL;
	p = malloc(len + 1);
	if (!p)
		return NULL;
	p[len] = '\0';
	if (s->fd < 0) {
		memcpy(p, s->data + offset, len);
	} else if (io_pread_full(s->fd, p, len, (off_t)offset) != (ssize_t)len) {
		free(p);
		return NULL;
	}
	return p;
}

static int compare(const void *x, const void *y)
{
	const struct function *a = x, *b = y;

	return a->start < b->start ? -1 : a->start > b->start;
}

static bool take_functions(struct ckpt_symbols *f, const struct source *s, const Elf64_Shdr *table,
	const Elf64_Shdr *names)
{
	_cleanup_free_ Elf64_Sym *sym = take(s, table->sh_offset, table->sh_size);
	size_t n = table->sh_size / sizeof(*sym);

	f->names = take(s, names->sh_offset, names->sh_size);
	f->names_len = names->sh_size;
	f->at = calloc(n + 1, sizeof(*f->at));
	if (!sym || !f->names || !f->at)
		return false;
	for (size_t i = 0; i < n; i++) {
		unsigned type = ELF64_ST_TYPE(sym[i].st_info);

		if ((type == STT_FUNC || type == STT_GNU_IFUNC) && sym[i].st_shndx != SHN_UNDEF &&
			sym[i].st_name < names->sh_size)
			f->at[f->n++] = (struct function){sym[i].st_value, sym[i].st_size,
				sym[i].st_name};
	}
	sort_array(f->at, f->n, sizeof(*f->at), compare);
	return f->n > 0;
}

/* The full table of symbols if the file has one, else that of exported ones. */
static bool take_symbols(struct ckpt_symbols *f, const struct source *s, const Elf64_Ehdr *eh)
{
	_cleanup_free_ Elf64_Shdr *sh = NULL;
	const Elf64_Shdr *found = NULL;

	if (eh->e_shnum == 0 || eh->e_shnum > MAX_SECTIONS || eh->e_shentsize != sizeof(*sh))
		return false;
	sh = take(s, eh->e_shoff, eh->e_shnum * sizeof(*sh));
	for (size_t i = 0; sh && i < eh->e_shnum; i++)
		if (sh[i].sh_link < eh->e_shnum &&
			(sh[i].sh_type == SHT_SYMTAB || (sh[i].sh_type == SHT_DYNSYM && !found)))
			found = &sh[i];
	return found && take_functions(f, s, found, &sh[found->sh_link]);
}

struct ckpt_symbols *ckpt_symbols_open(int fd, const void *data, size_t len)
{
	const struct source s = {fd, data, len};
	_cleanup_free_ Elf64_Ehdr *eh = take(&s, 0, sizeof(*eh));
	struct ckpt_symbols *f = calloc(1, sizeof(*f));

	if (!eh || !f || memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0 ||
		eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_phnum > MAX_PHDRS ||
		eh->e_phentsize != sizeof(Elf64_Phdr)) {
		free(f);
		return NULL;
	}
	f->n_ph = eh->e_phnum;
	f->ph = take(&s, eh->e_phoff, f->n_ph * sizeof(*f->ph));
	if (f->ph && take_symbols(f, &s, eh))
		return f;
	ckpt_symbols_close(f);
	return NULL;
}

void ckpt_symbols_close(struct ckpt_symbols *f)
{
	if (!f)
		return;
	free(f->ph);
	free(f->at);
	free(f->names);
	free(f);
}

const char *ckpt_symbols_find(const struct ckpt_symbols *f, uint64_t offset, uint64_t *ret_into)
{
	uint64_t at = 0;
	size_t low = 0, high = f->n;
	bool found = false;

	for (size_t i = 0; i < f->n_ph && !found; i++) {
		if (f->ph[i].p_type != PT_LOAD || offset - f->ph[i].p_offset >= f->ph[i].p_filesz)
			continue;
		at = f->ph[i].p_vaddr + (offset - f->ph[i].p_offset);
		found = true;
	}
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (f->at[mid].start <= at)
			low = mid + 1;
		else
			high = mid;
	}
	if (!found || low == 0)
		return NULL;
	/* of several names for one address, one that says how long it is */
	for (size_t i = low; i > 0 && f->at[i - 1].start == f->at[low - 1].start; i--)
		if (f->at[i - 1].size)
			low = i;
	if (f->at[low - 1].size && at - f->at[low - 1].start >= f->at[low - 1].size)
		return NULL;
	*ret_into = at - f->at[low - 1].start;
	return f->names + f->at[low - 1].name;
}
