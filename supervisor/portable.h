/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * portable - sessions whose programs use no CPU feature that another host may lack.
 *
 * Theory of operation
 *
 * A program asks CPUID once, when it starts, and keeps what it has chosen: a session moved to a
 * lesser CPU dies of an illegal instruction.  CPUID can't be hidden from a process everywhere
 * (arch_prctl(ARCH_SET_CPUID) needs a CPU that faults on it), so `run --portable` works through
 * the switches that libraries have, environment variables and a file, and holds them to x86-64-v2
 * with AES and carry-less multiplication: what every x86-64 server since 2010 has.
 *
 * What reads CPUID itself and has no switch may still use more (gcc's __builtin_cpu_supports,
 * Rust's is_x86_feature_detected, V8): that can't be seen from outside.
 *
 * ckpt/kinds/cpu.c has the other half: an image says what the session may use.
 */
#ifndef SUPERVISOR_PORTABLE_H
#define SUPERVISOR_PORTABLE_H

#include <stddef.h>

struct portable_variable {
	const char *name;
	const char *value;
	char join; /* between what was there and ours; 0: ours replaces it */
};

extern const struct portable_variable portable_variables[];
extern const size_t portable_n_variables;

/*
 * libgcrypt, with which an X server hashes glyphs, has a file in place of a variable (Using the GNU
 * Crypto Library, "Hardware features"): it is made in the session's own layer, where there is one.
 */
#define PORTABLE_GCRYPT_DIR "/etc/gcrypt"
#define PORTABLE_GCRYPT	    PORTABLE_GCRYPT_DIR "/hwf.deny"
extern const char portable_gcrypt[];

/* "NAME=VALUE" for a session whose environment had @had (NULL: nothing) in that variable.  Caller
 * frees; NULL when memory is out. */
char *portable_setting(const struct portable_variable *v, const char *had);

#endif
