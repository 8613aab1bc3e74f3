// SPDX-License-Identifier: GPL-2.0-or-later
#include <assert.h>
#include <errno.h>
#include <sys/random.h>

#include "base/base.h"
#include "vnet/vnat_table.h"

/* "vnat" and the version of the layout. */
#define MAGIC 0x0000000174616e76u

#define MAX_SESSIONS 4096
#define MAX_FLOWS    (1u << 20)
#define ARENA_ALIGN  64

static bool power_of_two(uint32_t n)
{
	return n && (n & (n - 1)) == 0;
}

static size_t sessions_at(void)
{
	return ALIGN_UP(sizeof(struct vnat_head), ARENA_ALIGN);
}

static size_t flows_at(uint32_t max_sessions)
{
	return ALIGN_UP(sessions_at() + max_sessions * sizeof(struct vnet_session), ARENA_ALIGN);
}

size_t vnet_vnat_size(uint32_t max_sessions, uint32_t max_flows)
{
	assert(power_of_two(max_sessions) && max_sessions <= MAX_SESSIONS);
	assert(power_of_two(max_flows) && max_flows <= MAX_FLOWS);
	return flows_at(max_sessions) + max_flows * sizeof(struct vnet_flow);
}

static uint32_t *session_chain(const struct vnet_vnat *v, uint32_t session,
	const struct vnet_endpoint *inside, const struct vnet_endpoint *outside)
{
	uint64_t hash = vnet_endpoint_hash(inside, vnet_endpoint_hash(outside, v->seed ^ session));

	return &v->by_session[hash & (v->head->max_flows - 1)];
}

static uint32_t *inner_chain(const struct vnet_vnat *v, const struct vnet_endpoint *near,
	const struct vnet_endpoint *far)
{
	uint64_t hash = vnet_endpoint_hash(near, vnet_endpoint_hash(far, v->seed));

	return &v->by_inner[hash & (v->head->max_flows - 1)];
}

uint32_t vnat_table_find_session(const struct vnet_vnat *v, uint32_t session,
	const struct vnet_endpoint *inside, const struct vnet_endpoint *outside)
{
	uint32_t i = *session_chain(v, session, inside, outside);

	for (; i != VNET_NONE; i = v->links[i].next_session) {
		const struct vnet_flow *f = &v->flows[i];

		if (f->session == session && vnet_endpoint_equal(&f->inside, inside) &&
			vnet_endpoint_equal(&f->outside, outside))
			break;
	}
	return i;
}

uint32_t vnat_table_find_inner(const struct vnet_vnat *v, const struct vnet_endpoint *near,
	const struct vnet_endpoint *far)
{
	uint32_t i = *inner_chain(v, near, far);

	for (; i != VNET_NONE; i = v->links[i].next_inner) {
		const struct vnet_flow *f = &v->flows[i];

		if (vnet_endpoint_equal(&f->near, near) && vnet_endpoint_equal(&f->far, far))
			break;
	}
	return i;
}

static void index_flow(struct vnet_vnat *v, uint32_t i)
{
	const struct vnet_flow *f = &v->flows[i];
	uint32_t *by_session = session_chain(v, f->session, &f->inside, &f->outside);
	uint32_t *by_inner = inner_chain(v, &f->near, &f->far);

	v->links[i].next_session = *by_session;
	*by_session = i;
	v->links[i].next_inner = *by_inner;
	*by_inner = i;
}

static void unindex_flow(struct vnet_vnat *v, uint32_t i)
{
	const struct vnet_flow *f = &v->flows[i];
	uint32_t *at = session_chain(v, f->session, &f->inside, &f->outside);

	while (*at != i)
		at = &v->links[*at].next_session;
	*at = v->links[i].next_session;
	at = inner_chain(v, &f->near, &f->far);
	while (*at != i)
		at = &v->links[*at].next_inner;
	*at = v->links[i].next_inner;
}

