// SPDX-License-Identifier: GPL-2.0-or-later
/* The vDSO of 32-bit programs: one that leads to another is called, in children that have put
 * it in place of theirs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "ckpt/memory/memory.h"

#define MAP_VDSO_32 0x2002 /* asm/prctl.h */
#define PLACE	    0x30000000UL
#define NO_32	    77
#define LEN_MAX	    65536

/* Calls edx(ebx, ecx) with eax, and exits with what that returns. */
__asm__(".pushsection .rodata\n"
	".code32\n"
	"call_32:\n"
	"	push	%eax\n"
	"	mov	$0x2b, %eax\n"
	"	mov	%eax, %ds\n"
	"	mov	%eax, %es\n"
	"	pop	%eax\n"
	"	push	%ecx\n"
	"	push	%ebx\n"
	"	call	*%edx\n"
	"	mov	%eax, %ebx\n"
	"	mov	$1, %eax\n"
	"	int	$0x80\n"
	"call_32_end:\n"
	".code64\n"
	".popsection\n");
extern const uint8_t call_32[], call_32_end[];

/*
 * The children have no vDSO of their own any more when they allocate, and the address sanitizer's
 * malloc asks it for the time, to see whether it is to give memory back.  It never is.
 */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_release_to_os_interval_ms=-1";
}

struct vdso {
	uint8_t *bytes;
	size_t len;
};

/* Of this process: pieces of a vDSO go, or the code of one is told. */
static struct vdso vdso_pieces(bool unmap)
{
	struct vdso v = {0};
	struct proc_maps maps;
	int proc = proc_open(NULL);

	if (proc_read_maps(proc, getpid(), false, &maps, NULL) < 0)
		_exit(99);
	for (size_t i = 0; i < maps.n; i++) {
		const struct proc_vma *m = &maps.vmas[i];

		if (strcmp(m->path, "[vdso]") && strncmp(m->path, "[vvar", 5))
			continue;
		if (unmap)
			munmap((void *)m->start, m->end - m->start);
		else if (!strcmp(m->path, "[vdso]"))
			v = (struct vdso){(uint8_t *)m->start, m->end - m->start};
	}
	close(proc);
	return v;
}

static struct vdso get_vdso(void)
{
	struct vdso v;

	vdso_pieces(true);
	if (syscall(SYS_arch_prctl, MAP_VDSO_32, PLACE) < 0)
		_exit(NO_32);
	v = vdso_pieces(false);
	if (!v.bytes || v.len > LEN_MAX)
		_exit(99);
	return v;
}

static uint32_t symbol(const uint8_t *elf, const char *name)
{
	const Elf32_Ehdr *eh = (const void *)elf;
	const Elf32_Phdr *ph = (const void *)(elf + eh->e_phoff);
	const Elf32_Sym *sym = NULL;
	const char *str = NULL;

	for (int i = 0; i < eh->e_phnum; i++)
		for (const Elf32_Dyn *dyn = (const void *)(elf + ph[i].p_offset);
			ph[i].p_type == PT_DYNAMIC && dyn->d_tag; dyn++) {
			if (dyn->d_tag == DT_SYMTAB)
				sym = (const void *)(elf + dyn->d_un.d_ptr);
			if (dyn->d_tag == DT_STRTAB)
				str = (const char *)elf + dyn->d_un.d_ptr;
		}
	for (int i = 1; i < 20; i++)
		if (!strcmp(str + sym[i].st_name, name))
			return sym[i].st_value;
	return 0;
}

