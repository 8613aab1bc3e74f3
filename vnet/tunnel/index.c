// SPDX-License-Identifier: GPL-2.0-or-later
#include "vnet/tunnel/index.h"

#include <errno.h>
#include <stdlib.h>

#include "vnet/tunnel/crypto.h"

#define BUCKETS_MIN 16 /* a power of two, as are all later sizes */

void vnet_index_fini(struct vnet_index *t)
{
	free(t->buckets);
	*t = (struct vnet_index){0};
}

static struct vnet_index_entry **bucket(const struct vnet_index *t, uint32_t number)
{
	return &t->buckets[number & (t->n_buckets - 1)];
}

static int grow(struct vnet_index *t)
{
	struct vnet_index bigger = {
		.n_buckets = t->n_buckets ? 2 * t->n_buckets : BUCKETS_MIN, .n = t->n};

	bigger.buckets = calloc(bigger.n_buckets, sizeof(*bigger.buckets));
	if (!bigger.buckets)
		return -ENOMEM;
	for (size_t i = 0; i < t->n_buckets; i++) {
		for (struct vnet_index_entry *e = t->buckets[i], *next; e; e = next) {
			struct vnet_index_entry **b = bucket(&bigger, e->number);

			next = e->next;
			e->next = *b;
			*b = e;
		}
	}
	free(t->buckets);
	*t = bigger;
	return 0;
}

struct vnet_index_entry *vnet_index_find(const struct vnet_index *t, uint32_t number)
{
	struct vnet_index_entry *e = t->n ? *bucket(t, number) : NULL;

	while (e && e->number != number)
		e = e->next;
	return e;
}

static void link_in(struct vnet_index *t, struct vnet_index_entry *entry, int kind, void *owner)
{
	struct vnet_index_entry **b = bucket(t, entry->number);

	entry->kind = kind;
	entry->owner = owner;
	entry->next = *b;
	*b = entry;
	t->n++;
}

int vnet_index_add(struct vnet_index *t, struct vnet_index_entry *entry, int kind, void *owner)
{
	int r;

	if (t->n >= t->n_buckets && (r = grow(t)) < 0)
		return r;
	do {
		if ((r = vnet_crypto_random(&entry->number, sizeof(entry->number))) < 0)
			return r;
	} while (vnet_index_find(t, entry->number));
	link_in(t, entry, kind, owner);
	return 0;
}

void vnet_index_remove(struct vnet_index *t, struct vnet_index_entry *entry)
{
	struct vnet_index_entry **b;

	if (!entry->owner)
		return;
	for (b = bucket(t, entry->number); *b != entry; b = &(*b)->next)
		;
	*b = entry->next;
	t->n--;
	*entry = (struct vnet_index_entry){0};
}

void vnet_index_move(struct vnet_index *t, struct vnet_index_entry *from,
	struct vnet_index_entry *to, int kind, void *owner)
{
	const uint32_t number = from->number;

	vnet_index_remove(t, from);
	to->number = number;
	link_in(t, to, kind, owner);
}
