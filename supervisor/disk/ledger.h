/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ledger - which images this host has used up, and which it knows to be whole.
 *
 * A suspended image is a *move*: its first resume on this host consumes it.  The ledger is a text
 * file of one line per image id.  Two steps lead there: a supervisor *claims* the image, so that of
 * two resumes at the same time one wins; its worker *confirms* that, durably, as the last thing
 * before anything of the session runs.  A claim that was not confirmed when its supervisor died
 * counts no more: nothing has run, and the image can be resumed again.
 *
 * Beside it is the index of image files which this host wrote or verified: while inode, size and
 * ctime of such a file are unchanged it need not be hashed again.  That says something only of a
 * file which nobody has open for writing (lease.h) and which nobody else may write to.
 */
#ifndef SUPERVISOR_DISK_LEDGER_H
#define SUPERVISOR_DISK_LEDGER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* 0, or -EALREADY (ERR_STATE) with who had it.  The claim is this process's. */
int ledger_claim(const char *state_dir, const uint8_t id[16], const char *name, struct err *e);
/*
 * Who confirms the claim of process @pid, by its child, which looks from elsewhere then (another
 * root, another /proc).  0 and durably recorded, or -ESTALE if there is no such claim any more.
 */
#define LEDGER_MAX_HOLDER 40
struct ledger_claimant {
	int fd;
	char holder[LEDGER_MAX_HOLDER];
};
int ledger_claimant_open(struct ledger_claimant *ret, const char *state_dir, pid_t pid, struct err *e);
int ledger_confirm(const struct ledger_claimant *c, const uint8_t id[16], struct err *e);
void ledger_claimant_fini(struct ledger_claimant *c);
/* Takes back what this process has claimed, if it has: the resume failed before anything ran. */
int ledger_give_back(const char *state_dir, const uint8_t id[16], struct err *e);
/* 1 consumed or claimed (ERR_STATE in @e), 0 not. */
int ledger_check(const char *state_dir, const uint8_t id[16], struct err *e);

/* Remembers the file behind @fd as whole; failing to is no failure. */
void ledger_know_file(const char *state_dir, int fd);
bool ledger_knows_file(const char *state_dir, int fd);

#endif
