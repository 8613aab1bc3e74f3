// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where every thread of an image stands, unwound from its records and pages.
 *
 * Theory of operation
 *
 * libunwind asks through accessors: a register comes from the thread's record, memory from the
 * space (ckpt/inspect/inspect.h), which falls through to the mapped files for what nobody has
 * changed - unwind tables among it.  The table for an address is found as the dynamic linker's
 * users do: the ELF header at the start of the object's first mapping, its PT_GNU_EH_FRAME, the
 * sorted table in that (LSB core, .eh_frame_hdr).  Names come from the files' symbols.
 *
 * All of it is data from an image: libunwind reads through our accessors only, and what they
 * can't read is an error to it.  So is everything once a thread has had its share of reads.
 */
#include <elf.h>
#include <errno.h>
#include <libunwind.h>
#include <string.h>
#include <sys/user.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/inspect/inspect.h"
#include "ckpt/inspect/stack_text.h"
#include "ckpt/inspect/symbols.h"
#include "ckpt/remote/i386.h"
#include "proto/memory.pb-c.h"
#include "proto/tasks.pb-c.h"

#define MAX_FRAMES 256
#define MAX_PHDRS  64

/*
 * What unwinding may ask of memory: an unwind table that goes round in circles, or through a
 * terabyte of zeros, ends here.  A real stack of MAX_FRAMES takes a few thousand reads a frame at
 * most.
 */
#define MAX_READS	 (1u << 21)  /* of a thread */
#define MAX_READS_IMAGE (1ull << 28) /* of all */

/* Of libunwind: exported for those who bring their own find_proc_info, but not in its headers. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
	unw_proc_info_t *pi, int need_unwind_info, void *arg);

/* One process while its threads are unwound; the argument of the accessors. */
struct walk {
	struct ckpt_space space;
	struct ckpt_symbols **symbols; /* beside the files of the record, then of the vDSO */
	bool *tried;
	struct user_regs_struct regs; /* of the thread */
	struct ckpt_stack_text text;
	uint32_t reads;	    /* left to this thread */
	uint64_t all_reads; /* left to all */
};

/* ---- accessors ------------------------------------------------------------------------------- */

static bool may_read(struct walk *w)
{
	if (!w->reads || !w->all_reads)
		return false;
	w->reads--;
	w->all_reads--;
	return true;
}

/* Where the object that mapping @i is part of begins; false if that is not mapped. */
static bool object_base(const struct ckpt_space *s, size_t i, uint64_t *ret)
{
	const Pb__Mapping *m = s->mm->mappings[i];

	for (size_t n = i + 1; n > 0; n--) {
		const Pb__Mapping *b = s->mm->mappings[n - 1];

		if (b->source != m->source || b->object != m->object || b->offset != 0)
			continue;
		*ret = b->start;
		return true;
	}
	return false;
}

/* Where the .eh_frame_hdr of the object at @base is. */
static bool find_table(struct ckpt_space *s, uint64_t base, uint64_t *ret_hdr)
{
	Elf64_Ehdr eh;
	bool loaded = false;
	uint64_t hdr = 0, bias = 0;

	if (ckpt_space_read(s, base, &eh, sizeof(eh)) < 0 || memcmp(eh.e_ident, ELFMAG, SELFMAG) != 0 ||
		eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_phnum > MAX_PHDRS ||
		eh.e_phoff > INT32_MAX)
		return false;
	for (size_t i = 0; i < eh.e_phnum; i++) {
		Elf64_Phdr ph;

		if (ckpt_space_read(s, base + eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph)) < 0)
			return false;
		if (ph.p_type == PT_LOAD && !loaded) {
			bias = base - ALIGN_DOWN(ph.p_vaddr - ph.p_offset, PAGE_SIZE);
			loaded = true;
		} else if (ph.p_type == PT_GNU_EH_FRAME) {
			hdr = ph.p_vaddr;
		}
	}
	*ret_hdr = bias + hdr;
	return loaded && hdr;
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need,
	void *arg)
{
	struct walk *w = arg;
	long i = may_read(w) ? ckpt_space_find(&w->space, ip) : -1;
	struct {
		uint8_t version, frame_enc, count_enc, table_enc;
		int32_t frame;
		uint32_t count;
	} head;
	uint64_t base, hdr;
	unw_dyn_info_t di = {0};

	if (i < 0 || !object_base(&w->space, (size_t)i, &base) ||
		!find_table(&w->space, base, &hdr) ||
		ckpt_space_read(&w->space, hdr, &head, sizeof(head)) < 0)
		return -UNW_ENOINFO;
	/* as every linker writes it: pcrel|sdata4, udata4, datarel|sdata4 */
	if (head.version != 1 || head.frame_enc != 0x1b || head.count_enc != 0x03 ||
		head.table_enc != 0x3b)
		return -UNW_ENOINFO;
	di.format = UNW_INFO_FORMAT_REMOTE_TABLE;
	di.start_ip = w->space.mm->mappings[i]->start;
	di.end_ip = w->space.mm->mappings[i]->end;
	di.u.rti.segbase = hdr;
	di.u.rti.table_data = hdr + sizeof(head);
	di.u.rti.table_len = head.count * 2 * sizeof(int32_t) / sizeof(unw_word_t);
	return UNW_OBJ(dwarf_search_unwind_table)(as, ip, &di, pi, need, arg);
}

