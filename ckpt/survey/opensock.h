/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * opensock - sockets of a large descriptor table.
 *
 * Theory of operation
 *
 * What an open file is like stands in fdinfo, at 5 to 8 us for each descriptor, and a server may have
 * thousands.  Nearly all of those are sockets, of which little can be said: they have no position, are
 * all of one mount, and each inode has one open file.  So a duplicate tells the same, its inode and
 * its flags, in a quarter of that time.
 *
 * It does not tell locks: one of flock(2) is the open file's, so where there is no other it is in
 * nobody's way, and record locks are looked for in regular files only (kinds/posix_locks.c).  Nor does
 * it tell close-on-exec, which is the descriptor's own: the task is asked (ckpt_fd.unsure).
 */
#ifndef CKPT_SURVEY_OPENSOCK_H
#define CKPT_SURVEY_OPENSOCK_H

#include <stdbool.h>
#include <sys/types.h>

struct ckpt_opensock {
	bool on;
	int mnt_id; /* of all, as fdinfo has it */
	dev_t dev;
};

/* One of them. */
struct ckpt_opensock_look {
	ino_t ino;
	int flags; /* open(2)'s, without O_CLOEXEC */
};

/* Not on where the kernel does not tell what they have in common. */
struct ckpt_opensock ckpt_opensock_begin(void);
/* True if descriptor @fd of the process @pidfd is a socket.  By any thread. */
bool ckpt_opensock_look(
	const struct ckpt_opensock *s, int pidfd, int fd, struct ckpt_opensock_look *ret);

#endif
