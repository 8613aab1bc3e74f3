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
 * and in that of a 32-bit program
 *
 *      symbol known to the new vDSO    jmp new
 *      unknown there                   push %ebx; mov 8(%esp), %ebx; ...; int $0x80; pop %ebx; ret
 *      the way into the kernel         jmp new, or as it is: it comes back by `int $0x80`, which works anywhere
 *      the ways back from handlers     as they are
 *
 * Where the kernel looks for the way back from it (sysenter), and what it gives handlers to return
 * to, is in the new one.
 *
 * r11 and rax are free at a function's entry (System V ABI), and a system call clobbers no more
 * than a function may.  No task is stopped inside the vDSO when it is frozen, so no return address
 * points into what is overwritten; only a handler may have interrupted it there, and returns into
 * the middle of the old code, behind what is replaced but for a few instructions (place.c).
 *
 * The vDSO is an ELF file whose bytes come from an image: everything read from it is bounded.
 */
#include <string.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "ckpt/memory/memory.h"
#include "ckpt/memory/vdso_elf.h"

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

/* ---- of 32-bit programs ---------------------------------------------------------------------- */

#define VSYSCALL "__kernel_vsyscall"

/* asm/unistd_32.h */
static const struct {
	const char *name;
	int nr;
} stubs_i386[] = {
	{"clock_gettime", 265},
	{"clock_gettime64", 403},
	{"clock_getres", 266},
	{"clock_getres_time64", 406},
	{"gettimeofday", 78},
	{"time", 13},
	{"getcpu", 318},
};

static void put_jump_i386(uint8_t *code, uint64_t from, uint64_t to)
{
	uint32_t distance = (uint32_t)(to - from - 5);

	code[0] = 0xe9;
	memcpy(code + 1, &distance, sizeof(distance));
}

static void put_stub_i386(uint8_t *code, const char *name)
{
	static const uint8_t enosys[] = {0xb8, 0xda, 0xff, 0xff, 0xff, 0xc3};
	uint8_t call[] = {
		0x53,		       /* push %ebx */
		0x8b, 0x5c, 0x24, 8,   /* mov 8(%esp), %ebx */
		0x8b, 0x4c, 0x24, 12,  /* mov 12(%esp), %ecx */
		0x8b, 0x54, 0x24, 16,  /* mov 16(%esp), %edx */
		0xb8, 0, 0, 0, 0,      /* mov $nr, %eax */
		0xcd, 0x80, 0x5b, 0xc3 /* int $0x80; pop %ebx; ret */
	};

	for (size_t i = 0; i < ARRAY_SIZE(stubs_i386); i++) {
		if (strcmp(stubs_i386[i].name, name))
			continue;
		memcpy(call + 14, &stubs_i386[i].nr, 4);
		memcpy(code, call, sizeof(call));
		return;
	}
	memcpy(code, enosys, sizeof(enosys));
}

static void redirect_i386(uint8_t *code, const char *name, uint64_t from, uint64_t target)
{
	if (!strncmp(name, "__kernel_", 9) && strcmp(name, VSYSCALL))
		return;
	if (target)
		put_jump_i386(code, from, target);
	else if (strcmp(name, VSYSCALL))
		put_stub_i386(code, name);
}

/* ---- both ------------------------------------------------------------------------------------ */

#define PATCH_MAX 22 /* the longest of the above */

int ckpt_vdso_redirect(uint8_t *old, size_t old_len, uint64_t old_addr, const uint8_t *host,
	size_t host_len, uint64_t host_addr, struct err *e)
{
	_cleanup_free_ uint8_t *was = malloc(old_len ? old_len : 1);
	struct vdso_elf from, to;
	const char *name;
	uint64_t offset;

	if (!was)
		return err_errno(e, -ENOMEM, "vDSO");
	memcpy(was, old, old_len);
	if (!vdso_elf_open(&from, was, old_len))
		return err_set(e, ERR_IMAGE, -EBADMSG, "the image's vDSO can't be understood");
	if (!vdso_elf_open(&to, host, host_len))
		return err_set(e, ERR_HOST, -ENOSYS, "this host's vDSO can't be understood");
	if (from.i386 != to.i386)
		return err_set(e, ERR_IMAGE, -EBADMSG, "the vDSO is another kind of program's");
	for (size_t i = 0; vdso_elf_symbol(&from, i, &name, &offset); i++) {
		if (!offset || offset + PATCH_MAX > old_len)
			continue;
		uint64_t target = vdso_elf_find(&to, name);

		if (from.i386)
			redirect_i386(old + offset, name, old_addr + offset,
				target ? host_addr + target : 0);
		else if (target)
			put_jump(old + offset, host_addr + target);
		else
			put_stub(old + offset, name);
	}
	return 0;
}
