/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * late - libraries that are loaded when they are needed.
 *
 * To load a library takes each command that starts some tenths of a millisecond, and those that it
 * needs in turn as much each.  What few commands need, and has many below it, is loaded by the
 * first who does (dlopen(3)).
 */
#ifndef BASE_LATE_H
#define BASE_LATE_H

#include <stddef.h>

struct err;

struct late_symbol {
	const char *name;
	void *to; /* where its address goes: a pointer to a pointer */
};

/*
 * For a member of @table that has the symbol's name, and its address' type.  What a header calls
 * otherwise by a macro is looked for under the name it really has.
 */
#define LATE(table, symbol) LATE_NAMED(table, symbol)
#define LATE_NAMED(table, symbol)                                        \
	{                                                                \
#symbol, (1 ? &(table).symbol : (typeof(&symbol) *)NULL) \
	}

/*
 * Loads @library, for good, and has the addresses of @n symbols put where they belong; nothing is
 * put anywhere if one is missing.  0, also if that has been done before; ERR_FAILED.
 */
int late_load(const char *library, const struct late_symbol *symbols, size_t n, struct err *e);

#endif
