/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * attack - what a session tries against processes that are none of its own, and against podrun's.
 *
 *      attack victim FILE              is attacked: writes what one needs to know of it to FILE, waits
 *      attack NAME VICTIM-FILE         inside a session: one attack (attack.c, races.c, births.c)
 *
 * An attack prints what has got through and ends with 1 if anything has;
 * tests/it/rewrite_attack.py looks at the victims afterwards.
 */
#ifndef TESTS_ATTACK_ATTACK_H
#define TESTS_ATTACK_ATTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As a victim tells of itself. */
struct victim {
	pid_t pid;	 /* on the host */
	uint64_t secret; /* where in its memory SECRET is */
	int shm;	 /* id of a segment */
	char socket[108];
};

#define SECRET	0x5ec2e75ec2e75ec2ULL
#define SHM_KEY 0x70647265

/* Counts and tells what ought to have failed: @r of @what is not negative. */
void reached(long r, const char *what);
extern int failures;

struct attack {
	const char *name;
	void (*run)(const struct victim *v);
};
extern const struct attack race_attacks[], birth_attacks[];
extern const size_t n_race_attacks, n_birth_attacks;

#endif
