/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * rows - a test for each row of the policy's tables that names a class of names
 * (supervisor/policy).
 *
 *      rows            inside a session, with a private view: each row's call is made with the session's
 *                      names, and its result looked at.  Ends with "N rows ok"
 *      rows --table    every row of the tables has one here
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
extern const struct row number_rows[], owner_rows[], name_rows[];
extern const size_t n_number_rows, n_owner_rows, n_name_rows;

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
