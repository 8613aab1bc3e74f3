// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mapping - hash chains and a free list of indices into the records, both in memory of our own.
 *
 * Only the search for a record to give up looks at all of them; it is needed when a session has a
 * thousand ports open at once, and costs less than the socket that follows.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/base.h"
#include "vnet/datagram/mapping.h"

#define NONE	 UINT32_MAX
#define SESSIONS 256 /* sizes the counts: sessions are numbered from 0 */

struct vnet_mappings {
	struct vnet_mapping *records;
	uint32_t n;
	uint32_t top; /* no record at or above this is in use */
	uint32_t free;
	uint32_t *next;	   /* of the chain of a bucket, or of the free list */
	uint32_t *buckets; /* as many as records, a power of two or not */
	uint32_t counts[SESSIONS];
	uint64_t seed;
};

static uint32_t *bucket_of(
	struct vnet_mappings *t, uint32_t session, uint8_t kind, const struct vnet_endpoint *inside)
{
	uint64_t h = vnet_endpoint_hash(inside, t->seed ^ ((uint64_t)session << 8 | kind));

	return &t->buckets[h % t->n];
}

static bool counts(const struct vnet_mapping *m)
{
	return !m->published;
}

static void link_record(struct vnet_mappings *t, uint32_t i)
{
	const struct vnet_mapping *m = &t->records[i];
	uint32_t *b = bucket_of(t, m->session, m->kind, &m->inside);

	/* Published ones are found first. */
	while (!m->published && *b != NONE && t->records[*b].published)
		b = &t->next[*b];
	t->next[i] = *b;
	*b = i;
	t->counts[m->session % SESSIONS] += counts(m);
	t->top = MAX(t->top, i + 1);
}

struct vnet_mappings *vnet_mappings_new(struct vnet_mapping *records, uint32_t n)
{
	struct vnet_mappings *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->records = records;
	t->n = n;
	t->free = NONE;
	t->next = calloc(n, sizeof(*t->next));
	t->buckets = calloc(n, sizeof(*t->buckets));
	if (!t->next || !t->buckets) {
		vnet_mappings_free(t);
		return NULL;
	}
	if (getrandom(&t->seed, sizeof(t->seed), 0) < 0)
		t->seed = io_now_ns();
	memset(t->buckets, 0xff, n * sizeof(*t->buckets));
	for (uint32_t i = n; i--;) {
		if (records[i].state) {
			link_record(t, i);
			continue;
		}
		t->next[i] = t->free;
		t->free = i;
	}
	return t;
}

void vnet_mappings_free(struct vnet_mappings *t)
{
	if (!t)
		return;
	free(t->next);
	free(t->buckets);
	free(t);
}

static struct vnet_mapping *find_from(struct vnet_mappings *t, uint32_t i, uint32_t session,
	uint8_t kind, const struct vnet_endpoint *inside)
{
	for (; i != NONE; i = t->next[i]) {
		struct vnet_mapping *m = &t->records[i];

		if (m->session == session && m->kind == kind &&
			vnet_endpoint_equal(&m->inside, inside))
			return m;
	}
	return NULL;
}

struct vnet_mapping *vnet_mappings_find(struct vnet_mappings *t, uint32_t session,
	enum vnet_mapping_kind kind, const struct vnet_endpoint *inside)
{
	return find_from(t, *bucket_of(t, session, kind, inside), session, kind, inside);
}

struct vnet_mapping *vnet_mappings_find_next(
	struct vnet_mappings *t, const struct vnet_mapping *m)
{
	return find_from(
		t, t->next[vnet_mappings_index(t, m)], m->session, m->kind, &m->inside);
}

struct vnet_mapping *vnet_mappings_add(struct vnet_mappings *t, const struct vnet_mapping *m)
{
	uint32_t i = t->free;
	struct vnet_mapping *r;

	if (i == NONE || (counts(m) && vnet_mappings_count(t, m->session) >= VNET_MAPPINGS_SESSION))
		return NULL;
	t->free = t->next[i];
	r = &t->records[i];
	*r = *m;
	r->state = 0;
	__atomic_store_n(&r->state, 1, __ATOMIC_RELEASE);
	link_record(t, i);
	return r;
}

void vnet_mappings_remove(struct vnet_mappings *t, struct vnet_mapping *m)
{
	const uint32_t i = vnet_mappings_index(t, m);
	uint32_t *b = bucket_of(t, m->session, m->kind, &m->inside);

	__atomic_store_n(&m->state, 0, __ATOMIC_RELEASE);
	while (*b != i)
		b = &t->next[*b];
	*b = t->next[i];
	t->counts[m->session % SESSIONS] -= counts(m);
	t->next[i] = t->free;
	t->free = i;
}

/* Who is in front of whom when one must go. */
static bool goes_before(const struct vnet_mapping *a, const struct vnet_mapping *b)
{
	if (a->answered != b->answered)
		return b->answered;
	return a->used_ms < b->used_ms;
}

struct vnet_mapping *vnet_mappings_oldest(struct vnet_mappings *t, uint32_t session)
{
	struct vnet_mapping *oldest = NULL;

	for (struct vnet_mapping *m = NULL; (m = vnet_mappings_next(t, m));)
		if (m->session == session && !m->published && (!oldest || goes_before(m, oldest)))
			oldest = m;
	return oldest;
}

bool vnet_mapping_aged(const struct vnet_mapping *m, uint64_t now_ms, bool held)
{
	uint64_t limit = VNET_MAPPING_ANSWERED_MS;

	if (m->published || now_ms < m->used_ms)
		return false;
	if (held)
		limit = VNET_MAPPING_HELD_MS;
	else if (m->brief)
		limit = VNET_MAPPING_BRIEF_MS;
	else if (!m->answered || m->kind == VNET_MAPPING_ECHO)
		limit = VNET_MAPPING_UNANSWERED_MS;
	return now_ms - m->used_ms >= limit;
}

struct vnet_mapping *vnet_mappings_next(struct vnet_mappings *t, const struct vnet_mapping *m)
{
	for (uint32_t i = m ? vnet_mappings_index(t, m) + 1 : 0; i < t->top; i++)
		if (t->records[i].state)
			return &t->records[i];
	return NULL;
}

uint32_t vnet_mappings_index(const struct vnet_mappings *t, const struct vnet_mapping *m)
{
	return (uint32_t)(m - t->records);
}

uint32_t vnet_mappings_count(const struct vnet_mappings *t, uint32_t session)
{
	return t->counts[session % SESSIONS];
}
