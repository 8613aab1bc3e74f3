/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * ns - the namespaces of a session, made by an ordinary user.
 */
#ifndef SUPERVISOR_WORLD_NS_H
#define SUPERVISOR_WORLD_NS_H

#include <stdint.h>
#include <sys/types.h>

struct err;
struct world_config;

/* The one user and group of a session, inside and as the parent user namespace numbers them. */
struct ns_ids {
	uid_t uid, outer_uid;
	gid_t gid, outer_gid;
};

/*
 * Clones the calling (single-threaded) process into new user, pid, mount, ipc, uts and network
 * namespaces.  Returns the child's pid in the parent, with a pidfd, and 0 in the child, with the
 * ids it has yet to map.  The child's parent is the caller, also below a parent user namespace.
 */
pid_t ns_clone(const struct world_config *c, struct ns_ids *ret_ids, int *ret_pidfd,
	struct err *e);

/* Where a time namespace is told of its offsets, as long as nobody is in it. */
struct ns_clocks {
	int fd; /* -1: the kernel has no such namespace */
	int64_t monotonic_ns, boottime_ns; /* the offsets of whoever made it */
};

/*
 * In the child, first thing: maps its ids, makes the time namespace that its children will be in,
 * sets the host name and brings the loopback up.  The host's /proc must still be mounted.  The
 * caller closes ret_clocks->fd.
 */
int ns_enter(const struct world_config *c, const struct ns_ids *ids, struct ns_clocks *ret_clocks,
	struct err *e);
/* Offsets to the caller's clocks, before its first child.  0, or a negative errno. */
int ns_set_clocks(const struct ns_clocks *c, int64_t monotonic_ns, int64_t boottime_ns);

/*
 * Of a virtual network, behind that: makes its interface net0.  The other end of it comes back, and
 * a socket of sock_diag(7) that tells of the namespace's sockets.
 */
int ns_network(const struct world_config *c, int *ret_tun, int *ret_diag, struct err *e);

/* Descriptors of the caller's namespaces, in this order; -1 for one the kernel does not have. */
enum ns_kind { NS_USER, NS_PID, NS_MNT, NS_NET, NS_IPC, NS_UTS, NS_TIME, NS_KIND_MAX };
/* ret[NS_TIME] is the one of the caller's children. */
int ns_open(int ret[NS_KIND_MAX], struct err *e);

#endif