/* libunwind frees what find_proc_info allocated itself. */
static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
}

static int no_dyn_info(unw_addr_space_t as, unw_word_t *ret, void *arg)
{
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *value, int write, void *arg)
{
	struct walk *w = arg;

	if (write || !may_read(w) ||
		ckpt_space_read(&w->space, addr, value, sizeof(*value)) < 0)
		return -UNW_EINVAL;
	return 0;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write, void *arg)
{
	const struct user_regs_struct *g = &((struct walk *)arg)->regs;
	const unsigned long long by_number[] = {
		[UNW_X86_64_RAX] = g->rax, [UNW_X86_64_RDX] = g->rdx, [UNW_X86_64_RCX] = g->rcx,
		[UNW_X86_64_RBX] = g->rbx, [UNW_X86_64_RSI] = g->rsi, [UNW_X86_64_RDI] = g->rdi,
		[UNW_X86_64_RBP] = g->rbp, [UNW_X86_64_RSP] = g->rsp, [UNW_X86_64_R8] = g->r8,
		[UNW_X86_64_R9] = g->r9, [UNW_X86_64_R10] = g->r10, [UNW_X86_64_R11] = g->r11,
		[UNW_X86_64_R12] = g->r12, [UNW_X86_64_R13] = g->r13, [UNW_X86_64_R14] = g->r14,
		[UNW_X86_64_R15] = g->r15, [UNW_X86_64_RIP] = g->rip};

	if (write || reg < 0 || reg >= (int)ARRAY_SIZE(by_number))
		return -UNW_EBADREG;
	*value = by_number[reg];
	return 0;
}

static int no_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
	return -UNW_EBADREG;
}

static int no_resume(unw_addr_space_t as, unw_cursor_t *c, void *arg)
{
	return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t as, unw_word_t ip, char *name, size_t len, unw_word_t *offset,
	void *arg)
{
	return -UNW_ENOINFO;
}

static const unw_accessors_t accessors = {
	.find_proc_info = find_proc_info,
	.put_unwind_info = put_unwind_info,
	.get_dyn_info_list_addr = no_dyn_info,
	.access_mem = access_mem,
	.access_reg = access_reg,
	.access_fpreg = no_fpreg,
	.resume = no_resume,
	.get_proc_name = no_name,
};

/* ---- names ----------------------------------------------------------------------------------- */

static const char *function_at(struct walk *w, size_t i, uint64_t ip, uint64_t *ret_into)
{
	const Pb__Mapping *m = w->space.mm->mappings[i];
	const Pb__Mm *mm = w->space.mm;
	size_t n = mm->n_files;

	if (m->source == PB__MAPPING_SOURCE__MAPPING_PATH && m->object < n)
		n = m->object;
	else if (m->source != PB__MAPPING_SOURCE__MAPPING_VDSO)
		return NULL;
	if (!w->tried[n]) {
		w->tried[n] = true;
		if (n == mm->n_files)
			w->symbols[n] = ckpt_symbols_open(-1, mm->vdso.data, mm->vdso.len);
		else if (ckpt_space_file(&w->space, i) >= 0)
			w->symbols[n] = ckpt_symbols_open(ckpt_space_file(&w->space, i), NULL, 0);
	}
	return w->symbols[n] ? ckpt_symbols_find(w->symbols[n], ip - m->start + m->offset, ret_into)
			     : NULL;
}

