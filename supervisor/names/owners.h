/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * owners - who owns a file, for a root inside and its virtual users.
 */
#ifndef SUPERVISOR_NAMES_OWNERS_H
#define SUPERVISOR_NAMES_OWNERS_H

struct err;
struct owners;

/* @files_dir: where to remember that owners have been recorded at all. */
int owners_create(struct owners **ret, const char *files_dir, struct err *e);
void owners_free(struct owners *o);

#endif
