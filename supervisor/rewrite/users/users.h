/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * users - whose a session's processes and files are, where no user namespace says it.  Private to
 * rewrite/.
 *
 * To the host there is one user, the caller, and nothing here changes what he may.  The session has
 * ids of its own where it was begun by another account, perhaps on another host, or with `--user
 * root`:
 *
 *      another account   its uid and gid stand for the caller's, as a user namespace with one id
 *                        mapped has it: nobody in the session can become anybody else
 *      root              besides, processes take other ids on, and files are given away (names/users.h,
 *                        names/owners.h); the same words and attributes hold both as under kernel names, so
 *                        that an image goes either way
 *
 * Whatever belongs to others on the host is nobody's.  What is said of capabilities is what the
 * user namespace's root would be told (users/caps.c).  Where the session's ids are the caller's own
 * none of this is there, and no call is trapped for it.
 */
#ifndef SUPERVISOR_REWRITE_USERS_USERS_H
#define SUPERVISOR_REWRITE_USERS_USERS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervisor/names/users.h"

struct err;
struct owners;
struct path_question;
struct path_row;
struct question;
struct rewrite;
struct task;
struct tasks;
struct ucred;
struct user_regs_struct;
struct world_config;

#define USERS_LAST_NARROW \
	182 /* chown of i386: the last of its calls with ids of 16 bits (asm/unistd_32.h) */

struct rewrite_users {
	bool root;	     /* ids are taken on */
	uid_t uid, host_uid; /* who it begins as, and who that is on the host */
	gid_t gid, host_gid;
	struct users_groups *groups; /* shared with the supervisor */
	struct owners *owners;	     /* of root's files; NULL */
};

/*
 * Makes rw->tasks.users, unless the session's ids are the caller's own; @groups is borrowed for
 * good.
 */
int rewrite_users_begin(struct rewrite *rw, const struct world_config *c,
	struct users_groups *groups, struct err *e);

/* Of the process of @host; of one that is gone whom the session began as. */
void rewrite_users_load(const struct rewrite_users *us, pid_t host, struct users *ret);
/*
 * The owners of a file, and @path to it (NULL: none is recorded), as thread @viewer on the host is
 * to see them.
 */
void rewrite_users_show(const struct rewrite_users *us, pid_t viewer, const char *path,
	uint32_t *uid, uint32_t *gid);
/* The owner of an object without users of its own (System V, message queues). */
void rewrite_users_show_plain(const struct rewrite_users *us, uint32_t *uid, uint32_t *gid);

/* What the kernel tells of the sender of a signal, whose number on the host is @host. */
void rewrite_users_sender(const struct tasks *t, pid_t host, siginfo_t *info);
/* The credentials of the peer of a socket (effective ids), or of a message's sender (real ones). */
void rewrite_users_peer(const struct rewrite_users *us, struct ucred *cred, bool effective);
/* Those that @task says to send along become the host's: 0, or -EPERM if they are not its own. */
int rewrite_users_send(const struct rewrite_users *us, const struct task *task, struct ucred *cred);

/* The supplementary groups of who is @u; how many. */
size_t rewrite_users_groups(
	const struct rewrite_users *us, const struct users *u, gid_t ret[USERS_MAX_GROUPS]);
/* PR_SET_KEEPCAPS, and what follows. */
long rewrite_users_prctl(struct question *q);
/* PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_CAP_AMBIENT (users/caps_calls.c). */
long users_caps_prctl(struct question *q);
/*
 * capget(2) and capset(2), at their entry, as a row of calls.h has it; where there is a root
 * inside.
 */
int users_caps_enter(struct rewrite *rw, struct task *task, struct user_regs_struct *regs);
/*
 * A task has called exec: its saved ids are the effective ones, and what the kernel has told it of
 * ids is put right.
 */
void rewrite_users_execed(struct rewrite *rw, struct task *task);

/* ---- files (users/files.c), for view/answers.c ----------------------------------------------- */

/* Is it a call that tells or sets an owner, and are there any? */
bool rewrite_users_asked(const struct question *q);
/*
 * What such a call says of the host's file @said (relative to @dirfd; "" is the descriptor itself),
 * as the kernel would find it; @row is its row.  @whole is the session's path; NULL where those are
 * the host's.
 */
long rewrite_users_host(struct question *q, const struct path_row *row, int dirfd, const char *said,
	const char *whole);
/* chown and its like, as a path_row has them. */
long rewrite_users_chown_inside(struct path_question *p);
long rewrite_users_chown_outside(struct path_question *p);

#endif
