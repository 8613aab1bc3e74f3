/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program of starter.c, never run here.
 *
 *      rbx   struct starter_data          r12   the answer that is given if nothing is executed
 *      r14   the next path to try         r13   its error: the negative errno
 */
#include "supervisor/world/starter_layout.h"

#define SYS_write	1
#define SYS_execve	59
#define SYS_fcntl	72
#define SYS_chdir	80
#define SYS_exit_group	231
#define ENOENT		2
#define ENOEXEC		8
#define EACCES		13
#define ENOTDIR		20

	.section .rodata
	.balign	16
	.globl	starter_code_begin, starter_code_end
	.hidden	starter_code_begin, starter_code_end

starter_code_begin:
	mov	$STARTER_DATA, %ebx
	/* The end that says nothing by being closed. */
	mov	$SYS_fcntl, %eax
	mov	STARTER_STATUS(%rbx), %rdi
	mov	$2, %esi		/* F_SETFD */
	mov	$1, %edx		/* FD_CLOEXEC */
	syscall
	mov	STARTER_CWD(%rbx), %rdi
	test	%rdi, %rdi
	jz	.Lsearch
	mov	STARTER_AT_CWD(%rbx), %r12
	mov	$SYS_chdir, %eax
	syscall
	mov	%eax, %r13d
	test	%eax, %eax
	js	.Lfailed

.Lsearch:
	mov	STARTER_AT_EXEC(%rbx), %r12
	mov	$-ENOENT, %r13d
	mov	STARTER_PATHS(%rbx), %r14
.Lnext:
	mov	(%r14), %rdi
	test	%rdi, %rdi
	jz	.Lfailed
	mov	STARTER_ARGV(%rbx), %rsi
	mov	STARTER_ENVP(%rbx), %rdx
	mov	$SYS_execve, %eax
	syscall
	cmp	$-ENOEXEC, %eax
	jne	.Ljudge
	/* A text file without #!: as execvp(3) does. */
	mov	STARTER_SHELL(%rbx), %rsi
	mov	(%r14), %rax
	mov	%rax, 8(%rsi)
	mov	(%rsi), %rdi
	mov	STARTER_ENVP(%rbx), %rdx
	mov	$SYS_execve, %eax
	syscall
.Ljudge:
	cmp	$-EACCES, %eax
	je	.Lkeep
	cmp	$-ENOENT, %r13d
	jne	.Lgo_on
	cmp	$-ENOTDIR, %eax
	je	.Lgo_on
.Lkeep:
	mov	%eax, %r13d
.Lgo_on:
	add	$8, %r14
	cmp	$-ENOENT, %eax
	je	.Lnext
	cmp	$-ENOTDIR, %eax
	je	.Lnext
	cmp	$-EACCES, %eax
	je	.Lnext

.Lfailed:
	neg	%r13d
	mov	STARTER_ERROR(%rbx), %rax
	mov	%r13d, (%r12, %rax)
	mov	$SYS_write, %eax
	mov	STARTER_STATUS(%rbx), %rdi
	mov	%r12, %rsi
	mov	STARTER_SIZE(%rbx), %rdx
	syscall
	mov	$SYS_exit_group, %eax
	mov	$127, %edi
	syscall
starter_code_end:

	.section .note.GNU-stack, "", @progbits
