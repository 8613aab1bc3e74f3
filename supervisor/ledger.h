/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger - which images this host has used up, and which it knows to be whole.
 *
 * A suspended image is a *move*: its first resume on this host consumes it.  The ledger is a text
 * file of one line per consumed image id, appended under a lock and synced before anything of the
 * session runs, so that of two resumes at the same time one wins.
 *
 * Beside it is the index of image files which this host wrote or verified: while inode, size and
 * ctime of such a file are unchanged it need not be hashed again.
 */
#ifndef SUPERVISOR_LEDGER_H
#define SUPERVISOR_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

struct err;

/* 0 and durably recorded, or -EALREADY (ERR_STATE) with who had it. */
int ledger_consume(const char *state_dir, const uint8_t id[16], const char *name, struct err *e);
/* Takes it back: the resume failed before anything ran. */
int ledger_give_back(const char *state_dir, const uint8_t id[16], struct err *e);
/* 1 consumed (ERR_STATE in @e), 0 not. */
int ledger_check(const char *state_dir, const uint8_t id[16], struct err *e);

/* Remembers the file behind @fd as whole; failing to is no failure. */
void ledger_know_file(const char *state_dir, int fd);
bool ledger_knows_file(const char *state_dir, int fd);

#endif
