/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The executor: copied into a task, never run here.  Position independent; uses no stack, no
 * vector register and no memory but the area, so that whatever is not a general register stays as
 * it was.
 *
 *      rbx   the next entry               r12   entry 0
 *      rbp   behind the last entry        r13   stop at the first failing call
 *      r14   a task of the tracer's own making: ends when the tracer is gone
 *
 * At the gate (gate.c), where a task gets only when its tracer has died:
 *
 *      rbx   what it waits for to be no more 0       rbp   how often it looks
 */
#include "ckpt/remote/layout.h"

	.section .rodata
	.balign	16
	.globl	remote_exec_begin, remote_exec_end, remote_exec_run, remote_exec_single, remote_exec_gate, remote_exec_far
	.hidden	remote_exec_begin, remote_exec_end, remote_exec_run, remote_exec_single, remote_exec_gate, remote_exec_far

#define HEAL(field) (remote_exec_begin + AREA_HEAL + field)(%rip)

	/* One argument: the value, or the result of the entry it names. */
	.macro	argument index, register
	mov	ENTRY_ARG0 + 8 * \index(%rbx), \register
	test	$(1 << \index), %r11b
	jz	.Lvalue\@
	shl	$ENTRY_SHIFT, \register
	mov	ENTRY_RET(%r12, \register), \register
.Lvalue\@:
	.endm

remote_exec_begin:
remote_exec_run:
	cmp	%rbp, %rbx
	jae	.Lsentinel
	movzbl	ENTRY_REFS(%rbx), %r11d
	cmpb	$0, ENTRY_I386(%rbx)
	jne	.Li386
	argument 0, %rdi
	argument 1, %rsi
	argument 2, %rdx
	argument 3, %r10
	argument 4, %r8
	argument 5, %r9
	movslq	ENTRY_NR(%rbx), %rax
	syscall
.Ldone:
	cmpb	$0, ENTRY_TWICE(%rbx)
	je	.Lstore
	test	%rax, %rax
	jz	.Lorphan
.Lstore:
	mov	%rax, ENTRY_RET(%rbx)
	add	$(1 << ENTRY_SHIFT), %rbx
	test	%r13, %r13
	jz	remote_exec_run
	cmp	$-4095, %rax
	jb	remote_exec_run
	jmp	.Lsentinel

	/* A call of i386, which leaves r8 and r15 as they are. */
.Li386:
	argument 1, %rcx
	argument 2, %rdx
	argument 3, %rsi
	argument 4, %rdi
	mov	%rbp, %r8
	mov	%rbx, %r15
	argument 5, %rbp
	argument 0, %rbx
	mov	ENTRY_NR(%r15), %eax
	int	$0x80
	mov	%r15, %rbx
	mov	%r8, %rbp
	jmp	.Ldone

	/* One call whose registers are loaded already. */
remote_exec_single:
	syscall

.Lsentinel:
	mov	$EXEC_SENTINEL, %eax
	mov	$EXEC_SENTINEL_ARG, %edi
	syscall

	/* Only reached when there is no tracer any more. */
	test	%r14, %r14
	jnz	.Lorphan

.Lheal:
	/* On the task's own stack, because unblocked signals arrive at once. */
	mov	HEAL(HEAL_RSP), %rsp
	mov	$EXEC_RT_SIGPROCMASK, %eax
	mov	$EXEC_SIG_SETMASK, %edi
	lea	HEAL(HEAL_MASK), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	syscall
	lea	HEAL(HEAL_FLAGS), %rsp
	popfq
	mov	HEAL(HEAL_RAX), %rax
	mov	HEAL(HEAL_RBX), %rbx
	mov	HEAL(HEAL_RCX), %rcx
	mov	HEAL(HEAL_RDX), %rdx
	mov	HEAL(HEAL_RSI), %rsi
	mov	HEAL(HEAL_RDI), %rdi
	mov	HEAL(HEAL_RBP), %rbp
	mov	HEAL(HEAL_R8), %r8
	mov	HEAL(HEAL_R9), %r9
	mov	HEAL(HEAL_R10), %r10
	mov	HEAL(HEAL_R11), %r11
	mov	HEAL(HEAL_R12), %r12
	mov	HEAL(HEAL_R13), %r13
	mov	HEAL(HEAL_R14), %r14
	mov	HEAL(HEAL_R15), %r15
	mov	HEAL(HEAL_RSP), %rsp
	jmp	*HEAL(HEAL_RIP)
	/* where HEAL_RIP leads for a 32-bit task */
remote_exec_far:
	ljmp	*HEAL(HEAL_FAR)

remote_exec_gate:
	cmpq	$0, (%rbx)
	jne	.Lheal
	mov	$EXEC_SCHED_YIELD, %eax
	syscall
	dec	%rbp
	jnz	remote_exec_gate
	jmp	.Lheal

	/* A new task is held at birth by its tracer; if it runs, there is none. */
.Lorphan:
	mov	$EXEC_EXIT, %eax
	mov	$127, %edi
	syscall
	ud2
remote_exec_end:

/*
 * boot.c: one call, whose registers are loaded already, from a place that the task has.  Neither the
 * stack nor a flag is touched, for there is no room where they could be kept.
 */
#define BOOT(field) (remote_boot_heal + field)(%rip)

	.balign	16
	.globl	remote_boot_begin, remote_boot_heal, remote_boot_far
	.hidden	remote_boot_begin, remote_boot_heal, remote_boot_far
remote_boot_begin:
	syscall
	mov	%rax, %rbx
	mov	$EXEC_SENTINEL, %eax
	mov	$EXEC_SENTINEL_ARG, %edi
	syscall

	/* Only reached when there is no tracer any more. */
	mov	$EXEC_RT_SIGPROCMASK, %eax
	mov	$EXEC_SIG_SETMASK, %edi
	lea	BOOT(HEAL_MASK), %rsi
	mov	$0, %edx
	mov	$8, %r10d
	syscall
	mov	BOOT(HEAL_RAX), %rax
	mov	BOOT(HEAL_RBX), %rbx
	mov	BOOT(HEAL_RCX), %rcx
	mov	BOOT(HEAL_RDX), %rdx
	mov	BOOT(HEAL_RSI), %rsi
	mov	BOOT(HEAL_RDI), %rdi
	mov	BOOT(HEAL_RBP), %rbp
	mov	BOOT(HEAL_R8), %r8
	mov	BOOT(HEAL_R9), %r9
	mov	BOOT(HEAL_R10), %r10
	mov	BOOT(HEAL_R11), %r11
	mov	BOOT(HEAL_R12), %r12
	mov	BOOT(HEAL_R13), %r13
	mov	BOOT(HEAL_R14), %r14
	mov	BOOT(HEAL_R15), %r15
	jmp	*BOOT(HEAL_RIP)
remote_boot_far:
	ljmp	*BOOT(HEAL_FAR)
	.balign	8
remote_boot_heal:

	.section .note.GNU-stack, "", @progbits
