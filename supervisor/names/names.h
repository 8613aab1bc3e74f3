/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * names - which names of a session the kernel's namespaces hold, and which the supervisor rewrites.
 *
 * A session's names never change; physical ones may (Zap, section 3).  Class by class the table
 * says *identity*: virtual equals physical inside a namespace and no call is ever trapped - or
 * *translated*: the supervisor answers the calls that take or return such a name.  The seccomp
 * filter is generated from it.
 */
#ifndef SUPERVISOR_NAMES_NAMES_H
#define SUPERVISOR_NAMES_NAMES_H

struct err;
struct world_config;

enum names_class {
	NAMES_PID,   /* processes, threads, groups, sessions */
	NAMES_IPC,   /* System V keys and ids, message queues */
	NAMES_USER,  /* uids and gids */
	NAMES_PTS,   /* pseudo terminals */
	NAMES_TIME,  /* monotonic and boot time */
	NAMES_HOST,  /* host name */
	NAMES_FILE,  /* paths */
	NAMES_LAYER, /* files of the host below the layer of a root inside (adopt.h) */
	NAMES_CLASS_MAX
};
#define NAMES_BIT(class) (1U << (class))

enum names_way { NAMES_IDENTITY, NAMES_TRANSLATED };

struct names {
	enum names_way way[NAMES_CLASS_MAX];
};

/* What a class is called, and what holds it where it is an identity. */
const char *names_class_name(enum names_class class);
const char *names_class_holder(enum names_class class);

/*
 * The table for a session.  Under kernel names everything is held by the kernel, but users for a
 * root inside, who has more ids than the one that is mapped; without namespaces users are
 * translated wherever they are not the caller's own, and time where the session has come from
 * elsewhere.
 */
struct names names_choose(const struct world_config *c);
/* Refuses what this version can't translate. */
int names_check(const struct names *n, struct err *e);
/* The translated classes as bits. */
unsigned names_translated(const struct names *n);

#endif