static const char *mapping_name(const Pb__Mm *mm, size_t i)
{
	const Pb__Mapping *m = mm->mappings[i];

	if (m->source == PB__MAPPING_SOURCE__MAPPING_VDSO)
		return "[vdso]";
	if (m->source == PB__MAPPING_SOURCE__MAPPING_PATH && m->object < mm->n_files)
		return mm->files[m->object]->path;
	return NULL;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void put_frame(struct walk *w, int number, uint64_t ip, bool exact)
{
	struct ckpt_stack_frame f = {.number = number, .ip = ip};
	/*
	 * A return address may be behind the end of a function that calls one which never returns.
	 */
	uint64_t back = exact ? 0 : 1;
	long i = ckpt_space_find(&w->space, ip - back);

	if (i >= 0) {
		const Pb__Mapping *m = w->space.mm->mappings[i];

		f.function = function_at(w, (size_t)i, ip - back, &f.into);
		f.into += back;
		f.file = mapping_name(w->space.mm, (size_t)i);
		f.offset = ip - m->start + m->offset;
	}
	ckpt_stack_put(&w->text, &f);
}

static void put_frames(struct walk *w, unw_addr_space_t as)
{
	unw_cursor_t c;
	unw_word_t ip;
	bool exact = true;

	if (unw_init_remote(&c, as, w) < 0)
		return;
	for (int i = 0; i < MAX_FRAMES; i++) {
		if (unw_get_reg(&c, UNW_REG_IP, &ip) < 0 || !ip)
			return;
		put_frame(w, i, ip, exact);
		exact = unw_is_signal_frame(&c) > 0;
		/* of 32-bit code libunwind knows no callers here */
		if (i386_runs(&w->regs) || unw_step(&c) <= 0)
			return;
	}
}

static int put_thread(struct walk *w, unw_addr_space_t as, pid_t vpid, pid_t vtid, struct err *e)
{
	struct ckpt_record *r =
		ckpt_build_record(&w->space.in->b, PROTO_KIND_THREAD, (uint64_t)vtid);
	Pb__Thread *t = r ? pb__thread__unpack(NULL, r->len, r->body) : NULL;

	if (!t || t->regs.len != sizeof(w->regs)) {
		pb__thread__free_unpacked(t, NULL);
		return err_set(e, ERR_IMAGE, -EBADMSG, "thread %d has no registers", vtid);
	}
	memcpy(&w->regs, t->regs.data, sizeof(w->regs));
	w->reads = MAX_READS;
	ckpt_stack_thread(&w->text, vpid, vtid, t->name);
	put_frames(w, as);
	ckpt_stack_thread_end(&w->text);
	pb__thread__free_unpacked(t, NULL);
	return 0;
}

static int put_threads(struct walk *w, const struct ckpt_build_proc *p, struct err *e)
{
	unw_accessors_t own = accessors; /* which is copied, but not const to libunwind */
	unw_addr_space_t as = unw_create_addr_space(&own, 0);
	int r = 0;

	if (!as)
		return err_errno(e, -ENOMEM, "stacks");
	for (size_t i = p->headless; i < p->n_threads && r == 0; i++)
		r = put_thread(w, as, p->vpid, p->threads[i].vtid, e);
	unw_destroy_addr_space(as);
	return r;
}

static int put_process(struct walk *w, struct ckpt_inspect *in, const struct ckpt_build_proc *p,
	struct err *e)
{
	Pb__Task *t = pb__task__unpack(NULL, p->record->len, p->record->body);
	size_t n;
	int r;

	ckpt_stack_process(&w->text, p->vpid, t ? t->name : "?", p->zombie);
	pb__task__free_unpacked(t, NULL);
	if (p->zombie)
		return 0;
	r = ckpt_space_open(&w->space, in, p, e);
	if (r < 0)
		return r;
	n = w->space.mm->n_files + 1;
	w->symbols = calloc(n, sizeof(*w->symbols));
	w->tried = calloc(n, sizeof(*w->tried));
	if (w->symbols && w->tried)
		r = put_threads(w, p, e);
	else
		r = err_errno(e, -ENOMEM, "stacks");
	for (size_t i = 0; w->symbols && i < n; i++)
		ckpt_symbols_close(w->symbols[i]);
	free(w->symbols);
	free(w->tried);
	ckpt_space_close(&w->space);
	return r;
}

int ckpt_image_stacks(const struct ckpt_image *image, FILE *out, bool json, struct err *e)
{
	struct walk w = {.all_reads = MAX_READS_IMAGE};
	struct ckpt_inspect *i;
	int r = ckpt_inspect_open(&i, image, false, e);

	if (r < 0)
		return r;
	ckpt_stack_begin(&w.text, out, json);
	for (size_t n = 0; n < i->b.n_procs && r == 0; n++)
		r = put_process(&w, i, &i->b.procs[n], e);
	ckpt_stack_end(&w.text);
	ckpt_inspect_close(i);
	return r;
}
