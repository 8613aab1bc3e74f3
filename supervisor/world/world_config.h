/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * world_config - what a world is to be like: told to world_create, and handed on to every module
 * that makes a part of it.  All pointers are borrowed from whoever creates the world.
 */
#ifndef SUPERVISOR_WORLD_WORLD_CONFIG_H
#define SUPERVISOR_WORLD_WORLD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

struct skeleton;

struct ckpt_mapped;

enum world_net { WORLD_NET_NONE, WORLD_NET_HOST, WORLD_NET_VNAT, WORLD_NET_PASSTHROUGH };

/* Of WORLD_NET_VNAT; all as text. */
struct world_network {
	const char *address4, *address6;
	const char *gateway4, *gateway6; /* where names are asked for */
	unsigned mtu;
	const char *search; /* of a session that begins: domains, with blanks between; or NULL */
};

struct world_bind {
	char *source; /* on the host, absolute */
	char *target; /* in the session, absolute */
	bool read_only;
};

struct world_config {
	const char *name;
	const char *hostname;
	const char *config_dir; /* podrun's own, of the user */
	const char *
		state_dir; /* likewise: what has to be removed after a crash is noted there; NULL */
	const char *files_dir; /* the session's own files on the host: upper/ work/ tmp/ run/ */
	const char *root;      /* --root DIR, or NULL for the host's own / */
	bool as_root;	       /* --user root: uid 0 inside */
	bool rewrite; /* no namespaces: numbers of tasks are rewritten, all else is the host's */
	bool view;    /* with rewrite: a private view of files (rewrite/view/view.h) */
	uid_t uid;    /* who one is inside otherwise: who started it, on whatever host */
	gid_t gid;
	enum world_net net;
	struct world_network network;
	const struct world_bind *binds;
	size_t n_binds;
	int64_t monotonic_offset_ns; /* the session's less the host's, 0 for a new session */
	int64_t boottime_offset_ns;
	bool early; /* before its files have come: world_settle */
	uint64_t max_pids; /* 0: no limit */
	bool io_uring;	   /* programs may use it; never with rewrite */
	bool portable;	   /* use no CPU feature that another host may lack (portable.h) */
	int parent_userns; /* descriptor, -1 for none */
	/*
	 * Directories of the host that the session must be able to write to (in its own layer),
	 * such as the user's home and working directory.  Needed where they lie below directories
	 * of other users, which an overlay can't copy up.  Those that don't exist are ignored.
	 */
	const char *const *places;
	size_t n_places;
	/* Directories of the host that look empty inside: podrun's own state. */
	const char *const *hidden;
	size_t n_hidden;
	const struct ckpt_mapped *mapped; /* what the filter watches over; NULL */
	const struct skeleton *skeleton;  /* for a root inside on the host's files, or NULL */
};

/* Where there is no layer over it, the host's own / is no root of one's own. */
static inline const char *world_root(const struct world_config *c)
{
	return c->root && strcmp(c->root, "/") != 0 ? c->root : NULL;
}

#endif
