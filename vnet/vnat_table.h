/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vnat_table - the translator's memory: records in the arena, and indexes that can be made of them
 * again.
 *
 *      arena (the caller's, survives)             this process's
 *      head | sessions[] | flows[]                heads[] -> links[].next ...
 *
 * A flow is in two hash tables, by what the session sees (session, inside, outside) and by its
 * inner leg (near, far), or it is in the free list.  A lingering one is also in the list of those,
 * oldest first.  What is linked is numbers, and none of the links is in the arena, so it does not
 * matter at which instruction a process was killed.
 */
#ifndef VNET_VNAT_TABLE_H
#define VNET_VNAT_TABLE_H

#include "vnet/vnat.h"

/* Where the indexes have a flow. */
struct vnat_links {
	uint32_t next_session; /* in its chain by ends; in the free list */
	uint32_t next_inner;
	uint32_t linger_before, linger_behind;
};

/* First in the arena: is it ours, and of which size? */
struct vnat_head {
	uint64_t magic;
	uint32_t max_sessions, max_flows;
	uint32_t session_size, flow_size;
};

struct vnet_vnat {
	struct vnat_head *head;
	struct vnet_session *sessions;
	struct vnet_flow *flows;
	struct vnat_links *links;
	uint32_t *by_session, *by_inner; /* heads of chains, max_flows of each */
	uint32_t free;			 /* head of the free list */
	uint32_t linger_first, linger_last;
	uint32_t top; /* flows from here on have never been used */
	uint32_t now;
	uint64_t seed;
	uint16_t gate_v4, gate_v6;
};

/* The flow with these ends, whatever its state, or VNET_NONE. */
uint32_t vnat_table_find_session(const struct vnet_vnat *v, uint32_t session,
	const struct vnet_endpoint *inside, const struct vnet_endpoint *outside);
uint32_t vnat_table_find_inner(const struct vnet_vnat *v, const struct vnet_endpoint *near,
	const struct vnet_endpoint *far);

/*
 * A record for a new flow, or VNET_NONE: a free one, or that of the flow that has lingered longest.
 * It is in no index and has zeros in everything but its generation.
 */
uint32_t vnat_table_take(struct vnet_vnat *v);
/*
 * Writes the state of a record whose ends are filled in (HELD or OPEN), and puts it into the
 * indexes.
 */
void vnat_table_commit(struct vnet_vnat *v, uint32_t flow, enum vnet_flow_state state);
/* A record that was taken and not committed. */
void vnat_table_put_back(struct vnet_vnat *v, uint32_t flow);
/* Any state -> FREE. */
void vnat_table_release(struct vnet_vnat *v, uint32_t flow);
/* OPEN -> LINGER. */
void vnat_table_linger(struct vnet_vnat *v, uint32_t flow);

static inline enum vnet_flow_state vnat_state(const struct vnet_flow *f)
{
	return atomic_load_explicit(&f->state, memory_order_acquire);
}

#endif
