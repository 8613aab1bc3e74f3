/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * policy - what a session may ask the kernel for: one table, system call by system call.
 *
 * MobiDesk (section 4.1) sorts the calls of a confined root into three classes, besides those that
 * concern nobody else:
 *
 *      plain      works on names and objects that are the session's own: allowed
 *      host       concerns the whole machine: refused
 *      limits     raises limits for those with privilege: acts as for an ordinary user
 *      options    allowed or not depending on its arguments: checked, or answered by the supervisor
 *
 * A call that is not in the table is ENOSYS, as on a kernel that does not have it.  So is one whose
 * effects no image can hold (io_uring, aio, landlock): programs know how to live without it.  Where
 * io_uring is wanted all the same (--io-uring) it is let through in front of all this (filter.c).
 *
 * The namespaces already confine everything; the table narrows what is left.  Under kernel names
 * "limits" need nothing from us: the kernel looks for privilege over the host, which nobody
 * inside has.
 */
#ifndef SUPERVISOR_POLICY_POLICY_H
#define SUPERVISOR_POLICY_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "supervisor/names/names.h"

enum policy_class { POLICY_PLAIN, POLICY_HOST, POLICY_LIMITS, POLICY_OPTIONS };

enum policy_action {
	POLICY_ALLOW,
	POLICY_EPERM,
	POLICY_ENOSYS,
	POLICY_EINVAL, /* as where the kernel does not know the operation */
	POLICY_NOTIFY, /* the supervisor answers: supervisor/filter/notify.c */
	POLICY_TRACE,  /* a tracer sees it, nobody else: SYS_PODRUN_SENTINEL */
};

struct policy_call {
	const char *name;
	uint16_t nr; /* x86-64 */
	enum policy_class class;
	enum policy_action action; /* when no rule of policy_rules matches */
	unsigned names; /* bits of enum names_class: notified where one of them is translated */
	const char *why;
};

/* By number, ascending. */
extern const struct policy_call policy_calls[];
extern const size_t policy_n_calls;
const struct policy_call *policy_find(int nr);

/*
 * What depends on an argument: where (argument & mask) == value the action is this one.  Only the
 * argument registers are looked at, never memory, which the session could change meanwhile.
 */
struct policy_rule {
	uint16_t nr;
	uint8_t arg;
	uint32_t mask, value; /* of the low half; most of these calls don't look at the other */
	enum policy_action action;
	const char *why;
	unsigned names; /* if set: only where one of these classes is translated */
	bool whole;	/* the high half has to be 0 */
};
extern const struct policy_rule policy_rules[];
extern const size_t policy_n_rules;
/* Is @r about call @nr, where the classes in @translated (bits) are? */
static inline bool policy_rule_is_about(const struct policy_rule *r, int nr, unsigned translated)
{
	return r->nr == nr && (!r->names || r->names & translated);
}

/*
 * What happens to a call instead where a class of names is translated by the rewriter
 * (supervisor/rewrite) and no rule matches.  Of several rows for a call the first whose class is
 * translated counts.
 */
struct policy_translated {
	uint16_t nr;
	enum names_class class;
	enum policy_action action;
};
extern const struct policy_translated policy_translated[];
extern const size_t policy_n_translated;
/* The row for @nr where the classes in @translated (bits) are; NULL if none counts. */
const struct policy_translated *policy_find_translated(int nr, unsigned translated);

/*
 * i386: its own numbers, up to where those of all architectures are the same (POLICY_SAME_FROM).  A
 * 32-bit program is as confined as a 64-bit one (int 0x80 works in every process): nearly every
 * call is *like* one of x86-64, which says what happens to it, rules on arguments and translation
 * included. Structures in memory may differ; that concerns who looks at them
 * (supervisor/rewrite/compat/compat.h).
 */
#define POLICY_SAME_FROM 424
/*
 * The classes whose calls are translated for 32-bit programs, too.  Under kernel names root inside
 * is for 64-bit ones.
 */
#define POLICY_CLASSES32                                                       \
	(NAMES_BIT(NAMES_PID) | NAMES_BIT(NAMES_IPC) | NAMES_BIT(NAMES_FILE) | \
		NAMES_BIT(NAMES_HOST) | NAMES_BIT(NAMES_TIME))
static inline unsigned policy_classes32(unsigned translated)
{
	return translated &
	       (POLICY_CLASSES32 |
		       (translated & NAMES_BIT(NAMES_PID) ? NAMES_BIT(NAMES_USER) : 0));
}

struct policy_call32 {
	const char *name;
	uint16_t nr;
	int16_t like; /* of x86-64; -1: none, and what follows holds */
	enum policy_action action;
	const char *why;
};
/* By number, ascending. */
extern const struct policy_call32 policy_calls32[];
extern const size_t policy_n_calls32;
/* NULL for a number that is the same everywhere, and for one that nobody has. */
const struct policy_call32 *policy_find32(int nr);

/* Besides the rules and rows of what a call is like, and before them: numbers of i386. */
extern const struct policy_rule policy_rules32[];
extern const size_t policy_n_rules32;
extern const struct policy_translated policy_translated32[];
extern const size_t policy_n_translated32;
const struct policy_translated *policy_find_translated32(int nr, unsigned translated);

/* The number of x86-64 that @nr of i386 is like, -1 if there is none; and back, the lowest. */
int policy_number64(int nr);
int policy_number32(int nr);

#endif