static void linger_append(struct vnet_vnat *v, uint32_t i)
{
	v->links[i].linger_before = v->linger_last;
	v->links[i].linger_behind = VNET_NONE;
	if (v->linger_last == VNET_NONE)
		v->linger_first = i;
	else
		v->links[v->linger_last].linger_behind = i;
	v->linger_last = i;
}

static void linger_remove(struct vnet_vnat *v, uint32_t i)
{
	const struct vnat_links *l = &v->links[i];

	if (l->linger_before == VNET_NONE)
		v->linger_first = l->linger_behind;
	else
		v->links[l->linger_before].linger_behind = l->linger_behind;
	if (l->linger_behind == VNET_NONE)
		v->linger_last = l->linger_before;
	else
		v->links[l->linger_behind].linger_before = l->linger_before;
}

void vnat_table_put_back(struct vnet_vnat *v, uint32_t flow)
{
	v->links[flow].next_session = v->free;
	v->free = flow;
}

uint32_t vnat_table_take(struct vnet_vnat *v)
{
	struct vnet_flow *f;
	const size_t behind = offsetof(struct vnet_flow, generation) + sizeof(f->generation);
	uint32_t i;

	if (v->free == VNET_NONE && v->top == v->head->max_flows && v->linger_first != VNET_NONE)
		vnat_table_release(v, v->linger_first);
	i = v->free;
	if (i != VNET_NONE)
		v->free = v->links[i].next_session;
	else if (v->top < v->head->max_flows)
		i = v->top++;
	else
		return VNET_NONE;
	f = &v->flows[i];
	/* Never 0 in between: whoever is killed here has not made a generation come twice. */
	f->generation++;
	memset(f, 0, offsetof(struct vnet_flow, generation));
	memset((uint8_t *)f + behind, 0, sizeof(*f) - behind);
	return i;
}

void vnat_table_commit(struct vnet_vnat *v, uint32_t flow, enum vnet_flow_state state)
{
	struct vnet_flow *f = &v->flows[flow];

	f->used = v->now;
	atomic_store_explicit(&f->state, (uint8_t)state, memory_order_release);
	index_flow(v, flow);
	v->sessions[f->session].n_flows++;
	v->sessions[f->session].counters.flows++;
}

void vnat_table_release(struct vnet_vnat *v, uint32_t flow)
{
	struct vnet_flow *f = &v->flows[flow];
	enum vnet_flow_state was = vnat_state(f);

	assert(was != VNET_FLOW_FREE);
	atomic_store_explicit(&f->state, VNET_FLOW_FREE, memory_order_release);
	if (was == VNET_FLOW_LINGER)
		linger_remove(v, flow);
	else
		v->sessions[f->session].n_flows--;
	unindex_flow(v, flow);
	vnat_table_put_back(v, flow);
}

void vnat_table_linger(struct vnet_vnat *v, uint32_t flow)
{
	struct vnet_flow *f = &v->flows[flow];

	assert(vnat_state(f) == VNET_FLOW_OPEN);
	f->used = v->now;
	f->kept_valid = false;
	atomic_store_explicit(&f->state, VNET_FLOW_LINGER, memory_order_release);
	v->sessions[f->session].n_flows--;
	linger_append(v, flow);
}

static int older_first(const void *a, const void *b, void *flows)
{
	const struct vnet_flow *f = flows;
	uint32_t x = f[*(const uint32_t *)a].used, y = f[*(const uint32_t *)b].used;

	return (x > y) - (x < y);
}

/* Is a record that says it is in use one that can be gone on with? */
static bool usable(const struct vnet_vnat *v, const struct vnet_flow *f)
{
	enum vnet_flow_state state = vnat_state(f);

	if (f->session >= v->head->max_sessions || !v->sessions[f->session].state)
		return false;
	/* Killed while it took another copy of the SYN: the session will send it again. */
	return state != VNET_FLOW_HELD || f->kept_valid;
}

