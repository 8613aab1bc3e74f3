// SPDX-License-Identifier: GPL-2.0-or-later
/* A batch: filled in here, copied into the task, run, and copied back. */
#include "ckpt/remote/inside.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define AT(type, member, offset) static_assert(offsetof(struct type, member) == offset, #member)
AT(entry, nr, ENTRY_NR);
AT(entry, refs, ENTRY_REFS);
AT(entry, twice, ENTRY_TWICE);
AT(entry, i386, ENTRY_I386);
AT(entry, args, ENTRY_ARG0);
AT(entry, ret, ENTRY_RET);
AT(heal, mask, HEAL_MASK);
AT(heal, rax, HEAL_RAX);
AT(heal, r8, HEAL_R8);
AT(heal, rsp, HEAL_RSP);
AT(heal, flags, HEAL_FLAGS);
AT(heal, far_rip, HEAL_FAR);
static_assert(sizeof(struct entry) == 1 << ENTRY_SHIFT, "the executor shifts by it");
static_assert(AREA_TABLE + REMOTE_MAX_CALLS * sizeof(struct entry) <= AREA_DATA, "table");
static_assert(AREA_DATA + REMOTE_DATA_SIZE + 65536 <= AREA_HEAL, "room for a signal frame");
static_assert(AREA_HEAL + sizeof(struct heal) <= REMOTE_AREA_SIZE, "area");
static_assert(EXEC_SENTINEL == SYS_PODRUN_SENTINEL && EXEC_SENTINEL_ARG == PODRUN_SENTINEL_ARG,
	"sentinel");

void remote_clear_batch(struct remote *r)
{
	r->ran = false;
	r->n = 0;
	r->small.used = 0;
	r->big.used = 0;
	r->n_born = 0;
}

void remote_free_batch(struct remote *r)
{
	free(r->entries);
	free(r->small.bytes);
	free(r->big.bytes);
}

/* What has run is forgotten when the next is begun. */
static void begin_batch(struct remote *r)
{
	if (r->ran)
		remote_clear_batch(r);
}

static bool room_for_entry(struct remote *r)
{
	int cap = r->cap ? r->cap * 2 : 16;
	struct entry *p;

	if (r->n < r->cap)
		return true;
	if (cap > REMOTE_MAX_CALLS)
		return false;
	p = realloc(r->entries, (size_t)cap * sizeof(*p));
	if (!p)
		return false;
	r->entries = p;
	r->cap = cap;
	return true;
}

int remote_add_args(struct remote *r, long nr, const struct remote_arg args[6])
{
	struct entry *t;

	begin_batch(r);
	if (!room_for_entry(r))
		return -ENOSPC;
	t = &r->entries[r->n];
	*t = (struct entry){
		.nr = (int32_t)nr,
		.twice = nr == SYS_clone || nr == SYS_clone3 || nr == SYS_fork,
		.ret = -ECANCELED,
	};
	for (int i = 0; i < 6; i++) {
		assert(!args[i].ref || args[i].value < (uint64_t)r->n);
		t->args[i] = args[i].value;
		t->refs |= (uint8_t)(args[i].ref << i);
	}
	return r->n++;
}

int remote_add(struct remote *r, long nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3,
	uint64_t a4, uint64_t a5)
{
	return remote_add_args(r, nr,
		(const struct remote_arg[6]){{a0, 0}, {a1, 0}, {a2, 0}, {a3, 0}, {a4, 0}, {a5, 0}});
}

int remote_add_i386(struct remote *r, long nr, uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3)
{
	int i = remote_add(r, nr, a0, a1, a2, a3, 0, 0);

	/* not of what only x86-64 numbers so */
	if (i >= 0) {
		r->entries[i].i386 = 1;
		r->entries[i].twice = 0;
	}
	return i;
}

static uint8_t *take_room(struct room *room, size_t size, size_t len)
{
	uint8_t *p;

	if (len > size - room->used)
		return NULL;
	if (!room->bytes)
		room->bytes = malloc(size);
	if (!room->bytes)
		return NULL;
	p = room->bytes + room->used;
	room->used += len;
	return memset(p, 0, len);
}

