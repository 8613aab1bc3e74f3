/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * notify_call - one call being answered, as handlers see it.  Private to the handlers.
 */
#ifndef SUPERVISOR_FILTER_NOTIFY_CALL_H
#define SUPERVISOR_FILTER_NOTIFY_CALL_H

#include <errno.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct notify;
struct owners;
struct users_groups;

struct notify_call {
	struct notify *notify;
	const struct seccomp_notif *request;
	pid_t tid; /* on the host */
	struct seccomp_notif_resp answer;
	bool later; /* somebody else answers */
};

/* Its @i-th argument, from 0. */
static inline uint64_t notify_arg(const struct notify_call *c, int i)
{
	return c->request->data.args[i];
}

/* The call returns @value and is not made. */
static inline void notify_return(struct notify_call *c, int64_t value)
{
	c->answer.val = value;
}

/* @error is negative. */
static inline void notify_fail(struct notify_call *c, int error)
{
	c->answer.error = error;
}

/* The kernel does the call as if it had not been asked. */
static inline void notify_continue(struct notify_call *c)
{
	c->answer.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
}

/* The task's memory.  0 or -EFAULT; writing checks first that the call is still waiting. */
int notify_read(const struct notify_call *c, uint64_t addr, void *data, size_t len);
int notify_write(const struct notify_call *c, uint64_t addr, const void *data, size_t len);
/* A path with its NUL; -EFAULT, -ENAMETOOLONG. */
int notify_read_path(const struct notify_call *c, uint64_t addr, char *path, size_t size);

/* Descriptors of the host's /proc and of the session's /; what owners.c keeps. */
int notify_proc(const struct notify *n);
int notify_root(const struct notify *n);
struct owners *notify_owners(const struct notify *n);
struct users_groups *notify_groups(const struct notify *n);

typedef void notify_handler(struct notify_call *c);

/* supervisor/names/users_calls.c */
notify_handler users_get, users_get_three, users_get_groups, users_set_groups, users_set,
	users_set_fs, users_peer, users_keep_caps, users_limit;
/* supervisor/names/owners_calls.c */
notify_handler owners_stat, owners_statx, owners_chown;
/* supervisor/names/adopt.c */
notify_handler adopt_before;

#endif
