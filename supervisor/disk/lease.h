/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * lease - an image file that stays as it is while it is read, or mapped into a session.
 *
 * Theory of operation
 *
 * A read lease (fcntl F_SETLEASE) is given for a file of one's own that nobody has open for
 * writing, nor mapped by such a descriptor.  From then on the kernel keeps whoever opens it for
 * writing, or truncates it, waiting until the lease is given up, for lease-break-time at most, and
 * we are told by SIGIO.  Removing and renaming it are nobody's business.
 *
 * Inode, size and ctime say whether a file is still what it was only if there is no such
 * descriptor: what is written through a mapping need not change them.  So they are asked for under
 * the lease.
 *
 * There are file systems where the kernel grants leases though others can write to the file, on
 * another host or behind its back (fuse, 9p): only those of this kernel's own are taken.
 */
#ifndef SUPERVISOR_DISK_LEASE_H
#define SUPERVISOR_DISK_LEASE_H

#include <stdbool.h>

struct err;
struct event_base;
struct lease;

/*
 * Keeps a copy of @image, which was opened for reading.  @broken is called, once, when somebody
 * wants to write to it.  There can be only one in a process.  -EAGAIN: somebody has it open for
 * writing.
 */
int lease_take(struct lease **ret, struct event_base *loop, int image, void (*broken)(void *ctx),
	void *ctx);
/* NULL is fine. */
void lease_give_up(struct lease *l);
int lease_fd(const struct lease *l);
/* Nobody has asked for it since it was taken. */
bool lease_is_whole(const struct lease *l);
/* How long, in seconds, the kernel keeps others waiting; negative: no idea. */
long lease_seconds(void);

#endif