void *remote_data(struct remote *r, size_t len, uint64_t *ret_addr)
{
	uint64_t base = r->area->addr + AREA_DATA;
	size_t aligned = ALIGN_UP(len, 8);
	uint8_t *p;

	begin_batch(r);
	if (aligned < len)
		return NULL;
	p = take_room(&r->small, ROOM_SMALL, aligned);
	if (p) {
		*ret_addr = base + (uint64_t)(p - r->small.bytes);
		return p;
	}
	p = take_room(&r->big, ROOM_BIG, aligned);
	if (p)
		*ret_addr = base + ROOM_SMALL + (uint64_t)(p - r->big.bytes);
	return p;
}

uint64_t remote_put(struct remote *r, const void *data, size_t len)
{
	uint64_t addr;
	void *p = remote_data(r, len, &addr);

	if (!p)
		return 0;
	memcpy(p, data, len);
	return addr;
}

uint64_t remote_put_str(struct remote *r, const char *s)
{
	return remote_put(r, s, strlen(s) + 1);
}
/* ---- running ------------------------------------------------------------------------------ */

#define MAX_PARTS 4

struct part {
	void *local;
	uint64_t offset;
	size_t len;
};

/* Copies parts of the area to or from the task in one call. */
static int copy_parts(struct remote *r, const struct part *parts, size_t n, bool out, struct err *e)
{
	struct iovec local[MAX_PARTS], there[MAX_PARTS];
	size_t total = 0;
	ssize_t k;

	for (size_t i = 0; i < n; i++) {
		local[i] = (struct iovec){parts[i].local, parts[i].len};
		there[i] = (struct iovec){(void *)(r->area->addr + parts[i].offset), parts[i].len};
		total += parts[i].len;
	}
	k = out ? process_vm_writev(r->tid, local, n, there, n, 0)
		: process_vm_readv(r->tid, local, n, there, n, 0);
	if (k < 0 && errno == ESRCH)
		return remote_died(r, e);
	if (k < 0 || (size_t)k != total)
		return err_errno(e, k < 0 ? -errno : -EFAULT, "copy a batch of task %d", r->tid);
	return 0;
}

/* The parts of a batch; the last is what heals, which is only written. */
static void get_parts(struct remote *r, struct heal *heal, struct part parts[MAX_PARTS])
{
	parts[0] = (struct part){r->entries, AREA_TABLE, (size_t)r->n * sizeof(struct entry)};
	parts[1] = (struct part){r->small.bytes, AREA_DATA, r->small.used};
	parts[2] = (struct part){r->big.bytes, AREA_DATA + ROOM_SMALL, r->big.used};
	parts[3] = (struct part){heal, AREA_HEAL, sizeof(*heal)};
}

int remote_put_batch(struct remote *r, struct err *e)
{
	struct part parts[MAX_PARTS];
	struct heal heal;

	if (r->where == GONE)
		return remote_died(r, e);
	/*
	 * Nothing has been added since the last one: an image may have left its caller nothing to
	 * ask.
	 */
	begin_batch(r);
	r->ran = true;
	r->n_born = 0;
	remote_fill_heal(r, &heal, remote_exec_far_at(r->area->addr));
	get_parts(r, &heal, parts);
	return copy_parts(r, parts, MAX_PARTS, true, e);
}

/* A batch has failed: the task stands where it did, if it still does. */
static void give_up(struct remote *r)
{
	if (r->where == GONE)
		return;
	remote_put_back(r);
	r->where = r->where == GONE ? GONE : AT_STOP;
}

int remote_finish_batch(struct remote *r, struct err *e)
{
	struct part parts[MAX_PARTS];
	int k = remote_go_until(r, WANT_SENTINEL, e);

	get_parts(r, NULL, parts);
	if (k == 0)
		k = copy_parts(r, parts, MAX_PARTS - 1, false, e);
	if (k == 0)
		return remote_stand(r, e);
	give_up(r);
	return k;
}

