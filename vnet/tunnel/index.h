/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * index - the 32-bit numbers by which peers address our handshakes and keys, found by a hash.
 *
 * Numbers are random and never reused while they are in the table, so nobody can choose them to
 * make a chain long.  An entry lies inside what it stands for; the table owns only its buckets.
 */
#ifndef VNET_TUNNEL_INDEX_H
#define VNET_TUNNEL_INDEX_H

#include <stddef.h>
#include <stdint.h>

struct vnet_index_entry { /* zeros: in no table */
	uint32_t number;
	int kind;    /* the owner's word for what this is */
	void *owner; /* NULL: in no table */
	struct vnet_index_entry *next;
};

struct vnet_index { /* zeros: empty */
	struct vnet_index_entry **buckets;
	size_t n_buckets, n;
};

void vnet_index_fini(struct vnet_index *t);
/* Gives @entry (in no table) a number of its own; -ENOMEM, -EIO. */
int vnet_index_add(struct vnet_index *t, struct vnet_index_entry *entry, int kind, void *owner);
/* Takes it out; nothing happens if it is in no table. */
void vnet_index_remove(struct vnet_index *t, struct vnet_index_entry *entry);
/* @to (in no table) gets the number of @from, which has none then. */
void vnet_index_move(struct vnet_index *t, struct vnet_index_entry *from,
	struct vnet_index_entry *to, int kind, void *owner);
struct vnet_index_entry *vnet_index_find(const struct vnet_index *t, uint32_t number);

#endif
