/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stamp - the time stamps of our initiations (TAI64N), which must never go back.
 *
 * A peer remembers the greatest one it has seen from a key and takes no other initiation, so that
 * an old one can't be replayed.  Clocks do go back, and the same key is used on one host after
 * the other, so the last stamp is kept in a file, outside of any image, and the next is above it
 * whatever the clock says.  The file is locked as long as it is open: one configuration is one
 * live session.
 *
 * Who asks for a stamp has packets to look after and does not wait for a disk: the file is written
 * at once, which outlives the process, and brought to the disk in a thread.  A host that loses its
 * power between the two, and comes back with a clock that is behind, is refused by its peer until
 * the clock is right.
 */
#ifndef VNET_TUNNEL_STAMP_H
#define VNET_TUNNEL_STAMP_H

#include "vnet/tunnel/message.h"

struct err;

struct vnet_stamp {
	int fd; /* -1: only in memory */
	uint8_t last[VNET_STAMP_LEN];
};

/* In memory only: for who makes a key for himself, used once. */
void vnet_stamp_init(struct vnet_stamp *s);
/* The file is @directory/@name, and is made.  -EBUSY: somebody has it. */
int vnet_stamp_open(struct vnet_stamp *s, const char *directory, const char *name, struct err *e);
void vnet_stamp_close(struct vnet_stamp *s);
/*
 * One that is above all before it, for about @unix_ns nanoseconds since 1970; in the file when this
 * returns, and on its way to the disk.
 */
int vnet_stamp_next(struct vnet_stamp *s, uint64_t unix_ns, uint8_t ret[VNET_STAMP_LEN]);

#endif