int remote_start(struct remote *r, bool stop_on_error, struct err *e)
{
	struct user_regs_struct g;
	int k = remote_put_batch(r, e);

	if (k < 0)
		return k;
	/* Registers first: whatever runs from now on heals, with any mask. */
	g = remote_exec_regs(r, stop_on_error);
	k = remote_set_regs(r, &g, e);
	if (k == 0)
		k = remote_set_mask(r, ALL_SIGNALS, e);
	if (k == 0)
		k = remote_go(r, WANT_SENTINEL, e);
	if (k < 0)
		give_up(r);
	return k;
}

int remote_wait(struct remote *r, struct err *e)
{
	assert(r->going);
	return remote_finish_batch(r, e);
}

int remote_run(struct remote *r, bool stop_on_error, struct err *e)
{
	int k = remote_start(r, stop_on_error, e);

	return k < 0 ? k : remote_wait(r, e);
}

long remote_result(const struct remote *r, int i)
{
	return r->ran && i >= 0 && i < r->n ? r->entries[i].ret : -ECANCELED;
}

int remote_count(const struct remote *r)
{
	return r->n;
}

int remote_call(struct remote *r, long *ret_value, struct err *e, long nr, uint64_t a0, uint64_t a1,
	uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	int k;

	begin_batch(r);
	assert(r->n == 0);
	k = remote_add(r, nr, a0, a1, a2, a3, a4, a5);
	if (k < 0)
		return err_errno(e, -ENOMEM, "call in task %d", r->tid);
	k = remote_run(r, false, e);
	if (k < 0)
		return k;
	*ret_value = remote_result(r, 0);
	return 0;
}

int remote_must(struct remote *r, long *ret_value, struct err *e, long nr, uint64_t a0, uint64_t a1,
	uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	long value;
	int k = remote_call(r, &value, e, nr, a0, a1, a2, a3, a4, a5);

	if (k < 0)
		return k;
	if (value < 0 && value >= -4095)
		return err_errno(e, (int)value, "system call %ld in task %d", nr, r->tid);
	if (ret_value)
		*ret_value = value;
	return 0;
}
int remote_map(struct remote *r, long *ret_addr, uint64_t len, int prot, int flags, struct err *e)
{
	int i, k;

	if (!remote_runs_32(r))
		return remote_must(r, ret_addr, e, SYS_mmap, 0, len, (uint64_t)prot,
			(uint64_t)flags, (uint64_t)-1, 0);
	/* A call of x86-64 looks for room where such a process has none. */
	if (len > UINT32_MAX)
		return err_errno(e, -ENOMEM, "map pages in task %d", r->tid);
	begin_batch(r);
	i = remote_add_i386(r, I386_MMAP2, 0, (uint32_t)len, (uint32_t)prot, (uint32_t)flags);
	if (i < 0)
		return err_errno(e, i, "map pages in task %d", r->tid);
	r->entries[i].args[4] = UINT32_MAX;
	k = remote_run(r, false, e);
	if (k < 0)
		return k;
	if (remote_result(r, i) < 0)
		return err_errno(e, (int)remote_result(r, i), "map pages in task %d", r->tid);
	*ret_addr = remote_result(r, i);
	return 0;
}

/* ---- memory ------------------------------------------------------------------------------- */

int remote_peek(struct remote *r, uint64_t addr, void *data, size_t len, struct err *e)
{
	struct iovec local = {data, len}, there = {(void *)addr, len};
	ssize_t n = process_vm_readv(r->tid, &local, 1, &there, 1, 0);

	if (n < 0 || (size_t)n != len)
		return err_errno(e, n < 0 ? -errno : -EFAULT, "read memory of task %d", r->tid);
	return 0;
}

int remote_poke(struct remote *r, uint64_t addr, const void *data, size_t len, struct err *e)
{
	struct iovec local = {(void *)data, len}, there = {(void *)addr, len};
	ssize_t n = process_vm_writev(r->tid, &local, 1, &there, 1, 0);

	if (n < 0 || (size_t)n != len)
		return err_errno(e, n < 0 ? -errno : -EFAULT, "write memory of task %d", r->tid);
	return 0;
}
