/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * paths - where podrun keeps things for one user, and what names of sessions look like.
 *
 *      runtime   $XDG_RUNTIME_DIR/podrun, else /run/user/UID/podrun, else podrun-UID in the
 *                temporary directory: NAME/control is a session's socket
 *      state     $XDG_STATE_HOME/podrun: sessions/NAME/ (record, log, supervisor.log, files/),
 *                images/, ledger
 *      config    $XDG_CONFIG_HOME/podrun: config, key, trusted
 *
 * All are made 0700 on first use; one that belongs to somebody else is refused.
 */
#ifndef SUPERVISOR_DISK_PATHS_H
#define SUPERVISOR_DISK_PATHS_H

#include <stdbool.h>
#include <stddef.h>

struct err;

struct paths {
	char *runtime;
	char *state;
	char *config;
};

/* From the environment; makes the directories.  -EPERM for one that is another's. */
int paths_init(struct paths *ret, struct err *e);
void paths_fini(struct paths *p);
/* Makes the runtime directory again, if it is gone and can be made. */
int paths_renew_runtime(const struct paths *p, struct err *e);

/* [a-zA-Z0-9][a-zA-Z0-9_.-]*, at most PATHS_MAX_NAME bytes. */
#define PATHS_MAX_NAME 64
bool paths_valid_name(const char *name);
/* May this be where a volume is in a session?  From /, below it, without "." and "..". */
bool paths_valid_target(const char *path);
/* The same as an ERR_USAGE. */
int paths_check_name(const char *name, struct err *e);
/* Refuses OWNER/NAME, for what is done with a session's files. */
int paths_check_own(const char *name, struct err *e);
/* A name nobody has chosen: two words, from @seed. */
void paths_make_name(unsigned seed, char ret[PATHS_MAX_NAME]);

/* Fresh strings, freed by the caller; NULL when memory ran out.  @file may be NULL. */
char *paths_session(const struct paths *p, const char *name, const char *file);
char *paths_runtime(const struct paths *p, const char *name, const char *file);
/* The default place of a suspended session's image, or of its snapshot @copy (from 1). */
char *paths_image(const struct paths *p, const char *name, unsigned copy);

/* Names of all sessions with a record, sorted; caller frees each and the array. */
int paths_list(const struct paths *p, char ***ret, size_t *ret_n, struct err *e);

#endif
