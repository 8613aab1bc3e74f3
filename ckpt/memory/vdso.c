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

#define PATCH_MAX 22 /* the longest of the above */

int ckpt_vdso_redirect(uint8_t *old, size_t old_len, const uint8_t *host, size_t host_len,
	uint64_t host_addr, struct err *e)
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
	for (size_t i = 0; vdso_elf_symbol(&from, i, &name, &offset); i++) {
		if (!offset || offset + PATCH_MAX > old_len)
			continue;
		uint64_t target = vdso_elf_find(&to, name);

		if (target)
			put_jump(old + offset, host_addr + target);
		else
			put_stub(old + offset, name);
	}
	return 0;
}
