/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * check - what this host offers, and what is lost without it: the table behind `podrun check`.
 */
#ifndef SUPERVISOR_CHECK_H
#define SUPERVISOR_CHECK_H

#include <stdbool.h>
#include <stddef.h>

enum check_need {
	CHECK_MORE,  /* something is better with it */
	CHECK_NAMES, /* the kernel's names need it; without it they are rewritten */
	CHECK_FILES, /* sessions with the kernel's names need it */
	CHECK_MOVES, /* they can't be suspended or resumed without it */
	CHECK_ALL,   /* no session can be started without it */
};

struct check {
	const char *name;
	enum check_need need;
	bool (*try)(void); /* in a process of its own: see check_works */
	const char *lost; /* without it */
	const char *get;  /* how to get it */
};
extern const struct check checks[];
extern const size_t n_checks;

/* What a session has less of where its names are rewritten. */
struct check_weaker {
	const char *what, *how;
};
extern const struct check_weaker checks_weaker[];
extern const size_t n_checks_weaker;

/* The first row of need CHECK_NAMES that this host lacks; NULL: names are the kernel's. */
const struct check *check_lacking_names(void);

/* Tries one, in a child that has a few seconds. */
bool check_works(const struct check *check);

#endif
