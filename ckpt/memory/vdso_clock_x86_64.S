/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * clock_gettime(clock, time) of a vDSO that carries on a session's clocks (vdso_clock.c).  Copied behind the
 * vDSO's own code, never run here.  Position independent.
 */
#define CLOCK_MONOTONIC		1
#define CLOCK_MONOTONIC_RAW	4
#define CLOCK_MONOTONIC_COARSE	6
#define CLOCK_BOOTTIME		7
#define CLOCK_BOOTTIME_ALARM	9
#define SECOND			1000000000

	.section .rodata
	.balign	16
	.globl	vdso_clock_begin, vdso_clock_call, vdso_clock_offsets, vdso_clock_end
	.hidden	vdso_clock_begin, vdso_clock_call, vdso_clock_offsets, vdso_clock_end

vdso_clock_begin:
	push	%rdi
	push	%rsi
	sub	$8, %rsp
	.byte	0xe8			/* call: the vDSO's own function */
vdso_clock_call:
	.long	0
	add	$8, %rsp
	pop	%rsi
	pop	%rdi
	test	%eax, %eax
	jnz	.Lreturn
	lea	vdso_clock_offsets(%rip), %rdx
	cmp	$CLOCK_MONOTONIC, %edi
	je	.Ladd
	cmp	$CLOCK_BOOTTIME, %edi
	je	.Lboottime
	cmp	$CLOCK_MONOTONIC_COARSE, %edi
	je	.Ladd
	cmp	$CLOCK_MONOTONIC_RAW, %edi
	je	.Ladd
	cmp	$CLOCK_BOOTTIME_ALARM, %edi
	jne	.Lreturn
.Lboottime:
	add	$16, %rdx
.Ladd:
	mov	(%rdx), %rcx
	mov	8(%rdx), %r8
	add	(%rsi), %rcx
	add	8(%rsi), %r8
	cmp	$SECOND, %r8
	jb	.Lstore
	sub	$SECOND, %r8
	inc	%rcx
.Lstore:
	mov	%rcx, (%rsi)
	mov	%r8, 8(%rsi)
.Lreturn:
	ret

	/* Seconds and nanoseconds below one, of monotonic and of boot time. */
	.balign	8
vdso_clock_offsets:
	.quad	0, 0, 0, 0
vdso_clock_end:

	.section .note.GNU-stack, "", @progbits
