/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * filter - the session's seccomp filter: which calls it may make, and which the supervisor answers.
 */
#ifndef SUPERVISOR_FILTER_FILTER_H
#define SUPERVISOR_FILTER_FILTER_H

#include <stddef.h>

struct err;
struct world_config;

/* Installs the filter for the caller and all its children to come.  Returns the listener. */
int filter_install(const struct world_config *c, struct err *e);

/* The numbers of all calls that this filter may notify; at most FILTER_MAX_NOTIFIED. */
#define FILTER_MAX_NOTIFIED 512
size_t filter_notified(const struct world_config *c, long ret[FILTER_MAX_NOTIFIED]);

#endif
