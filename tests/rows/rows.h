/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rows - a test for each row of the policy's tables that names a class of names
 * (supervisor/policy).
 *
 *      rows            inside a session, with a private view: each row's call is made with the session's
 *                      names, and its result looked at.  Ends with "N rows ok"
 *      rows --users    those of users, in a session that is root inside
 *      rows --list     what it has rows for
 *      rows --since MONOTONIC BOOTTIME    those about time, in one that has come from elsewhere
 *      rows32          the same as a 32-bit program, with rows of its own (rows32.c)
 *      rows_table PROGRAM x86-64|i386      every row of the tables has one there
 *
 * A row is a call, or one value of the argument that a policy_rule looks at.
 */
#ifndef TESTS_ROWS_ROWS_H
#define TESTS_ROWS_ROWS_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CALL 0xffffffffU /* a whole call; no rule looks for this value */

struct row {
	int nr;
	uint32_t value;
	void (*run)(void);
};
extern const struct row number_rows[], owner_rows[], name_rows[], clock_rows[];
extern const size_t n_number_rows, n_owner_rows, n_name_rows, n_clock_rows;
extern int64_t row_since[2]; /* (clocks.c); 0: not told */
/* Of users. */
extern const struct row user_rows[];
extern const size_t n_user_rows;
void row_registers(void); /* what calls of 64-bit programs leave alone (registers.c) */
/* Of 64-bit programs that make 32-bit calls (interrupt.c), or of 32-bit programs (rows32.c). */
extern const struct row other_rows[];
extern const size_t n_other_rows;

#ifdef __i386__
/* What the calls of these names have; the C library makes others. */
#define SYS_newfstatat SYS_fstatat64
struct row_stat {
	uint32_t dev, ino;
	uint16_t st_mode, nlink, uid, gid;
	uint32_t rdev, st_size, rest[10];
};
struct row_stat_at {
	uint32_t before[4], st_mode, nlink, uid, gid, rdev[2], pad, st_size, rest[12];
};
#define ROW_UID	       uid
#define ROW_getrlimit  SYS_ugetrlimit
#define ROW_setrlimit  SYS_setrlimit
#define ROW_UNLIMITED  INT32_MAX /* of SYS_getrlimit */
#define ROW_getsockopt SYS_getsockopt
#else
#define ROW_UID	       st_uid
#define ROW_getrlimit  SYS_getrlimit
#define ROW_setrlimit  SYS_setrlimit
#define ROW_UNLIMITED  RLIM_INFINITY
#define ROW_getsockopt SYS_getsockopt
#define row_stat    stat
#define row_stat_at stat
#endif

#define N(a) (sizeof(a) / sizeof((a)[0]))

#define ROW_CHECK(cond)                                                             \
	do {                                                                        \
		if (!(cond)) {                                                      \
			printf("FAIL: %s:%d: %s (%s)\n", __FILE__, __LINE__, #cond, \
				strerror(errno));                                   \
			fflush(stdout);                                             \
			_exit(1);                                                   \
		}                                                                   \
	} while (0)

#define ROW_FAILS(call, error) ROW_CHECK((errno = 0, (call)) == -1 && errno == (error))

/* What all know: ourselves, a child that sleeps, a number that nobody has. */
extern pid_t row_self, row_child;
#define ROW_NOBODY 31000

#endif
