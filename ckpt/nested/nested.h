/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nested - namespaces inside the session's: programs that sandbox themselves.  Private to ckpt.
 *
 * Browsers put their renderers into user, pid, network and ipc namespaces of their own
 * (user_namespaces(7), pid_namespaces(7)).  A session's filter lets programs make those, but
 * neither join one nor make one for mounts (supervisor/policy), so every namespace has a *founder*:
 * the process that came into it first, as number 1 if it is a pid namespace, and all others in it
 * descend from that.  This is what makes a tree with such namespaces possible to rebuild: the
 * founder makes it anew, the others are born in it.
 *
 * Everything else of podrun goes by the session's numbers, which members of a nested pid namespace
 * have, too. Their inner ones are in the records for two uses: to be given at birth, and to be said
 * in calls which such a task makes.
 */
#ifndef CKPT_NESTED_NESTED_H
#define CKPT_NESTED_NESTED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum ckpt_ns { CKPT_NS_USER, CKPT_NS_PID, CKPT_NS_NET, CKPT_NS_IPC, CKPT_NS_UTS, CKPT_N_NS };
#define CKPT_MAX_NESTED 4096
#define CKPT_MAX_INNER	6 /* pid namespaces around one another, without the session's */
#define CKPT_MAX_SET	(CKPT_MAX_INNER + 1)

/* Which namespaces a process is in: numbers of nested ones (from 1), 0 for the session's own. */
struct ckpt_ns_set {
	uint32_t ns[CKPT_N_NS];
};
static inline bool ckpt_ns_any(const struct ckpt_ns_set *s)
{
	for (int i = 0; i < CKPT_N_NS; i++)
		if (s->ns[i])
			return true;
	return false;
}

struct ckpt_id_range {
	uint32_t inside, outside, count; /* outside: as the user namespace around it has them */
};
#define CKPT_MAX_ID_RANGES 16

/* One nested namespace. */
struct ckpt_nested {
	enum ckpt_ns sort;
	uint32_t outer; /* of user and pid namespaces: the one around it */
	uint32_t owner; /* the user namespace that owns it */
	pid_t founder;	/* vpid; it may have gone on into another user namespace inside */
	uint64_t ino;	/* dump only, as is: */
	bool left;	/* a user namespace in which nobody is any more */
	int fd;		/* of that */
	/* user */
	struct ckpt_id_range uids[CKPT_MAX_ID_RANGES], gids[CKPT_MAX_ID_RANGES];
	size_t n_uids, n_gids;
	bool no_setgroups;
	bool loopback; /* net: lo is up */
};

#endif