static void *low(int prot, int flags, size_t len)
{
	void *p = mmap(NULL, len, prot, flags | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static void run(uint64_t function, uint32_t a, uint32_t b, uint32_t eax)
{
	uint8_t *page = low(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, 65536);

	if (!page)
		_exit(99);
	memcpy(page, call_32, (size_t)(call_32_end - call_32));
	__asm__ volatile("mov	%[stack], %%rsp\n"
			 "push	$0x23\n"
			 "push	%[to]\n"
			 "lretq\n"
			 :
			 : [stack] "r"(page + 65536 - 64), [to] "r"(page), "a"(eax), "b"(a), "c"(b),
			 "d"(function)
			 : "memory");
	__builtin_unreachable();
}

enum host { THE_SAME, KNOWS_NOTHING, STANDS_STILL };

/* An image's copy that leads to the host's: its @name is called. */
static void child(enum host what, const char *name, uint32_t a, uint32_t b, uint32_t eax)
{
	struct vdso v = get_vdso();
	uint8_t *old = low(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE, v.len);
	uint8_t *host = low(PROT_READ | PROT_WRITE, MAP_PRIVATE, v.len);
	struct err e = {0};

	if (!old || !host)
		_exit(99);
	memcpy(old, v.bytes, v.len);
	memcpy(host, v.bytes, v.len);
	for (size_t i = 0; what == KNOWS_NOTHING && i + 4 < v.len; i++)
		if (!memcmp(host + i, "cloc", 4) || !memcmp(host + i, "time", 4))
			memcpy(host + i, "none", 4);
	if (what == STANDS_STILL &&
		ckpt_vdso_continue(host, v.len, &(struct ckpt_clocks){1, 1}) < 0)
		_exit(98);
	if (ckpt_vdso_redirect(old, v.len, (uint64_t)(uintptr_t)old, host, v.len,
		    (uint64_t)(uintptr_t)v.bytes, &e) < 0)
		_exit(97);
	/* led away, or a stub */
	if (symbol(old, name) && old[symbol(old, name)] != (what == THE_SAME || eax ? 0xe9 : 0x53))
		_exit(96);
	run((uint64_t)(uintptr_t)old + symbol(old, name), a, b, eax);
}

static int result(enum host what, const char *name, uint32_t a, uint32_t b, uint32_t eax)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		child(what, name, a, b, eax);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_32)
		skip();
	return WEXITSTATUS(status);
}

static void functions_of_an_old_one(void **state)
{
	struct {
		int32_t sec, nsec;
	} *t = low(PROT_READ | PROT_WRITE, MAP_SHARED, 4096);
	int64_t *wide = (int64_t *)t;
	struct timespec now;

	for (enum host what = THE_SAME; what <= STANDS_STILL; what++) {
		memset(t, 0xff, 4096);
		assert_int_equal(result(what, "__vdso_clock_gettime", CLOCK_MONOTONIC,
					 (uint32_t)(uintptr_t)t, 0), 0);
		assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
		assert_true(now.tv_sec - t->sec >= 0 && now.tv_sec - t->sec < 100);
		memset(t, 0xff, 4096);
		assert_int_equal(result(what, "__vdso_clock_gettime64", CLOCK_MONOTONIC,
					 (uint32_t)(uintptr_t)t, 0), 0);
		assert_true(now.tv_sec - wide[0] > -100 && now.tv_sec - wide[0] < 100);
	}
}

static void the_way_into_the_kernel(void **state)
{
	enum { GETPPID = 64 }; /* asm/unistd_32.h */

	for (enum host what = THE_SAME; what <= STANDS_STILL; what++)
		assert_int_equal(result(what, "__kernel_vsyscall", 0, 0, GETPPID), getpid() & 0xff);
}

/* Nobody's clock function is left in one that can't carry on clocks, and it is known again. */
static void one_that_carries_on(void **state)
{
	uint8_t *shared = low(PROT_READ | PROT_WRITE, MAP_SHARED, LEN_MAX), *other;
	size_t *len = low(PROT_READ | PROT_WRITE, MAP_SHARED, 4096);
	struct err e = {0};
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct vdso v = get_vdso();

		memcpy(shared, v.bytes, v.len);
		*len = v.len;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == NO_32)
		skip();
	other = malloc(*len);
	memcpy(other, shared, *len);
	assert_int_equal(ckpt_vdso_continue(other, *len, &(struct ckpt_clocks){5, 5}), 0);
	assert_true(ckpt_vdso_likens(other, shared, *len));
	other[symbol(other, "__vdso_time")] ^= 1;
	assert_false(ckpt_vdso_likens(other, shared, *len));
	/* nonsense is refused, at any length */
	for (size_t i = 0; i < *len; i += 7) {
		ckpt_vdso_redirect(other, i, 0, shared, *len, 0, &e);
		ckpt_vdso_redirect(other, *len, 0, shared, i, 0, &e);
		ckpt_vdso_continue(other, i, &(struct ckpt_clocks){5, 5});
	}
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_an_old_one),
		cmocka_unit_test(the_way_into_the_kernel),
		cmocka_unit_test(one_that_carries_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