/* All indexes, from what the records say. */
static int rebuild(struct vnet_vnat *v)
{
	uint32_t max = v->head->max_flows, n = 0;
	_cleanup_free_ uint32_t *lingering = calloc(max, sizeof(*lingering));

	if (!lingering)
		return -ENOMEM;
	for (uint32_t i = 0; i < v->head->max_sessions; i++)
		v->sessions[i].n_flows = 0;
	for (uint32_t i = 0; i < max; i++)
		v->by_session[i] = v->by_inner[i] = VNET_NONE;
	/* Generations count from 1: behind the last record that has one nothing was ever used. */
	for (v->top = max; v->top > 0 && !v->flows[v->top - 1].generation; v->top--)
		;
	for (uint32_t i = v->top; i-- > 0;) {
		struct vnet_flow *f = &v->flows[i];

		if (vnat_state(f) != VNET_FLOW_FREE && !usable(v, f))
			atomic_store_explicit(&f->state, VNET_FLOW_FREE, memory_order_release);
		if (vnat_state(f) == VNET_FLOW_FREE) {
			vnat_table_put_back(v, i);
			continue;
		}
		index_flow(v, i);
		if (vnat_state(f) == VNET_FLOW_LINGER)
			lingering[n++] = i;
		else
			v->sessions[f->session].n_flows++;
	}
	qsort_r(lingering, n, sizeof(*lingering), older_first, v->flows);
	for (uint32_t i = 0; i < n; i++)
		linger_append(v, lingering[i]);
	return 0;
}

/* An arena that is new gets its head; another must be one of ours. */
static int check_head(
	struct vnat_head *head, uint32_t max_sessions, uint32_t max_flows, struct err *e)
{
	if (head->magic == 0) {
		*head = (struct vnat_head){
			.max_sessions = max_sessions,
			.max_flows = max_flows,
			.session_size = sizeof(struct vnet_session),
			.flow_size = sizeof(struct vnet_flow),
		};
		atomic_signal_fence(memory_order_release);
		head->magic = MAGIC;
	}
	if (head->magic != MAGIC || head->max_sessions != max_sessions ||
		head->max_flows != max_flows || head->session_size != sizeof(struct vnet_session) ||
		head->flow_size != sizeof(struct vnet_flow))
		return err_set(
			e, ERR_FAILED, -EINVAL, "the translator's memory has another layout");
	return 0;
}

int vnet_vnat_new(void *arena, uint32_t max_sessions, uint32_t max_flows, uint16_t gate_v4,
	uint16_t gate_v6, struct vnet_vnat **ret, struct err *e)
{
	struct vnet_vnat *v;
	int r = check_head(arena, max_sessions, max_flows, e);

	if (r < 0)
		return r;
	v = calloc(1, sizeof(*v));
	if (!v)
		return err_errno(e, -ENOMEM, "translator");
	v->head = arena;
	v->sessions = (void *)((uint8_t *)arena + sessions_at());
	v->flows = (void *)((uint8_t *)arena + flows_at(max_sessions));
	v->links = calloc(max_flows, sizeof(*v->links));
	v->by_session = calloc(max_flows, sizeof(*v->by_session));
	v->by_inner = calloc(max_flows, sizeof(*v->by_inner));
	v->free = v->linger_first = v->linger_last = VNET_NONE;
	v->gate_v4 = gate_v4;
	v->gate_v6 = gate_v6;
	r = v->links && v->by_session && v->by_inner ? 0 : -ENOMEM;
	if (r == 0 && getrandom(&v->seed, sizeof(v->seed), 0) != (ssize_t)sizeof(v->seed))
		r = -EIO;
	if (r == 0)
		r = rebuild(v);
	if (r < 0) {
		vnet_vnat_free(v);
		return err_errno(e, r, "translator");
	}
	*ret = v;
	return 0;
}

void vnet_vnat_free(struct vnet_vnat *v)
{
	if (!v)
		return;
	free(v->links);
	free(v->by_session);
	free(v->by_inner);
	free(v);
}
