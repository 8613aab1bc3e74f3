// SPDX-License-Identifier: GPL-2.0-or-later
/* 64-bit and 32-bit programs: code.h. */
#include "ckpt/code.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

static bool copy_in(pid_t tid, uint64_t at, void *data, size_t len)
{
	struct iovec local = {data, len}, there = {(void *)at, len};

	return process_vm_readv(tid, &local, 1, &there, 1, 0) == (ssize_t)len;
}

int ckpt_code_check_vdso(pid_t pid, bool i386, uint64_t start, struct err *e)
{
	uint8_t ident[EI_NIDENT];

	if (!copy_in(pid, start, ident, sizeof(ident)) ||
		(ident[EI_CLASS] == ELFCLASS32) == i386)
		return 0;
	return err_set(e, ERR_UNFREEZABLE, -EOPNOTSUPP, "%s is not supported",
		i386 ? "a 64-bit program that runs 32-bit code"
		     : "a 32-bit program that runs 64-bit code");
}

enum { FAST = 5, INT_80 = 7 };

/*
 * What it looks like depends on the CPU:
 *
 *      51 52 55        push %ecx, %edx, %ebp
 *      89 ..           mov to %ebp
 *      0f ..           syscall, or sysenter
 *      cd 80           int $0x80
 */
bool ckpt_code_leave_vsyscall(pid_t tid, struct user_regs_struct *g, uint64_t start)
{
	static const uint8_t way[] = {0x51, 0x52, 0x55, 0x89, 0, 0x0f, 0, 0xcd, 0x80};
	static const uint8_t pushed[] = {0, 4, 8, 12, 0, 12, 0, 0}; /* when standing at this offset */
	uint8_t code[sizeof(way)];
	uint64_t at;
	uint32_t ebp;
	Elf32_Ehdr eh;

	if (!copy_in(tid, start, &eh, sizeof(eh)) || eh.e_ident[EI_CLASS] != ELFCLASS32)
		return false;
	at = start + eh.e_entry;
	if (g->rip - at >= ARRAY_SIZE(pushed) || !copy_in(tid, at, code, sizeof(code)))
		return false;
	code[4] = code[6] = 0;
	if (memcmp(code, way, sizeof(way)))
		return false;
	/* where a call is made again that was interrupted: the image's code stays there */
	if (g->rip - at == INT_80)
		return true;
	if (g->rip - at == FAST) {
		if (!copy_in(tid, g->rsp, &ebp, sizeof(ebp)))
			return false;
		g->rbp = ebp;
	}
	g->rsp += pushed[g->rip - at];
	g->rip = at;
	return ptrace(PTRACE_SETREGS, tid, 0, g) == 0;
}

int ckpt_code_host(struct err *e)
{
	enum { GETPID = 20 }; /* asm/unistd_32.h */
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		long ret = GETPID;

		prctl(PR_SET_DUMPABLE, 0); /* or there would be a core file of it */
		__asm__ volatile("int $0x80" : "+a"(ret) : : "memory", "r8", "r9", "r10", "r11");
		_exit(ret > 0 ? 0 : 1);
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(e, ERR_HOST, -ENOSYS, "this host runs no 32-bit programs");
}
