/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * layout - what the tracer writes and the executor reads.  Included by C and by assembly, so only
 * numbers here; batch.c checks its structs against them.
 */
#ifndef CKPT_REMOTE_LAYOUT_H
#define CKPT_REMOTE_LAYOUT_H

/* Offsets in the area.  Between data and heal is room for a signal frame: the last thing the
 * healing does with its stack pointer there is to pop the flags. */
#define AREA_CODE  0x0
#define AREA_TABLE 0x1000
#define AREA_DATA  0x9000
#define AREA_HEAL  0x3f000
#define AREA_NOTE  0x3f800 /* 64 bits */
#define AREA_CHILD 0x3f808 /* 64 bits */

/* One entry of the table: 1 << ENTRY_SHIFT bytes. */
#define ENTRY_SHIFT 6
#define ENTRY_NR    0 /* 32 bits, signed */
#define ENTRY_REFS  4 /* bit i: argument i is the index of an earlier entry */
#define ENTRY_TWICE 5 /* a call which returns 0 in a new task */
#define ENTRY_I386  6 /* a call of i386 */
#define ENTRY_ARG0  8
#define ENTRY_RET   56

/* The registers and the signal mask that healing puts back. */
#define HEAL_MASK  0
#define HEAL_RAX   8
#define HEAL_RBX   16
#define HEAL_RCX   24
#define HEAL_RDX   32
#define HEAL_RSI   40
#define HEAL_RDI   48
#define HEAL_RBP   56
#define HEAL_R8	   64
#define HEAL_R9	   72
#define HEAL_R10   80
#define HEAL_R11   88
#define HEAL_R12   96
#define HEAL_R13   104
#define HEAL_R14   112
#define HEAL_R15   120
#define HEAL_RSP   128
#define HEAL_RIP   136
#define HEAL_FLAGS 144
#define HEAL_FAR   152 /* for a 32-bit task: where it goes on, and its code segment */

/* System calls and signal numbers the executor needs by itself. */
#define EXEC_SENTINEL	    146 /* sched_get_priority_max */
#define EXEC_SENTINEL_ARG   28528
#define EXEC_RT_SIGPROCMASK 14
#define EXEC_SCHED_YIELD    24
#define EXEC_EXIT	    60
#define EXEC_SIG_SETMASK    2

#endif
